"""A database that many processes may use: each verb is a transaction on a connection of a pool.

Everything holds behind a pooler that lends a server connection for one transaction: time limits are set with
every transaction, and nothing is left on a connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from random import SystemRandom
from typing import TYPE_CHECKING, Final, TypeVar

import anyio
import asyncpg
from anyio.abc import TaskGroup

from gateway_sessions.core.news import News
from gateway_sessions.errors import InvalidInputError, StorageUnavailableError, StoreStoppedError
from gateway_sessions.failpoints import failpoint
from gateway_sessions.ports import Reader, Row, Statement, Verb, VerbFactory
from gateway_sessions.storage.drivers.postgresql_errors import (
    FOREIGN,
    LOST,
    OVERTAKEN,
    WHAT,
    is_end,
    translate,
)
from gateway_sessions.storage.drivers.postgresql_schema import prepare
from gateway_sessions.storage.in_thread import in_thread
from gateway_sessions.storage.queries import Migration, Query, load_migrations, load_queries

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

ENGINE: Final = "postgresql"
CACHED_STATEMENTS: Final = 512
"""Room for all queries, so that none is planned twice on a connection."""
WRITE: Final = "READ COMMITTED"
READ: Final = "REPEATABLE READ READ ONLY"
"""How transactions see the work of others: writers all that is committed, readers one moment."""
_ANY: Final = SystemRandom()
_NO_ADDRESS: Final = "this is no address of a PostgreSQL database: postgresql://user@host:5432/name"
_FIRST_PAUSE: Final = 0.01
_ROLL_BACK_SECONDS: Final = 2.0
_CLOSE_SECONDS: Final = 10.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Limits:
    """How long anything may take before the server breaks it off, and how much is asked of it at once."""

    statement_seconds: float = 5.0
    lock_seconds: float = 2.0
    idle_seconds: float = 5.0
    """A transaction that does nothing holds its locks, and old rows that nobody can clear away."""
    view_idle_seconds: float = 60.0
    """Whoever reads page by page does something with each page."""
    acquire_seconds: float = 5.0
    connections: int = 8
    attempts: int = 6
    """How often a verb is run that others overtake."""


class PostgresDriver:
    """Runs verbs on a PostgreSQL database, which others may use as well."""

    def __init__(
        self,
        database: str | asyncpg.Pool,
        *,
        limits: Limits = Limits(),
        cached_statements: int = CACHED_STATEMENTS,
        migrations: Sequence[Migration] = (),
        jitter: Callable[[], float] = _ANY.random,
    ) -> None:
        """*database* is an address, or a pool that somebody else closes.

        Behind a pooler in transaction mode, 0 *cached_statements* are right, unless it knows prepared ones.
        """
        self._database = database
        self._limits = limits
        self._cached_statements = cached_statements
        self._migrations = migrations
        self._jitter = jitter
        self._queries: Mapping[str, Query] = {}
        self._pool: asyncpg.Pool | None = None
        self.changes = 0
        """How often this process has changed the truth behind sessions.json since it was opened."""
        self.on_change: Callable[[], None] = lambda: None
        """Called after a commit of this process that has changed what sessions.json shows."""
        self.on_news: Callable[[Sequence[News]], None] = lambda _: None
        """Called with what commits of this process have brought about."""

    async def start(self, tasks: TaskGroup, cleanup: AsyncExitStack) -> None:
        """Connect and bring the database up to date; *cleanup* closes everything again."""
        self._queries = await in_thread(partial(load_queries, ENGINE))
        migrations = self._migrations or await in_thread(partial(load_migrations, ENGINE))
        pool = self._database
        if isinstance(pool, str):
            pool = await self._connect(pool, cleanup)
        try:
            async with pool.acquire(timeout=self._limits.acquire_seconds) as connection:
                await prepare(connection, migrations)
        except FOREIGN as error:
            raise translate(error) from error
        cleanup.callback(self._stop)
        self._pool = pool

    async def write(self, verb: VerbFactory[T]) -> T:
        """Run a verb in a transaction; when this returns, the outcome is durable.

        Cancelled while it runs, it is undone; cancelled while it commits, nobody knows.
        """
        try:
            for attempt in range(1, self._limits.attempts):
                with suppress(*OVERTAKEN):
                    return await self._write(verb)
                await asyncio.sleep(_FIRST_PAUSE * 2**attempt * (0.5 + self._jitter()))
            return await self._write(verb)
        except FOREIGN as error:
            raise translate(error) from error

    async def change(self, statement: Statement) -> int:
        """Run one changing statement, durably; how many rows it has changed. The shortest of verbs."""
        return await self.write(lambda: _only(statement))

    async def read(self, verb: VerbFactory[T]) -> T:
        """Run a verb that changes nothing; it sees everything acknowledged before."""
        try:
            async with self._transaction(READ, self._limits.idle_seconds) as connection:
                return await _Run(connection, self._queries).drive(verb())
        except FOREIGN as error:
            raise translate(error) from error

    @asynccontextmanager
    async def view(self) -> AsyncGenerator[Reader]:
        """A reader of its own whose verbs all see the same moment; it has a connection for as long."""
        async with AsyncExitStack() as stack:
            try:
                transaction = self._transaction(READ, self._limits.view_idle_seconds)
                connection = await stack.enter_async_context(transaction)
                await connection.execute("SELECT 1")  # the moment is that of the first statement
            except FOREIGN as error:
                raise translate(error) from error
            yield _View(_Run(connection, self._queries))

    async def _write(self, verb: VerbFactory[T]) -> T:
        async with self._transaction(WRITE, self._limits.idle_seconds) as connection:
            run = _Run(connection, self._queries)
            result = await run.drive(verb())
            failpoint("before_commit")
        failpoint("after_commit")
        if run.changed_index:
            self.changes += 1
            self.on_change()
        if run.news:
            self.on_news(run.news)
        return result

    @asynccontextmanager
    async def _transaction(self, isolation: str, idle_seconds: float) -> AsyncGenerator[PoolConnectionProxy]:
        """A transaction on a connection of its own: committed at the end, undone after any error."""
        if self._pool is None:
            raise StoreStoppedError("database")
        async with self._pool.acquire(timeout=self._limits.acquire_seconds) as connection:
            try:
                # One message: BEGIN costs no round trip more for the limits.
                await connection.execute(
                    f"BEGIN ISOLATION LEVEL {isolation};"
                    f"SET LOCAL statement_timeout = {_millis(self._limits.statement_seconds)};"
                    f"SET LOCAL lock_timeout = {_millis(self._limits.lock_seconds)};"
                    f"SET LOCAL idle_in_transaction_session_timeout = {_millis(idle_seconds)}"
                )
                yield connection
                await _commit(connection)
            except BaseException as error:
                await _undo(connection, error)
                raise

    async def _connect(self, address: str, cleanup: AsyncExitStack) -> asyncpg.Pool:
        try:
            pool = await asyncpg.create_pool(
                address,
                min_size=1,
                max_size=self._limits.connections,
                statement_cache_size=self._cached_statements,
                timeout=self._limits.acquire_seconds,
                reset=_nothing_to_reset,
            )
        except (ValueError, asyncpg.ClientConfigurationError):
            # The cause would quote the address, with the password in it.
            raise InvalidInputError(_NO_ADDRESS) from None
        except FOREIGN as error:
            raise translate(error) from error
        cleanup.push_async_callback(_close, pool)
        return pool

    def _stop(self) -> None:
        self._pool = None


class _Run:
    """One verb after the other on a connection, and what they leave behind."""

    def __init__(self, connection: PoolConnectionProxy, queries: Mapping[str, Query]) -> None:
        self._connection = connection
        self._queries = queries
        self.changed_index = False
        self.news: tuple[News, ...] = ()

    async def drive(self, verb: Verb[T]) -> T:
        """Run the verb to its end."""
        try:
            statement = next(verb)
            while True:
                statement = verb.send(await self._execute(statement))
        except StopIteration as stop:
            result: T = stop.value
            return result
        finally:
            verb.close()

    async def _execute(self, statement: Statement) -> Sequence[Row]:
        query = self._queries[statement.name]
        if query.reads:
            rows = await self._connection.fetch(query.sql, *statement.params)
            return [tuple(row) for row in rows]
        if statement.many is None:
            changed = _count(await self._connection.execute(query.sql, *statement.params))
        else:
            await self._connection.executemany(query.sql, statement.many)
            changed = len(statement.many)  # at most: the server is not asked row by row
        if changed:
            self.changed_index |= query.changes_index
            self.news += (statement.news,) if statement.news is not None else ()
        return ((changed,),)


class _View:
    """Reads on one connection whose transaction stays open, one verb at a time."""

    def __init__(self, run: _Run) -> None:
        self._run = run
        self._turn = asyncio.Lock()

    async def read(self, verb: VerbFactory[T]) -> T:
        """Run a verb that changes nothing."""
        async with self._turn:
            try:
                return await self._run.drive(verb())
            except FOREIGN as error:
                raise translate(error) from error


def _only(statement: Statement) -> Verb[int]:
    rows = yield statement
    return int(rows[0][0])


def _count(status: str) -> int:
    """The number of rows at the end of what the server says was done: `INSERT 0 1`."""
    return int(status.rsplit(" ", 1)[-1])


def _millis(seconds: float) -> int:
    return round(seconds * 1000)


async def _commit(connection: PoolConnectionProxy) -> None:
    try:
        await connection.execute("COMMIT")
    except LOST as error:
        problem = "the connection was lost while a change was committed; it may stand or not"
        raise StorageUnavailableError(WHAT, problem) from error


async def _undo(connection: PoolConnectionProxy, error: BaseException) -> None:
    """Roll back, whoever was cancelled; a connection that cannot even do that is thrown away."""
    with suppress(asyncpg.InterfaceError):  # the pool may have thrown it away already
        if is_end(error):
            connection.terminate()
            return
        try:
            with anyio.fail_after(_ROLL_BACK_SECONDS, shield=True):
                await connection.execute("ROLLBACK")
        except FOREIGN:
            connection.terminate()


async def _nothing_to_reset(_: asyncpg.Connection) -> None:
    """Whatever a transaction has set ended with it: asking the server to forget more costs a round trip."""


async def _close(pool: asyncpg.Pool) -> None:
    """Let what runs come to its end, for a while."""
    with suppress(TimeoutError):
        await asyncio.wait_for(pool.close(), _CLOSE_SECONDS)
