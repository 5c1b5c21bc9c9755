"""A PostgreSQL connection for one transaction, and several queries sent as one.

Each query is a round trip to the server. So queries that need nothing of each other are composed into one,
which answers in one row.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Final, cast

import anyio
import asyncpg

from gateway_sessions.errors import NodeSilentError
from gateway_sessions.ports import Row
from gateway_sessions.storage.engines.postgresql import locks
from gateway_sessions.storage.engines.postgresql.errors import FOREIGN, WHAT, ends_connection
from gateway_sessions.storage.engines.postgresql.locks import who_holds_locks
from gateway_sessions.storage.engines.server.driver import ServerLimits
from gateway_sessions.storage.engines.server.executor import DECLARED_DEAD
from gateway_sessions.storage.tables.sql_files import Query

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy


WRITE: Final = "READ COMMITTED"
READ: Final = "REPEATABLE READ READ ONLY"
"""A writing transaction sees all that is committed; a reading one sees one snapshot."""
_ROLL_BACK_SECONDS: Final = 2.0
"""A connection that does not roll back in that time is closed, which rolls back as well."""


class PostgresConnection:
    """Runs one transaction of the database on a connection of the pool."""

    def __init__(self, connection: asyncpg.Connection | PoolConnectionProxy, limits: ServerLimits) -> None:
        self._connection = connection
        self._limits = limits

    async def begin_writing(self, lock: str | None, epoch: int | None) -> None:
        """Begin to write under this lock; raise `NodeSilentError` if the node was declared dead."""
        await self.begin_together([] if lock is None else [lock], epoch)

    async def begin_together(self, held: Sequence[str], epoch: int | None) -> None:
        """Begin to write under all these locks, or under the lock of the store if there are none."""
        try:
            await self._begin_transaction(
                WRITE, self._limits.idle_seconds, locks.first_lock_queries(held, epoch)
            )
        except asyncpg.DivisionByZeroError:
            raise NodeSilentError(WHAT, DECLARED_DEAD) from None

    async def begin_reading(self, *, view: bool) -> None:
        """Begin to read one snapshot; a *view* may be idle for longer."""
        if view:
            # PostgreSQL takes the snapshot at the first statement, and a view must have it now.
            await self._begin_transaction(READ, self._limits.view_idle_seconds, "SELECT 1")
        else:
            await self._begin_transaction(READ, self._limits.idle_seconds)

    async def fetch(self, sql: str, params: Sequence[object]) -> Sequence[Row]:
        """Return the rows that a query finds."""
        return cast("Sequence[Row]", await self._connection.fetch(sql, *params))

    async def fetch_each(self, sql: str, params: Sequence[Sequence[object]]) -> Sequence[Row]:
        """Return the only row of a query for each row of parameters, all in one round trip."""
        return cast("Sequence[Row]", await self._connection.fetchmany(sql, params))

    async def change(self, sql: str, rows: Sequence[Sequence[object]]) -> int:
        """Run a statement with each of these rows; return how many rows of the table it has changed.

        With several rows the answer is an upper bound, their number: the driver does not report it row by
        row.
        """
        if len(rows) == 1:
            return _changed_rows_of(await self._connection.execute(sql, *rows[0]))
        await self._connection.executemany(sql, rows)
        return len(rows)

    async def take_lock(self, lock: str) -> None:
        """Wait until no other transaction has the lock, and take it. Its changes are visible then."""
        await self._connection.execute(locks.TAKE, locks.lock_number(lock))

    async def take_locks(self, wanted: Sequence[str]) -> None:
        """Take several locks in one round trip, in the order that all transactions keep."""
        await self._connection.execute(locks.take_locks_query(wanted))

    async def who_holds_locks(self) -> str:
        """Return a sentence about the other connections that hold locks."""
        return await who_holds_locks(self._connection)

    async def commit(self) -> None:
        """Commit the transaction of the database."""
        await self._connection.execute("COMMIT")

    async def roll_back_after(self, error: BaseException) -> None:
        """Roll back after *error*, even if the caller was cancelled; if that fails, close the connection."""
        if ends_connection(error):
            self.close()
            return
        try:
            with anyio.fail_after(_ROLL_BACK_SECONDS, shield=True), suppress(asyncpg.InterfaceError):
                await self._connection.execute("ROLLBACK")
        except FOREIGN:
            self.close()

    def close(self) -> None:
        """Close the connection: the server rolls back what was not committed."""
        with suppress(asyncpg.InterfaceError):  # the pool may have thrown it away already
            self._connection.terminate()

    async def _begin_transaction(self, isolation: str, idle_seconds: float, entrance: str = "") -> None:
        # All in one message: the limits and the first locks cost no round trip of their own.
        await self._connection.execute(
            f"BEGIN ISOLATION LEVEL {isolation};"
            f"SET LOCAL statement_timeout = {_millis(self._limits.statement_seconds)};"
            f"SET LOCAL lock_timeout = {_millis(self._limits.lock_seconds)};"
            f"SET LOCAL idle_in_transaction_session_timeout = {_millis(idle_seconds)};"
            f"{entrance}"
        )


def _millis(seconds: float) -> int:
    return round(seconds * 1000)


def _changed_rows_of(status: str) -> int:
    """Return the number at the end of a status such as `INSERT 0 1`."""
    return int(status.rsplit(" ", 1)[-1])


_PARAMETER: Final = re.compile(r"\$(\d+)")


@cache
def compose_queries(queries: tuple[Query, ...]) -> str:
    """Return one query with a column for each of these: the rows that it finds, or how many it has changed.

    Its parameters are those of the queries, one after the other. All queries see the snapshot before any of
    their changes.
    """
    changes: list[str] = []
    columns: list[str] = []
    before = 0
    for number, query in enumerate(queries):
        sql, places = _renumber_parameters(query.sql, before)
        before += places
        if query.reads:
            columns.append(f"ARRAY(SELECT ROW(found.*) FROM ({sql}) AS found)")  # noqa: S608 -- ours
        else:
            changes.append(f"changed_{number} AS ({sql} RETURNING 1)")
            columns.append(f"(SELECT count(*) FROM changed_{number})")  # noqa: S608 -- ours
    beginning = f"WITH {', '.join(changes)} " if changes else ""
    return f"{beginning}SELECT {', '.join(columns)}"


def _renumber_parameters(sql: str, before: int) -> tuple[str, int]:
    """Return the query with its parameters renumbered behind *before* others, and how many it has."""
    numbers: Sequence[int] = [int(one) for one in _PARAMETER.findall(sql)]
    return _PARAMETER.sub(lambda found: f"${int(found[1]) + before}", sql), max(numbers, default=0)
