"""What PostgreSQL says, in our words: never its address, and never a value that it quotes."""

from __future__ import annotations

from typing import Final

import asyncpg

from gateway_sessions.errors import (
    GatewaySessionsError,
    InvalidInputError,
    StorageCorruptError,
    StorageError,
    StorageFullError,
    StorageUnavailableError,
    UnsupportedStorageError,
)
from gateway_sessions.storage.drivers.troubles import Troubles
from gateway_sessions.storage_errors import MissingRightError

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
)
LOST: Final = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.TargetServerAttributeNotMatched,
    OSError,
    TimeoutError,
)
"""The connection is gone, or cannot be had; or none of the servers named is the one to write to."""
READ_ONLY: Final = asyncpg.ReadOnlySQLTransactionError
"""Another server has become the one to write to; a new connection may find it."""

_FULL: Final = "53100"
_CORRUPT: Final = frozenset({"XX001", "XX002"})
_LOST_STATEMENTS: Final = frozenset({"26000", "42P05"})
"""A statement is not there that was prepared, or is there although it was not: on another connection."""
FORGETFUL: Final = (
    "the pooler before it lets prepared statements get lost; set sessiondb.prepared_statements to false"
)
_UNUSABLE_VALUE: Final = "22"
_UNAVAILABLE: Final = ("08", "28", "3D", "40", "53", "55", "57", "58", "25006", "25P02", "25P03", "25P04")
"""Classes and codes of what may be better later: connections, resources, locks, shutdowns, timeouts."""


def is_overtaken(error: Exception) -> bool:
    """Whether somebody else was faster: run afresh, a verb sees what they did.

    A row that is not there yet cannot be locked, so two verbs that make it at once meet in its unique key.
    """
    return isinstance(error, _OVERTAKEN)


def is_end(error: BaseException) -> bool:
    """Whether it is the last that is heard of a connection, or leaves it on a server that is only read."""
    return isinstance(error, (*LOST, READ_ONLY)) or getattr(error, "severity_en", None) in ("FATAL", "PANIC")


def was_cut(error: BaseException) -> bool:
    """Whether the connection was gone before anything was asked of it: another one may do."""
    return not isinstance(error, TimeoutError) and (
        is_end(error) or isinstance(error, asyncpg.InternalClientError)
    )


def translate(error: Exception) -> GatewaySessionsError:
    """Our error for one of `FOREIGN`."""
    if isinstance(error, asyncpg.InsufficientPrivilegeError):
        # Its text names the table, and quotes nothing that is in it.
        return MissingRightError(WHAT, f"{error.args[0]}; grant the right")
    if isinstance(error, asyncpg.PostgresError):
        return _from_server(error)
    if isinstance(error, LOST):
        return StorageUnavailableError(WHAT, f"cannot be reached ({_kind(error)})")
    if isinstance(error, (UnicodeEncodeError, OverflowError)):
        return InvalidInputError(f"a value cannot be stored: {_kind(error)}")
    return StorageError(WHAT, _kind(error))


def _from_server(error: asyncpg.PostgresError) -> GatewaySessionsError:
    code = str(error.sqlstate or "")
    if code == _FULL:
        return StorageFullError(WHAT, "no room on the server's disk; nothing acknowledged was lost")
    if code in _LOST_STATEMENTS:
        return UnsupportedStorageError(WHAT, FORGETFUL)
    if code in _CORRUPT:
        return StorageCorruptError(WHAT, f"{_kind(error)}; the database was left as it is")
    if code.startswith(_UNUSABLE_VALUE):
        return InvalidInputError(f"a value cannot be stored: {_kind(error)}")
    if code.startswith(_UNAVAILABLE):
        return StorageUnavailableError(WHAT, _kind(error))
    return StorageError(WHAT, _kind(error))


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
