"""Translation of PostgreSQL errors to ours, without addresses and quoted values."""

from __future__ import annotations

from typing import Final

import asyncpg

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
from gateway_sessions.storage.engines.server.executor import ServerErrors

WHAT: Final = "PostgreSQL"
"""The name of the database in errors. An address can hold a password."""
PLACE: Final = "postgresql://…"
"""The name of the database where a file would be named by its path."""
FOREIGN: Final = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
    UnicodeEncodeError,
    OverflowError,
)
"""All errors that the driver raises. Any other one is ours, or a bug."""
_OVERTAKEN: Final = (
    asyncpg.SerializationError,
    asyncpg.DeadlockDetectedError,
    asyncpg.UniqueViolationError,
    asyncpg.InvalidCachedStatementError,  # a table was changed since the statement was planned
    asyncpg.OutdatedSchemaCacheError,
)
_OF_THE_CLIENT: Final = (asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)
"""Errors that asyncpg raises by itself. Nearly all mean that the connection is gone, cannot be opened, or is
in an unknown state; what the server says before it closes a connection comes as one of them, too."""
_OF_THE_PROGRAM: Final = (
    asyncpg.DataError,
    asyncpg.ClientConfigurationError,
    asyncpg.UnsupportedClientFeatureError,
    asyncpg.UnsupportedServerFeatureError,
)
"""The errors of asyncpg that another connection would not change."""
READ_ONLY: Final = asyncpg.ReadOnlySQLTransactionError
"""The server has become a replica; a new connection may find the new primary."""

_FULL: Final = frozenset({"53100"})
_CORRUPT: Final = frozenset({"XX001", "XX002"})
_LOST_STATEMENTS: Final = frozenset({"26000", "42P05"})
"""A prepared statement is missing, or is there unasked: the pooler has lent another connection."""
FORGETFUL: Final = (
    "the pooler before it lets prepared statements get lost; set sessiondb.prepared_statements to false"
)
_LOCKED: Final = frozenset({"55P03"})
"""Another transaction has kept the lock for longer than the limit."""
_UNUSABLE_VALUE: Final = "22"
_PERMANENT: Final = (
    "0A",
    "0L",
    "0P",
    "20",
    "21",
    "23",
    "27",
    "2B",
    "34",
    "38",
    "39",
    "3F",
    "42",
    "44",
    "54",
    "P0",
)
"""Classes of SQLSTATE that a retry does not change: keys, names, rights, types of values. The list is
closed: any other error may be temporary, for example what a pooler says in its own words."""


_MEANINGS: Final[tuple[tuple[frozenset[str], type[StorageError], str], ...]] = (
    (_FULL, StorageFullError, "no room on the server's disk; nothing acknowledged was lost"),
    (_LOST_STATEMENTS, UnsupportedStorageError, FORGETFUL),
    (_CORRUPT, StorageCorruptError, "{}; the database was left as it is"),
    (_LOCKED, StorageLockedError, "a lock was not free in time ({})"),
)


def is_conflict(error: Exception) -> bool:
    """Return True if a conflict with another transaction caused the error: run afresh, it may succeed.

    A row that does not exist yet cannot be locked, so two transactions that insert the same row conflict in
    its unique key.
    """
    return isinstance(error, _OVERTAKEN)


def ends_connection(error: BaseException) -> bool:
    """Return True if the connection is lost after that error, in an unknown state, or on a replica."""
    if isinstance(error, asyncpg.PostgresConnectionError | READ_ONLY):
        return True
    if isinstance(error, _OF_THE_CLIENT):
        return not isinstance(error, _OF_THE_PROGRAM)
    return getattr(error, "severity_en", None) in ("FATAL", "PANIC")


def was_cut_before_answer(error: BaseException) -> bool:
    """Return True if the connection was lost before it could answer: another one may do.

    A timeout is left out, so that nobody waits twice for a slow server.
    """
    return ends_connection(error) and not isinstance(error, TimeoutError)


def translate_error(error: Exception) -> GatewaySessionsError:
    """Return our error for an error of `FOREIGN`."""
    if isinstance(error, asyncpg.InsufficientPrivilegeError):
        # The text names the table, and quotes no values.
        return MissingRightError(WHAT, f"{error.args[0]}; grant the right")
    if isinstance(error, asyncpg.PostgresError):
        return _server_error(error)
    if isinstance(error, (asyncpg.DataError, UnicodeEncodeError, OverflowError)):
        return InvalidInputError(f"a value cannot be stored: {_error_name(error)}")
    if isinstance(error, _OF_THE_PROGRAM):
        return UnsupportedStorageError(WHAT, f"cannot be used as it is ({_error_name(error)})")
    return StorageUnavailableError(WHAT, f"cannot be reached ({_error_name(error)})")


def _server_error(error: asyncpg.PostgresError) -> GatewaySessionsError:
    code, kind = str(error.sqlstate or ""), _error_name(error)
    for codes, ours, problem in _MEANINGS:
        if code in codes:
            return ours(WHAT, problem.format(kind))
    if code.startswith(_UNUSABLE_VALUE):
        return InvalidInputError(f"a value cannot be stored: {kind}")
    if code.startswith(_PERMANENT) and not isinstance(error, asyncpg.InvalidCachedStatementError):
        return StorageError(WHAT, kind)
    return StorageUnavailableError(WHAT, kind)


def _error_name(error: Exception) -> str:
    """Return the name and SQLSTATE of the error, without its text: that quotes keys and messages."""
    code = getattr(error, "sqlstate", None)
    reason = getattr(error, "strerror", None)
    name = type(error).__name__
    return f"{name} {code}" if code else f"{name}: {reason}" if reason else name


TROUBLES: Final = ServerErrors(
    what=WHAT,
    driver_errors=FOREIGN,
    translate=translate_error,
    is_conflict=is_conflict,
    ends_connection=ends_connection,
    was_cut_before_answer=was_cut_before_answer,
)
