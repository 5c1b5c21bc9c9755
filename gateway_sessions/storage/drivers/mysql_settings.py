"""What is set on connections to MySQL and MariaDB, and what begins and ends a transaction there."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from gateway_sessions.storage.drivers.limits import Limits

MARIADB: Final = "MariaDB"
MYSQL: Final = "MySQL"
SQL_MODE: Final = (
    "STRICT_ALL_TABLES,ONLY_FULL_GROUP_BY,NO_ENGINE_SUBSTITUTION,"
    "NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO"
)
"""A value that does not fit is refused, never cut: half a key would be somebody else's. Of strictness without
the last three, which matter to nothing here, MySQL warns every connection."""
_WRITE: Final = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION READ WRITE"
_READ: Final = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
)
"""How transactions see the work of others: writers all that is committed, readers one moment."""


@dataclass(frozen=True, slots=True)
class Phrases:
    """What a server is told where a transaction begins and ends."""

    write: str = _WRITE
    read: str = _READ
    commit: str = "COMMIT"
    roll_back: str = "ROLLBACK"


def settings(limits: Limits) -> str:
    """What is set on every connection; the last answer says the version of the server.

    What only one of the servers knows stands in a comment of its kind.
    """
    locks = max(1, math.ceil(limits.lock_seconds))
    idle, idle_view = _idle(limits)
    return (
        f"SET SESSION sql_mode = '{SQL_MODE}', collation_connection = utf8mb4_bin, autocommit = 1, "
        f"innodb_lock_wait_timeout = {locks}, lock_wait_timeout = {locks} "
        f"/*M! , max_statement_time = {limits.statement_seconds}, idle_write_transaction_timeout = {idle}, "
        f"idle_readonly_transaction_timeout = {idle_view} */ "
        f"/*!50708 , max_execution_time = {round(limits.statement_seconds * 1000)} */; SELECT version()"
    )


def phrases(limits: Limits, version: str) -> Phrases:
    """What begins and ends transactions on a server of that version.

    MySQL breaks off no transaction that does nothing, only a connection: so the time that it gives to a
    connection is that of the transaction for as long as one lasts. It comes and goes in the same messages.
    """
    if kind_of(version) == MARIADB:
        return Phrases()
    idle, idle_view = _idle(limits)
    ended = "; SET SESSION wait_timeout = DEFAULT"
    return Phrases(
        f"SET SESSION wait_timeout = {idle}; {_WRITE}",
        f"SET SESSION wait_timeout = {idle_view}; {_READ}",
        f"COMMIT{ended}",
        f"ROLLBACK{ended}",
    )


def kind_of(version: str) -> str:
    """Which of the two says of itself that it has that version."""
    return MARIADB if "mariadb" in version.lower() else MYSQL


def _idle(limits: Limits) -> tuple[int, int]:
    """How many seconds a transaction may do nothing: one that writes, and one that reads."""
    return max(1, math.ceil(limits.idle_seconds)), max(1, math.ceil(limits.view_idle_seconds))
