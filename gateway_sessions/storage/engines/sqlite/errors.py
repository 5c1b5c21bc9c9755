"""Translation of SQLite errors to ours."""

from __future__ import annotations

import errno
import sqlite3
from typing import Final

from gateway_sessions.errors import (
    GatewaySessionsError,
    InvalidInputError,
    StorageCorruptError,
    StorageError,
    StorageFullError,
    StorageLockedError,
    StorageUnavailableError,
)

_PRIMARY: Final = 0xFF
"""The low byte of an extended result code is the primary code."""
_RIGHTS: Final = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM})
_UNAVAILABLE: Final = frozenset(
    {
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_NOMEM,
    }
)
_NO_TEXT: Final = "Could not decode to UTF-8"
"""The beginning of the error, without a code, that Python's module raises for bytes which are no UTF-8."""


def translate_error(error: Exception, path: str) -> Exception:
    """Return our error for one of SQLite or the disk; return any other error unchanged."""
    if isinstance(error, sqlite3.Error):
        ours: Exception = _storage_error(error, path)
    elif isinstance(error, OSError):
        ours = _disk_error(error, path)
    elif isinstance(error, UnicodeDecodeError):
        # SQLite quotes damaged text in its message, and Python cannot decode that.
        ours = StorageCorruptError(path, f"{error}; the file was left as it is")
    elif isinstance(error, (UnicodeEncodeError, OverflowError)) and not isinstance(
        error, GatewaySessionsError
    ):
        ours = InvalidInputError(f"a value cannot be stored: {error}")
    else:
        return error
    ours.__cause__ = error
    return ours


def _disk_error(error: OSError, path: str) -> StorageError:
    """Return our error for one of a file beside the database, for example a backup."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageFullError(path, f"{error}; nothing acknowledged was lost")
    return StorageUnavailableError(path, str(error))


def _storage_error(error: sqlite3.Error, path: str) -> StorageError:
    code = getattr(error, "sqlite_errorcode", None)
    primary = code & _PRIMARY if isinstance(code, int) else None
    if primary == sqlite3.SQLITE_FULL:
        return StorageFullError(path, "no room on the disk; nothing acknowledged was lost")
    if primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or str(error).startswith(_NO_TEXT):
        return StorageCorruptError(path, f"{error}; the file was left as it is")
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StorageLockedError(path, f"another program keeps it locked: {error}")
    if primary in _RIGHTS:
        return StorageUnavailableError(path, f"{error}; check its owner and mode, and those of its directory")
    if primary in _UNAVAILABLE:
        return StorageUnavailableError(path, str(error))
    return StorageError(path, str(error))
