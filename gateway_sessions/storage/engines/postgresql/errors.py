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
from gateway_sessions.storage.engines.server.executor import Troubles

WHAT: Final = "PostgreSQL"
"""What errors call the database. An address can hold a password."""
PLACE: Final = "postgresql://…"
"""The same where a path might stand."""
FOREIGN: Final = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
    UnicodeEncodeError,
    OverflowError,
)
"""All that comes out of the driver; anything else is ours, or a bug."""
_OVERTAKEN: Final = (
    asyncpg.SerializationError,
    asyncpg.DeadlockDetectedError,
    asyncpg.UniqueViolationError,
    asyncpg.InvalidCachedStatementError,  # a table was changed since the statement was planned
    asyncpg.OutdatedSchemaCacheError,
)
_OF_THE_CLIENT: Final = (asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)
"""What asyncpg says by itself. Nearly all of it means that the connection is gone, cannot be had, or is not
where asyncpg thinks it is; what the server says before it hangs up is told so, too."""
_OF_THE_PROGRAM: Final = (
    asyncpg.DataError,
    asyncpg.ClientConfigurationError,
    asyncpg.UnsupportedClientFeatureError,
    asyncpg.UnsupportedServerFeatureError,
)
"""The rest of it: another connection changes nothing about that."""
READ_ONLY: Final = asyncpg.ReadOnlySQLTransactionError
"""Another server has become the one to write to; a new connection may find it."""

_FULL: Final = frozenset({"53100"})
_CORRUPT: Final = frozenset({"XX001", "XX002"})
_LOST_STATEMENTS: Final = frozenset({"26000", "42P05"})
"""A statement is not there that was prepared, or is there although it was not: on another connection."""
FORGETFUL: Final = (
    "the pooler before it lets prepared statements get lost; set sessiondb.prepared_statements to false"
)
_LOCKED: Final = frozenset({"55P03"})
"""Another transaction has the lock, for longer than is waited for it."""
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
"""Classes of what stays as it is, however often it is asked: keys, names, rights, kinds of values.

The list is closed: whatever is not in it may be better later, also what a pooler says in its own words."""


_MEANINGS: Final[tuple[tuple[frozenset[str], type[StorageError], str], ...]] = (
    (_FULL, StorageFullError, "no room on the server's disk; nothing acknowledged was lost"),
    (_LOST_STATEMENTS, UnsupportedStorageError, FORGETFUL),
    (_CORRUPT, StorageCorruptError, "{}; the database was left as it is"),
    (_LOCKED, StorageLockedError, "a lock was not free in time ({})"),
)


def is_overtaken(error: Exception) -> bool:
    """Whether somebody else was faster: run afresh, a transaction sees what they did.

    A row that is not there yet cannot be locked, so two transactions that make it at once meet in its unique
    key.
    """
    return isinstance(error, _OVERTAKEN)


def is_end(error: BaseException) -> bool:
    """Whether it is the last that is heard of a connection, or leaves it on a server that is only read."""
    if isinstance(error, asyncpg.PostgresConnectionError | READ_ONLY):
        return True
    if isinstance(error, _OF_THE_CLIENT):
        return not isinstance(error, _OF_THE_PROGRAM)
    return getattr(error, "severity_en", None) in ("FATAL", "PANIC")


def was_cut(error: BaseException) -> bool:
    """Whether the connection was lost at once: another one may do. Nobody waits twice for a slow one."""
    return is_end(error) and not isinstance(error, TimeoutError)


def translate(error: Exception) -> GatewaySessionsError:
    """Our error for one of `FOREIGN`."""
    if isinstance(error, asyncpg.InsufficientPrivilegeError):
        # Its text names the table, and quotes nothing that is in it.
        return MissingRightError(WHAT, f"{error.args[0]}; grant the right")
    if isinstance(error, asyncpg.PostgresError):
        return _from_server(error)
    if isinstance(error, (asyncpg.DataError, UnicodeEncodeError, OverflowError)):
        return InvalidInputError(f"a value cannot be stored: {_kind(error)}")
    if isinstance(error, _OF_THE_PROGRAM):
        return UnsupportedStorageError(WHAT, f"cannot be used as it is ({_kind(error)})")
    return StorageUnavailableError(WHAT, f"cannot be reached ({_kind(error)})")


def _from_server(error: asyncpg.PostgresError) -> GatewaySessionsError:
    code, kind = str(error.sqlstate or ""), _kind(error)
    for codes, ours, problem in _MEANINGS:
        if code in codes:
            return ours(WHAT, problem.format(kind))
    if code.startswith(_UNUSABLE_VALUE):
        return InvalidInputError(f"a value cannot be stored: {kind}")
    if code.startswith(_PERMANENT) and not isinstance(error, asyncpg.InvalidCachedStatementError):
        return StorageError(WHAT, kind)
    return StorageUnavailableError(WHAT, kind)


def _kind(error: Exception) -> str:
    """What went wrong, without the text of it: the server quotes keys and what people said."""
    code = getattr(error, "sqlstate", None)
    reason = getattr(error, "strerror", None)
    name = type(error).__name__
    return f"{name} {code}" if code else f"{name}: {reason}" if reason else name


TROUBLES: Final = Troubles(
    what=WHAT,
    foreign=FOREIGN,
    translate=translate,
    is_overtaken=is_overtaken,
    is_end=is_end,
    was_cut=was_cut,
)
