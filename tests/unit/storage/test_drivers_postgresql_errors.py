"""What PostgreSQL says, in our words."""

import asyncpg
import pytest
from asyncpg.exceptions import IndexCorruptedError

from gateway_sessions.errors import (
    GatewaySessionsError,
    InvalidInputError,
    StorageCorruptError,
    StorageError,
    StorageFullError,
    StorageUnavailableError,
)
from gateway_sessions.storage.drivers.postgresql_errors import FOREIGN, is_end, is_overtaken, translate
from gateway_sessions.storage_errors import MissingRightError


@pytest.mark.parametrize(
    ("error", "ours"),
    [
        (asyncpg.DiskFullError, StorageFullError),
        (asyncpg.DataCorruptedError, StorageCorruptError),
        (IndexCorruptedError, StorageCorruptError),
        (asyncpg.CharacterNotInRepertoireError, InvalidInputError),
        (asyncpg.NumericValueOutOfRangeError, InvalidInputError),
        (asyncpg.LockNotAvailableError, StorageUnavailableError),
        (asyncpg.QueryCanceledError, StorageUnavailableError),
        (asyncpg.AdminShutdownError, StorageUnavailableError),
        (asyncpg.TooManyConnectionsError, StorageUnavailableError),
        (asyncpg.ReadOnlySQLTransactionError, StorageUnavailableError),
        (asyncpg.InvalidPasswordError, StorageUnavailableError),
        (asyncpg.SerializationError, StorageUnavailableError),
        (asyncpg.ConnectionDoesNotExistError, StorageUnavailableError),
        (asyncpg.InterfaceError, StorageUnavailableError),
        (asyncpg.TargetServerAttributeNotMatched, StorageUnavailableError),
        (ConnectionRefusedError, StorageUnavailableError),
        (TimeoutError, StorageUnavailableError),
        (OverflowError, InvalidInputError),
        (asyncpg.UniqueViolationError, StorageError),
        (asyncpg.UndefinedTableError, StorageError),
        (asyncpg.InternalClientError, StorageError),
    ],
)
def test_every_error_of_the_driver_is_one_of_ours(error: type[Exception], ours: type[GatewaySessionsError]):
    found = error("Key (session_key)=(private) already exists.")
    assert isinstance(found, FOREIGN)
    assert type(translate(found)) is ours
    assert "private" not in str(translate(found))


def test_a_text_that_no_database_can_hold_is_refused():
    with pytest.raises(UnicodeEncodeError) as caught:
        "\ud800".encode()
    assert isinstance(translate(caught.value), InvalidInputError)


def test_a_right_that_is_missing_is_named_as_the_server_does():
    found = translate(asyncpg.InsufficientPrivilegeError("permission denied for table messages"))
    assert isinstance(found, MissingRightError)
    assert "permission denied for table messages" in str(found)


def test_what_the_system_says_is_told():
    assert "Connection refused" in str(translate(OSError(111, "Connection refused")))


def test_only_what_others_did_is_tried_again():
    assert is_overtaken(asyncpg.DeadlockDetectedError())
    assert not is_overtaken(asyncpg.LockNotAvailableError())


def test_a_lost_connection_is_told_from_a_failed_statement():
    fatal = asyncpg.PostgresError.new({"C": "57P01", "M": "terminating", "S": "FATAL", "V": "FATAL"})
    assert is_end(fatal)
    assert is_end(asyncpg.ConnectionDoesNotExistError("gone"))
    assert is_end(asyncpg.ReadOnlySQLTransactionError("cannot execute INSERT in a read-only transaction"))
    assert not is_end(asyncpg.UniqueViolationError("taken"))
