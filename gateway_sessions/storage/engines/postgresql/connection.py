"""A PostgreSQL connection for one transaction, and several queries sent as one.

Connections to PostgreSQL, each in one transaction at a time.

Several queries said as one, which answers in one row: each question is a way to the server and back.
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
from gateway_sessions.storage.engines.postgresql.errors import FOREIGN, WHAT, is_end
from gateway_sessions.storage.engines.postgresql.locks import who_holds_locks
from gateway_sessions.storage.engines.server.driver import ServerLimits
from gateway_sessions.storage.engines.server.executor import DECLARED_DEAD
from gateway_sessions.storage.tables.queries import Query

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy


WRITE: Final = "READ COMMITTED"
READ: Final = "REPEATABLE READ READ ONLY"
"""How transactions see the work of others: writers all that is committed, readers one moment."""
_ROLL_BACK_SECONDS: Final = 2.0


class PostgresLink:
    """A connection of a pool until it is given back."""

    def __init__(self, connection: asyncpg.Connection | PoolConnectionProxy, limits: ServerLimits) -> None:
        self._connection = connection
        self._limits = limits

    async def begin_writing(self, lock: str | None, epoch: int | None) -> None:
        """Begin a transaction that has this lock; `NodeSilentError` if the node was declared dead."""
        await self.begin_together([] if lock is None else [lock], epoch)

    async def begin_together(self, held: Sequence[str], epoch: int | None) -> None:
        """Begin one that has all these locks, or the whole store if there are none."""
        try:
            await self._begin(WRITE, self._limits.idle_seconds, locks.entrance(held, epoch))
        except asyncpg.DivisionByZeroError:
            raise NodeSilentError(WHAT, DECLARED_DEAD) from None

    async def begin_reading(self, *, view: bool) -> None:
        """Begin a transaction that sees this moment until it ends."""
        if view:
            # The moment is that of the first statement.
            await self._begin(READ, self._limits.view_idle_seconds, "SELECT 1")
        else:
            await self._begin(READ, self._limits.idle_seconds)

    async def fetch(self, sql: str, params: Sequence[object]) -> Sequence[Row]:
        """The rows that a query finds."""
        return cast("Sequence[Row]", await self._connection.fetch(sql, *params))

    async def fetch_each(self, sql: str, params: Sequence[Sequence[object]]) -> Sequence[Row]:
        """The one row that a query answers with, for each of these rows of parameters: asked all at once."""
        return cast("Sequence[Row]", await self._connection.fetchmany(sql, params))

    async def change(self, sql: str, rows: Sequence[Sequence[object]]) -> int:
        """How many rows a statement has changed; of many at once, at most: it is not asked row by row."""
        if len(rows) == 1:
            return _count(await self._connection.execute(sql, *rows[0]))
        await self._connection.executemany(sql, rows)
        return len(rows)

    async def take(self, lock: str) -> None:
        """Wait until nobody else has the lock. By then all that was done under it can be seen."""
        await self._connection.execute(locks.TAKE, locks.number_of(lock))

    async def take_all(self, wanted: Sequence[str]) -> None:
        """The same for several locks, which are taken in one order everywhere."""
        await self._connection.execute(locks.take_all(wanted))

    async def who_holds_locks(self) -> str:
        """Which other connections hold locks, in words."""
        return await who_holds_locks(self._connection)

    async def commit(self) -> None:
        """End the transaction: what it has done stands."""
        await self._connection.execute("COMMIT")

    async def undo(self, error: BaseException) -> None:
        """Roll back, whoever was cancelled; a connection that cannot even do that is thrown away."""
        if is_end(error):
            self.close()
            return
        try:
            with anyio.fail_after(_ROLL_BACK_SECONDS, shield=True), suppress(asyncpg.InterfaceError):
                await self._connection.execute("ROLLBACK")
        except FOREIGN:
            self.close()

    def close(self) -> None:
        """Hang up: the server undoes what was not committed."""
        with suppress(asyncpg.InterfaceError):  # the pool may have thrown it away already
            self._connection.terminate()

    async def _begin(self, isolation: str, idle_seconds: float, entrance: str = "") -> None:
        # One message: BEGIN costs no round trip more for the limits and the first locks.
        await self._connection.execute(
            f"BEGIN ISOLATION LEVEL {isolation};"
            f"SET LOCAL statement_timeout = {_millis(self._limits.statement_seconds)};"
            f"SET LOCAL lock_timeout = {_millis(self._limits.lock_seconds)};"
            f"SET LOCAL idle_in_transaction_session_timeout = {_millis(idle_seconds)};"
            f"{entrance}"
        )


def _millis(seconds: float) -> int:
    return round(seconds * 1000)


def _count(status: str) -> int:
    """The number of rows at the end of what the server says was done: `INSERT 0 1`."""
    return int(status.rsplit(" ", 1)[-1])


_PARAMETER: Final = re.compile(r"\$(\d+)")


@cache
def as_one(queries: tuple[Query, ...]) -> str:
    """A query with a column for each of these: all rows that it finds, or how many it has changed.

    Its parameters are theirs, one after the other. All see the moment before any has changed anything.
    """
    changes: list[str] = []
    columns: list[str] = []
    before = 0
    for number, query in enumerate(queries):
        sql, places = _moved(query.sql, before)
        before += places
        if query.reads:
            columns.append(f"ARRAY(SELECT ROW(found.*) FROM ({sql}) AS found)")  # noqa: S608 -- ours
        else:
            changes.append(f"changed_{number} AS ({sql} RETURNING 1)")
            columns.append(f"(SELECT count(*) FROM changed_{number})")  # noqa: S608 -- ours
    beginning = f"WITH {', '.join(changes)} " if changes else ""
    return f"{beginning}SELECT {', '.join(columns)}"


def _moved(sql: str, before: int) -> tuple[str, int]:
    """The query with so many parameters before its own, and how many those are."""
    numbers: Sequence[int] = [int(one) for one in _PARAMETER.findall(sql)]
    return _PARAMETER.sub(lambda found: f"${int(found[1]) + before}", sql), max(numbers, default=0)
