"""Translation of MySQL and MariaDB errors to ours, without addresses and quoted values."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from gateway_sessions.errors import (
    GatewaySessionsError,
    InvalidInputError,
    MissingRightError,
    StorageCorruptError,
    StorageError,
    StorageFullError,
    StorageLockedError,
    StorageUnavailableError,
)
from gateway_sessions.storage.engines.mysql.asyncmy_types import (
    DataError,
    IntegrityError,
    InterfaceError,
    InternalError,
    MySQLError,
    NotSupportedError,
    ProgrammingError,
)
from gateway_sessions.storage.engines.server.executor import ServerErrors

WHAT: Final = "MySQL"
"""The name of the database in errors. An address can hold a password."""
PLACE: Final = "mysql://…"
"""The name of the database where a file would be named by its path."""
FOREIGN: Final = (MySQLError, OSError, TimeoutError, UnicodeEncodeError, OverflowError)
"""All errors that the driver raises. Any other one is ours, or a bug."""
LOST: Final = (InterfaceError, InternalError, OSError, TimeoutError)
"""The connection is gone, cannot be opened, or is in an unknown state."""
_OF_THE_PROGRAM: Final = (DataError, IntegrityError, NotSupportedError, ProgrammingError)
"""Errors that a retry does not change: keys, names, types of values."""

CANNOT_CONNECT: Final = 2003
TOO_LARGE: Final = 1153
ONE_AT_A_TIME: Final = 1295
"""The server takes some kinds of statements with one row of values only."""
_LOST_CODES: Final = frozenset(
    {
        *range(1152, 1162),  # errors of the network; also a packet that is too large
        1053,  # the server is shut down
        1927,  # the connection was killed
        2002,
        CANNOT_CONNECT,
        2006,
        2013,
        2026,  # TLS
        2055,
        4031,  # it was idle for too long
    }
)
_STALE: Final = frozenset({1243, 1615})
"""The server does not know a prepared statement any more."""
_READ_ONLY: Final = frozenset({1290, 1836})
"""The server has become a replica; a new connection may find the new primary."""
_OVERTAKEN: Final = frozenset(
    {
        1020,  # changed since it was read
        1048,  # an upsert met another row than its own: see `update_instead` among the fragments
        1062,  # a key is taken
        1205,  # waited too long for a lock
        1213,  # deadlock
        1615,
    }
)
_LOCKED: Final = frozenset({1205, 3572})
"""Another transaction has kept the lock for longer than the limit."""
_FULL: Final = frozenset({1021, 1114})  # of the disk; of a table
_OF_STORAGE: Final = frozenset({1005, 1026, 1030})
"""The file system has refused an operation; only the text says which one."""
_NO_ROOM: Final = re.compile(r"\b28\b|No space left")
_CORRUPT: Final = frozenset({1034, 1035, 1194, 1195, 1712, 1877})
_UNUSABLE_VALUE: Final = frozenset({1264, 1265, 1292, 1300, 1366, 1406, 3140, 3141, 4038})
_REFUSED: Final = frozenset(
    {
        1044,
        1045,
        1130,
        1524,  # the account logs in by a plugin that the server has not loaded
        1698,
        1820,  # the password must be changed first
        1862,
        2059,  # the driver knows no such way to log in
        3118,  # the account is locked
        3159,  # the connection must be protected
        3955,
        4151,
    }
)
_LACKS_A_RIGHT: Final = frozenset({1142, 1143, 1227})  # on a table; on a column; of a kind of statement
_NO_DATABASE: Final = frozenset({1046, 1049})  # none was chosen; it does not exist
_PERMANENT_STATES: Final = ("0A", "21", "22", "23", "42")
"""Classes of SQLSTATE that a retry does not change. The list is closed: any other error may be temporary,
for example what a proxy or a newer server says in its own words."""
_PERMANENT: Final = frozenset({1048, 1054, 1062, 1136, 1364, 1451, 1452, 4025})
"""Errors that a retry does not change, by number: some drivers do not keep the SQLSTATE."""
_LATER: Final = (
    _LOST_CODES
    | _READ_ONLY
    | _OVERTAKEN - {1048, 1062}
    | frozenset(
        {
            1203,  # connections of this user
            1226,
            1461,  # prepared statements
            1792,  # read only
        }
    )
)
"""Errors that may be temporary although their SQLSTATE or their class says otherwise."""


_MEANINGS: Final[tuple[tuple[frozenset[int], Callable[..., GatewaySessionsError], str], ...]] = (
    (_FULL, StorageFullError, "no room on the server's disk; nothing acknowledged was lost"),
    (_CORRUPT, StorageCorruptError, "{}; the database was left as it is"),
    (
        frozenset({TOO_LARGE}),
        InvalidInputError,
        "a value is larger than the max_allowed_packet of the server ({})",
    ),
    (_UNUSABLE_VALUE, InvalidInputError, "a value cannot be stored: {}"),
    (_REFUSED, StorageUnavailableError, "refuses the login ({})"),
    (_NO_DATABASE, StorageUnavailableError, "has no database of that name ({})"),
    (frozenset({CANNOT_CONNECT}), StorageUnavailableError, "cannot be reached ({})"),
    (_LOCKED, StorageLockedError, "a lock was not free in time ({})"),
    (_LATER, StorageUnavailableError, "{}"),
)


def is_conflict(error: Exception) -> bool:
    """Return True if a conflict with another transaction caused the error: run afresh, it may succeed.

    A row that does not exist yet cannot be locked, so two transactions that insert the same row conflict in
    its unique key.
    """
    return isinstance(error, MySQLError) and _error_number(error) in _OVERTAKEN


def ends_connection(error: BaseException) -> bool:
    """Return True if the connection is lost after that error, or in an unknown state."""
    if isinstance(error, MySQLError) and _error_number(error) in _LOST_CODES | _STALE | _READ_ONLY:
        return True
    return isinstance(error, LOST)


def was_cut_before_answer(error: BaseException) -> bool:
    """Return True if the connection was lost before it could answer: another one may do.

    A timeout is left out, so that nobody waits twice for a slow server.
    """
    return ends_connection(error) and not isinstance(error, TimeoutError)


def translate_error(error: Exception) -> GatewaySessionsError:
    """Return our error for an error of `FOREIGN`."""
    if isinstance(error, MySQLError):
        return _server_error(error)
    if isinstance(error, (UnicodeEncodeError, OverflowError)):
        return InvalidInputError(f"a value cannot be stored: {_error_name(error)}")
    return StorageUnavailableError(WHAT, f"cannot be reached ({_error_name(error)})")


def _server_error(error: MySQLError) -> GatewaySessionsError:
    code, kind = _error_number(error), _error_name(error)
    if code in _OF_STORAGE and _NO_ROOM.search(str(error)):
        code = next(iter(_FULL))
    if code == CANNOT_CONNECT and error.__cause__ is not None:
        kind = _error_name(error.__cause__)
    if code in _LACKS_A_RIGHT:
        # The text names the user and the table, and quotes no values.
        return MissingRightError(WHAT, f"{error.args[-1]}; grant the right ({kind})")
    for codes, ours, problem in _MEANINGS:
        if code in codes:
            text = problem.format(kind)
            return InvalidInputError(text) if ours is InvalidInputError else ours(WHAT, text)
    if isinstance(error, LOST):
        return StorageUnavailableError(WHAT, f"cannot be reached ({kind})")
    return StorageError(WHAT, kind) if _is_permanent(error) else StorageUnavailableError(WHAT, kind)


def is_missing_right(error: MySQLError) -> bool:
    """Return True if the login has not the right to do this."""
    return _error_number(error) in _LACKS_A_RIGHT


def _is_permanent(error: MySQLError) -> bool:
    state = str(getattr(error, "sqlstate", None) or "")
    return (
        isinstance(error, _OF_THE_PROGRAM)
        or state.startswith(_PERMANENT_STATES)
        or _error_number(error) in _PERMANENT
    )


def _error_number(error: MySQLError) -> int:
    """Return the number of the error; 0 if it has none."""
    first = error.args[0] if error.args else 0
    return first if isinstance(first, int) else 0


def _error_name(error: BaseException) -> str:
    """Return the name and number of the error, without its text: that quotes keys and messages of people."""
    code = _error_number(error) if isinstance(error, MySQLError) else 0
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
