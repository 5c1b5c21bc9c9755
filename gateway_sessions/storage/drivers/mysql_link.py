"""Connections to MySQL and MariaDB: what is set on them, and the statements that the server knows there.

Statements are prepared by the server and get their values apart: nothing is ever quoted or escaped here, so
it does not matter what the server takes for a quote.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final, cast

import anyio

from gateway_sessions.errors import (
    InvalidInputError,
    NodeSilentError,
    StorageCorruptError,
    StorageUnavailableError,
)
from gateway_sessions.ports import Row
from gateway_sessions.storage.drivers import mysql_locks as locks
from gateway_sessions.storage.drivers.limits import Limits
from gateway_sessions.storage.drivers.mysql_asyncmy import (
    CHARSET,
    Connection,
    MySQLError,
    NotSupportedError,
    Pool,
    Prepared,
    Result,
)
from gateway_sessions.storage.drivers.mysql_errors import FOREIGN, ONE_AT_A_TIME, WHAT, is_end
from gateway_sessions.storage.drivers.mysql_rows import filled, portions
from gateway_sessions.storage.drivers.mysql_settings import Phrases, phrases, settings
from gateway_sessions.storage.drivers.troubles import DECLARED_DEAD

_ROLL_BACK_SECONDS: Final = 2.0
_UPSERT: Final = "ON DUPLICATE KEY"
_UNPROTECTED: Final = "a login with a password needs ssl-mode=REQUIRED, a socket, or the package cryptography"


class Link:
    """A connection with the statements that the server knows there."""

    def __init__(
        self, connection: Connection, seconds: float, most_statements: int, phrases: Phrases
    ) -> None:
        self._connection = connection
        self._seconds = seconds
        self._most_statements = most_statements
        self._phrases = phrases
        self._known: dict[str, Prepared] = {}
        self._takes_many = True
        """Whether the server has not said yet that it takes one row at a time."""

    def patient(self, seconds: float) -> Link:
        """The same connection for what may take long."""
        return Link(self._connection, seconds, self._most_statements, self._phrases)

    async def say(self, text: str) -> list[Sequence[Row]]:
        """Run statements without values, all at once; the rows that each of them finds."""
        return await _said(self._connection, text, self._seconds)

    async def begin_writing(self, lock: str | None, epoch: int | None) -> None:
        """Begin a transaction that has this lock; `NodeSilentError` if the node was declared dead."""
        entrance = locks.entrance(lock)
        asked = () if epoch is None else (locks.living(epoch),)
        answers = await self.say("; ".join((self._phrases.write, *entrance, *asked)))
        found = answers[-len(entrance) - len(asked) :]
        for locked in found[: len(entrance)]:
            _must_exist(locked)
        if asked and not found[-1]:
            raise NodeSilentError(WHAT, DECLARED_DEAD)

    async def begin_aside(self) -> None:
        """Begin a transaction that waits for no lock by name."""
        await self.say(self._phrases.write)

    async def begin_reading(self, *, view: bool) -> None:
        """Begin a transaction that sees this moment until it ends. How long that may be is set already."""
        del view
        await self.say(self._phrases.read)

    async def take(self, lock: str) -> None:
        """Wait until nobody else has the lock. By then all that was done under it can be seen."""
        _must_exist(await self.fetch(locks.TAKE, (locks.number_of(lock),)))

    async def fetch(self, sql: str, params: Sequence[object] = ()) -> Sequence[Row]:
        """The rows that a query finds. Whatever is stored is text: a key is merely compared as bytes."""
        rows = (await self._run(sql, params)).rows or ()
        return [tuple(map(_as_text, row)) if bytes in map(type, row) else row for row in rows]

    async def change(self, sql: str, rows: Sequence[Sequence[object]]) -> int:
        """How many rows a statement has changed, run with each of these rows of values."""
        changed = 0
        for some in portions(rows):
            at_once = await self._change_at_once(sql, some)
            changed += await self._change_one_by_one(sql, some) if at_once is None else at_once
        return changed

    async def commit(self) -> None:
        """End the transaction: what it has done stands."""
        await self.say(self._phrases.commit)

    async def undo(self, error: BaseException) -> None:
        """Roll back; a connection that cannot do that, or of which nobody knows where it is, is closed."""
        if _ends(error):
            self.close()
            return
        try:
            with anyio.CancelScope(shield=True):
                await _said(self._connection, self._phrases.roll_back, _ROLL_BACK_SECONDS)
        except FOREIGN:
            self.close()

    def close(self) -> None:
        """Hang up: the server undoes what was not committed."""
        self._known.clear()
        self._connection.close()

    async def _change_at_once(self, sql: str, rows: Sequence[Sequence[object]]) -> int | None:
        """The same in one message, which MariaDB takes; None if it cannot be done so, and was not."""
        if not self._takes_many or len(rows) == 1:
            return None
        said, values = filled(sql, rows)
        try:
            result = await self._use(said, lambda statement: statement.execute_bulk(values))
        except NotSupportedError:
            self._takes_many = False
            return None
        except MySQLError as error:
            if error.args[0] != ONE_AT_A_TIME:
                raise
            return None
        except (
            OverflowError,
            UnicodeEncodeError,
        ):  # values of several kinds; or which one is wrong, is told below
            return None
        return min(result.affected_rows, len(rows)) if _UPSERT in sql else result.affected_rows

    async def _change_one_by_one(self, sql: str, rows: Sequence[Sequence[object]]) -> int:
        changed = 0
        for params in rows:
            affected = (await self._run(sql, params)).affected_rows
            # A row that was there already is counted twice.
            changed += min(affected, 1) if _UPSERT in sql else affected
        return changed

    async def _run(self, sql: str, params: Sequence[object]) -> Result:
        return await self._use(sql, lambda statement: statement.execute(tuple(params)))

    async def _use(self, sql: str, ask: Callable[[Prepared], Awaitable[Result]]) -> Result:
        try:
            async with asyncio.timeout(self._seconds):
                statement = self._known.pop(sql, None) or await self._connection.prepare(sql)
                self._known[sql] = statement  # the last that may be forgotten
                if len(self._known) > self._most_statements:
                    await self._forget_one()
                return await ask(statement)
        except UnicodeEncodeError:
            raise
        except ValueError as error:
            problem = "a number has more than 64 bits"
            raise OverflowError(problem) from error

    async def _forget_one(self) -> None:
        oldest = next(iter(self._known))
        await self._known.pop(oldest).close()


class Links:
    """Lends the connections of a pool, each set up once."""

    def __init__(self, pool: Pool, limits: Limits, most_statements: int) -> None:
        self._pool = pool
        self._limits = limits
        self._most_statements = max(most_statements, 1)
        self._links: dict[tuple[Connection, int], Link] = {}
        """By the connection, and by what the server calls it: somebody may have made it anew."""

    @asynccontextmanager
    async def lent(self) -> AsyncGenerator[Link]:
        """A connection that is ours alone until the end of the block."""
        connection = await borrowed(self._pool, self._limits)
        try:
            key = (connection, connection.thread_id())
            if key not in self._links:
                self._forget_the_closed()
                self._links[key] = await self._set_up(connection)
            yield self._links[key]
        finally:
            self._pool.release(connection)  # one that was closed is replaced

    def _forget_the_closed(self) -> None:
        self._links = {key: link for key, link in self._links.items() if key[0].connected}

    async def _set_up(self, connection: Connection) -> Link:
        if connection.character_set_name() != CHARSET:
            problem = f"the connections of the pool must be made with charset={CHARSET!r}"
            raise InvalidInputError(problem)
        seconds = self._limits.answer_seconds
        try:
            *_, found = await _said(connection, settings(self._limits), seconds)
        except BaseException:
            connection.close()
            raise
        return Link(connection, seconds, self._most_statements, phrases(self._limits, str(found[0][0])))


async def borrowed(pool: Pool, limits: Limits) -> Connection:
    """A connection of a pool, in time."""
    try:
        # Cancelled again at every pause: while it connects, asyncmy may fail to notice that it was once.
        with anyio.fail_after(limits.acquire_seconds):
            return cast("Connection", await pool.acquire())
    except RuntimeError as error:  # the pool is closed, or a way to log in needs a package
        problem = _UNPROTECTED if "cryptography" in str(error) else str(error)
        raise StorageUnavailableError(WHAT, problem) from error


async def _said(connection: Connection, text: str, seconds: float) -> list[Sequence[Row]]:
    async with asyncio.timeout(seconds):
        cursor = connection.cursor()
        await cursor.execute(text)
        answers = [await cursor.fetchall()]
        while await cursor.nextset():
            answers.append(await cursor.fetchall())
    return answers


def _ends(error: BaseException) -> bool:
    """Whether a connection on which this happened cannot be used again.

    Somebody was cancelled: perhaps while an answer was on its way, which nobody would read.
    """
    return isinstance(error, asyncio.CancelledError) or is_end(error)


def _must_exist(found: Sequence[Row]) -> None:
    if not found:  # whoever finds nothing to lock has locked nothing
        raise StorageCorruptError(WHAT, "table locks lacks rows; bring them back from a copy of the database")


def _as_text(value: object) -> object:
    return value.decode() if isinstance(value, bytes) else value
