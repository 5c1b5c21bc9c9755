"""The PostgreSQL engine and its read-only form: the connection pool, dialect and limits.

Each transaction has a connection of the pool for itself. Time limits are set with every transaction, and no
setting is left on a connection. So the engine works behind a pooler that lends a server connection for one
transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import asyncpg

from gateway_sessions.errors import InvalidInputError
from gateway_sessions.storage.engines.migrations import require_current_schema
from gateway_sessions.storage.engines.postgresql.errors import FOREIGN, PLACE, TROUBLES, WHAT
from gateway_sessions.storage.engines.postgresql.notifications import (
    NO_ADDRESS,
    ListeningConnection,
    OwnConnector,
    PoolConnector,
    program_name_setting,
)
from gateway_sessions.storage.engines.postgresql.schema import migrate_database, read_schema_version
from gateway_sessions.storage.engines.postgresql.transaction import PostgresConnection, compose_queries
from gateway_sessions.storage.engines.protocol import FILE_ON_SERVERS
from gateway_sessions.storage.engines.search_column import TSVECTOR, TokenLanguage
from gateway_sessions.storage.engines.server.batching import GroupingDriver
from gateway_sessions.storage.engines.server.driver import ANY, USUAL, Lend, ServerLimits
from gateway_sessions.storage.engines.server.executor import Compose
from gateway_sessions.storage.engines.server.opened_engines import ReadingServerEngine, SharedServerEngine
from gateway_sessions.storage.tables.sql_files import Migration

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy


CACHED_STATEMENTS: Final = 512
"""Prepared statements per connection: enough for all queries, so that none is planned twice."""
_CLOSE_SECONDS: Final = 10.0
"""The time for which running transactions may go on when the engine stops."""


class PostgresDriver(GroupingDriver):
    """Runs transactions on a PostgreSQL database that other processes may use as well."""

    engine = "postgresql"
    troubles = TROUBLES
    index_language: TokenLanguage = TSVECTOR

    def __init__(
        self,
        database: str | asyncpg.Pool,
        *,
        limits: ServerLimits = USUAL,
        cached_statements: int = CACHED_STATEMENTS,
        migrations: Sequence[Migration] = (),
        jitter: Callable[[], float] = ANY,
    ) -> None:
        """Use the *database* at an address, or through a pool that its maker closes.

        Behind a pooler in transaction mode *cached_statements* must be 0, unless the pooler supports
        prepared ones.
        """
        super().__init__(limits=limits, migrations=migrations, jitter=jitter)
        self._database = database
        self._cached_statements = cached_statements

    @property
    def compose(self) -> Compose:
        """Return the function that composes several queries into one."""
        return compose_queries

    async def describe_blockers(self) -> str:
        """Return a sentence about connections whose locks others wait for; empty if there are none."""
        try:
            async with self._transaction(lambda link: link.begin_reading(view=False)) as link:
                return await cast("PostgresConnection", link).who_holds_locks()
        except FOREIGN as error:
            raise TROUBLES.translate(error) from error

    async def _connect(self, migrations: Sequence[Migration], cleanup: AsyncExitStack) -> Lend:
        pool = self._database
        if isinstance(pool, str):
            pool = await self._open_own_pool(pool, cleanup)
        async with pool.acquire(timeout=self._limits.acquire_seconds) as connection:
            await self._migrate(connection, migrations)
        return partial(_lend, pool, self._limits)

    async def _open_own_pool(self, address: str, cleanup: AsyncExitStack) -> asyncpg.Pool:
        try:
            pool = await asyncpg.create_pool(
                address,
                min_size=1,
                max_size=self._limits.connections,
                statement_cache_size=self._cached_statements,
                timeout=self._limits.acquire_seconds,
                command_timeout=self._limits.answer_seconds,
                reset=_skip_reset,
                server_settings=program_name_setting(address),
                connect=ConnectingOneByOne().connect,
            )
        except (ValueError, asyncpg.ClientConfigurationError):
            # The cause would quote the address, with the password in it.
            raise InvalidInputError(NO_ADDRESS) from None
        cleanup.push_async_callback(_close_pool, pool)
        return pool

    async def _migrate(self, connection: PoolConnectionProxy, migrations: Sequence[Migration]) -> None:
        """Migrate the database."""
        await migrate_database(connection, migrations)


class ConnectingOneByOne:
    """Opens connections as asyncpg does, but begins them one by one, with a pass of the loop in between.

    When a connection begins, asyncpg reads the certificates that the address names, on the loop. A list of
    all authorities takes long, and a pool that grows to its full size at once would block the loop for the
    sum.
    """

    def __init__(self) -> None:
        # Held while the loop does all else once: so connections begin one by one.
        self._turn = asyncio.Lock()

    async def connect(self, *arguments: Any, **options: Any) -> asyncpg.Connection:
        """Return a new connection, made with the arguments of `asyncpg.connect`."""
        async with self._turn:
            await asyncio.sleep(0)
        return await asyncpg.connect(*arguments, **options)


@asynccontextmanager
async def _lend(pool: asyncpg.Pool, limits: ServerLimits) -> AsyncGenerator[PostgresConnection]:
    connection = await pool.acquire(timeout=limits.acquire_seconds)
    try:
        yield PostgresConnection(connection, limits)
    finally:
        with suppress(*FOREIGN):  # the transaction has ended: an error here changes nothing
            await pool.release(connection)


async def _skip_reset(_: asyncpg.Connection) -> None:
    """Do nothing: settings end with their transaction, and a reset costs a round trip."""


async def _close_pool(pool: asyncpg.Pool) -> None:
    """Close the pool, and give running transactions a while to end."""
    with suppress(TimeoutError):
        await asyncio.wait_for(pool.close(), _CLOSE_SECONDS)


LEAST: Final = 2
"""The least size of a given pool: heartbeats keep one connection, the transactions need another one."""


class PostgresEngine(SharedServerEngine, PostgresDriver):
    """Owns the home of a database on a server, for one node of several."""

    place: str = PLACE

    def __init__(
        self,
        address: str,
        home: Path,
        *,
        limits: ServerLimits = USUAL,
        allow_network: bool,
        poll_only: bool = False,
        prepared_statements: bool = True,
        pool: object | None = None,
    ) -> None:
        """Take all connections from *pool* if one is given; its maker closes it."""
        given = None if pool is None else _check_pool(pool)
        kept = CACHED_STATEMENTS if prepared_statements else 0
        super().__init__(given or address, limits=limits, cached_statements=kept)
        self._home = home
        self._allow_network = allow_network
        wire = OwnConnector(address, self._limits) if given is None else PoolConnector(given, self._limits)
        self._side_connection = ListeningConnection(
            wire, self._limits, None if poll_only else self._pass_on_call
        )


def _check_pool(given: object) -> asyncpg.Pool[asyncpg.Record]:
    if not isinstance(given, asyncpg.Pool):
        problem = f"pool must be made by asyncpg.create_pool, not a {type(given).__name__}"
        raise InvalidInputError(problem)
    pool = cast("asyncpg.Pool[asyncpg.Record]", given)
    if pool.get_max_size() < LEAST:
        problem = f"pool needs {LEAST} connections or more: one of them says that the node lives"
        raise InvalidInputError(problem)
    return pool


class PostgresReadingEngine(ReadingServerEngine, PostgresDriver):
    """Reads a database that another process may own."""

    place: str = PLACE

    def __init__(
        self, address: str, home: Path, *, limits: ServerLimits = USUAL, prepared_statements: bool = True
    ) -> None:
        kept = CACHED_STATEMENTS if prepared_statements else 0
        super().__init__(address, limits=limits, cached_statements=kept)
        self.path: Path = home / FILE_ON_SERVERS

    async def _migrate(self, connection: PoolConnectionProxy, migrations: Sequence[Migration]) -> None:
        require_current_schema(WHAT, await read_schema_version(connection), migrations)
