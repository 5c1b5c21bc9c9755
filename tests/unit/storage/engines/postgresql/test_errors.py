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
    ends_connection,
    is_conflict,
    translate_error,
    was_cut_before_answer,
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
    assert type(translate_error(found)) is ours
    assert "private" not in str(translate_error(found))


def test_a_text_that_no_database_can_hold_is_refused():
    with pytest.raises(UnicodeEncodeError) as caught:
        "\ud800".encode()
    assert isinstance(translate_error(caught.value), InvalidInputError)


def test_a_right_that_is_missing_is_named_as_the_server_does():
    found = translate_error(asyncpg.InsufficientPrivilegeError("permission denied for table messages"))
    assert isinstance(found, MissingRightError)
    assert "permission denied for table messages" in str(found)


def test_what_the_system_says_is_told():
    assert "Connection refused" in str(translate_error(OSError(111, "Connection refused")))


def test_only_what_others_did_is_tried_again():
    assert is_conflict(asyncpg.DeadlockDetectedError())
    assert is_conflict(asyncpg.InvalidCachedStatementError())
    assert not is_conflict(asyncpg.LockNotAvailableError())


def test_a_lost_connection_is_told_from_a_failed_statement():
    fatal = asyncpg.PostgresError.new({"C": "57P01", "M": "terminating", "S": "FATAL", "V": "FATAL"})
    assert ends_connection(fatal)
    assert ends_connection(asyncpg.ConnectionDoesNotExistError("gone"))
    assert ends_connection(
        asyncpg.ReadOnlySQLTransactionError("cannot execute INSERT in a read-only transaction")
    )
    assert ends_connection(asyncpg.InternalClientError("got result for unknown protocol state"))
    assert not ends_connection(asyncpg.UniqueViolationError("taken"))
    assert not ends_connection(asyncpg.DataError("invalid input for query argument"))


def test_nobody_waits_twice_for_a_server_that_says_nothing():
    assert was_cut_before_answer(asyncpg.ConnectionDoesNotExistError("gone"))
    assert was_cut_before_answer(ConnectionResetError())
    assert not was_cut_before_answer(TimeoutError())
    assert not was_cut_before_answer(asyncpg.UndefinedTableError())
