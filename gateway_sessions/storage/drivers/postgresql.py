"""A PostgreSQL database that many processes may use: each verb is a transaction on a connection of a pool.

Everything holds behind a pooler that lends a server connection for one transaction: time limits are set with
every transaction, and nothing is left on a connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

import asyncpg

from gateway_sessions.errors import InvalidInputError
from gateway_sessions.storage.drivers.grouping import GroupingDriver
from gateway_sessions.storage.drivers.limits import USUAL, Limits
from gateway_sessions.storage.drivers.postgresql_errors import FOREIGN, TROUBLES
from gateway_sessions.storage.drivers.postgresql_line import NO_ADDRESS, introduced
from gateway_sessions.storage.drivers.postgresql_link import PostgresLink
from gateway_sessions.storage.drivers.postgresql_schema import prepare
from gateway_sessions.storage.drivers.postgresql_together import as_one
from gateway_sessions.storage.drivers.run import Compose
from gateway_sessions.storage.drivers.server import ANY, Lend
from gateway_sessions.storage.queries import Migration
from gateway_sessions.storage.search_column.languages import TSVECTOR, Language

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

CACHED_STATEMENTS: Final = 512
"""Room for all queries, so that none is planned twice on a connection."""
_CLOSE_SECONDS: Final = 10.0


class PostgresDriver(GroupingDriver):
    """Runs verbs on a PostgreSQL database, which others may use as well."""

    engine = "postgresql"
    troubles = TROUBLES
    index_language: Language = TSVECTOR

    def __init__(
        self,
        database: str | asyncpg.Pool,
        *,
        limits: Limits = USUAL,
        cached_statements: int = CACHED_STATEMENTS,
        migrations: Sequence[Migration] = (),
        jitter: Callable[[], float] = ANY,
    ) -> None:
        """*database* is an address, or a pool that somebody else closes.

        Behind a pooler in transaction mode, 0 *cached_statements* are right, unless it knows prepared ones.
        """
        super().__init__(limits=limits, migrations=migrations, jitter=jitter)
        self._database = database
        self._cached_statements = cached_statements

    @property
    def compose(self) -> Compose:
        """How this server is asked several things at once."""
        return as_one

    async def blockers(self) -> str:
        """Who holds locks that others wait for, in words; empty if nobody does."""
        try:
            async with self._transaction(lambda link: link.begin_reading(view=False)) as link:
                return await cast("PostgresLink", link).who_holds_locks()
        except FOREIGN as error:
            raise TROUBLES.translate(error) from error

    async def _connect(self, migrations: Sequence[Migration], cleanup: AsyncExitStack) -> Lend:
        pool = self._database
        if isinstance(pool, str):
            pool = await self._own_pool(pool, cleanup)
        async with pool.acquire(timeout=self._limits.acquire_seconds) as connection:
            await self._prepare(connection, migrations)
        return partial(_lent, pool, self._limits)

    async def _own_pool(self, address: str, cleanup: AsyncExitStack) -> asyncpg.Pool:
        try:
            pool = await asyncpg.create_pool(
                address,
                min_size=1,
                max_size=self._limits.connections,
                statement_cache_size=self._cached_statements,
                timeout=self._limits.acquire_seconds,
                command_timeout=self._limits.answer_seconds,
                reset=_nothing_to_reset,
                server_settings=introduced(address),
                connect=OneAfterTheOther().connect,
            )
        except (ValueError, asyncpg.ClientConfigurationError):
            # The cause would quote the address, with the password in it.
            raise InvalidInputError(NO_ADDRESS) from None
        cleanup.push_async_callback(_close, pool)
        return pool

    async def _prepare(self, connection: PoolConnectionProxy, migrations: Sequence[Migration]) -> None:
        """Bring the database up to date."""
        await prepare(connection, migrations)


class OneAfterTheOther:
    """Connects as asyncpg does, but begins one connection at a time: between them the loop does all else.

    As one begins, asyncpg reads the certificates that the address names, on the loop. A list of all
    authorities takes so long that a pool which grows to its full size at once would keep the loop too long.
    """

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def connect(self, *arguments: Any, **options: Any) -> asyncpg.Connection:
        """A connection, made from what asyncpg is given."""
        async with self._turn:
            await asyncio.sleep(0)
        return await asyncpg.connect(*arguments, **options)


@asynccontextmanager
async def _lent(pool: asyncpg.Pool, limits: Limits) -> AsyncGenerator[PostgresLink]:
    connection = await pool.acquire(timeout=limits.acquire_seconds)
    try:
        yield PostgresLink(connection, limits)
    finally:
        with suppress(*FOREIGN):  # whatever was done on it is over by now
            await pool.release(connection)


async def _nothing_to_reset(_: asyncpg.Connection) -> None:
    """Whatever a transaction has set ended with it: asking the server to forget more costs a round trip."""


async def _close(pool: asyncpg.Pool) -> None:
    """Let what runs come to its end, for a while."""
    with suppress(TimeoutError):
        await asyncio.wait_for(pool.close(), _CLOSE_SECONDS)
