"""What PostgreSQL says, in our words."""

import asyncpg
import pytest
from asyncpg.exceptions import IndexCorruptedError

from gateway_sessions.errors import (
    GatewaySessionsError,
    InvalidInputError,
    MissingRightError,
    StorageCorruptError,
    StorageError,
    StorageFullError,
    StorageLockedError,
    StorageUnavailableError,
    UnsupportedStorageError,
)
from gateway_sessions.storage.engines.postgresql.errors import (
    FOREIGN,
    is_end,
    is_overtaken,
    translate,
    was_cut,
)


@pytest.mark.parametrize(
    ("error", "ours"),
    [
        (asyncpg.DiskFullError, StorageFullError),
        (asyncpg.DataCorruptedError, StorageCorruptError),
        (IndexCorruptedError, StorageCorruptError),
        (asyncpg.CharacterNotInRepertoireError, InvalidInputError),
        (asyncpg.NumericValueOutOfRangeError, InvalidInputError),
        (asyncpg.LockNotAvailableError, StorageLockedError),
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
        (asyncpg.NotNullViolationError, StorageError),
        (asyncpg.FeatureNotSupportedError, StorageError),
        (asyncpg.InternalClientError, StorageUnavailableError),
        (asyncpg.ProtocolError, StorageUnavailableError),
        (asyncpg.OutdatedSchemaCacheError, StorageUnavailableError),
        (asyncpg.InvalidCachedStatementError, StorageUnavailableError),
        (asyncpg.InternalServerError, StorageUnavailableError),
        (asyncpg.UnknownPostgresError, StorageUnavailableError),
        (asyncpg.IdleSessionTimeoutError, StorageUnavailableError),
        (asyncpg.CannotConnectNowError, StorageUnavailableError),
        (asyncpg.DataError, InvalidInputError),
        (asyncpg.UnsupportedClientFeatureError, UnsupportedStorageError),
        (asyncpg.ClientConfigurationError, UnsupportedStorageError),
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
    assert is_overtaken(asyncpg.InvalidCachedStatementError())
    assert not is_overtaken(asyncpg.LockNotAvailableError())


def test_a_lost_connection_is_told_from_a_failed_statement():
    fatal = asyncpg.PostgresError.new({"C": "57P01", "M": "terminating", "S": "FATAL", "V": "FATAL"})
    assert is_end(fatal)
    assert is_end(asyncpg.ConnectionDoesNotExistError("gone"))
    assert is_end(asyncpg.ReadOnlySQLTransactionError("cannot execute INSERT in a read-only transaction"))
    assert is_end(asyncpg.InternalClientError("got result for unknown protocol state"))
    assert not is_end(asyncpg.UniqueViolationError("taken"))
    assert not is_end(asyncpg.DataError("invalid input for query argument"))


def test_nobody_waits_twice_for_a_server_that_says_nothing():
    assert was_cut(asyncpg.ConnectionDoesNotExistError("gone"))
    assert was_cut(ConnectionResetError())
    assert not was_cut(TimeoutError())
    assert not was_cut(asyncpg.UndefinedTableError())
