"""The MySQL and MariaDB engine and its read-only form, with the connection that sends heartbeats.

Each transaction has a connection of the pool for itself. Every connection is set up once, before its first
transaction, and no transaction leaves a setting of its own behind. So the engine works behind a proxy that
shares connections, if the proxy keeps what is set on them.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import asyncmy

from gateway_sessions.errors import InvalidInputError
from gateway_sessions.ports import TransactionFactory
from gateway_sessions.storage.engines.migrations import require_current_schema
from gateway_sessions.storage.engines.mysql.address import parse_address
from gateway_sessions.storage.engines.mysql.asyncmy_types import (
    ClosablePool,
    Connection,
    MySQLError,
    Pool,
    make_pool,
)
from gateway_sessions.storage.engines.mysql.connection import (
    ConnectionLender,
    MySQLConnection,
    borrow_connection,
)
from gateway_sessions.storage.engines.mysql.errors import (
    FOREIGN,
    PLACE,
    TROUBLES,
    WHAT,
    is_missing_right,
    translate_error,
)
from gateway_sessions.storage.engines.mysql.schema import migrate_database, read_schema_state
from gateway_sessions.storage.engines.protocol import FILE_ON_SERVERS
from gateway_sessions.storage.engines.search_column import FULLTEXT, TokenLanguage
from gateway_sessions.storage.engines.server.blockers import Blocker, describe_blockers
from gateway_sessions.storage.engines.server.driver import ANY, USUAL, Lend, ServerDriver, ServerLimits
from gateway_sessions.storage.engines.server.executor import BegunTransaction, TransactionRun
from gateway_sessions.storage.engines.server.opened_engines import ReadingServerEngine, SharedServerEngine
from gateway_sessions.storage.files.threads import in_thread
from gateway_sessions.storage.tables.sql_files import Migration, Query

CACHED_STATEMENTS: Final = 96
"""Prepared statements per connection: enough for the frequent ones. The server's limit counts those of all
connections together."""
_SAME_AGAIN: Final = "UPDATE meta SET value = value WHERE name = 'schema_version'"
"""Finds one row and changes nothing: a connection that counts changed rows instead of found ones answers
0."""
_MIGRATION_SECONDS: Final = 24 * 3600.0
"""A migration may rewrite a large table, so its answer is waited for up to a day."""
_CLOSE_SECONDS: Final = 10.0
"""The time for which running transactions may go on when the engine stops."""
_NO_TLS: Final = (ssl.SSLError, ConnectionResetError)
"""The errors of a server that does not know TLS."""


_WHO: Final = """
    SELECT processes.id, processes.user, processes.host,
        timestampdiff(SECOND, transactions.trx_started, now()), processes.command = 'Sleep'
    FROM information_schema.innodb_trx AS transactions
    JOIN information_schema.processlist AS processes ON processes.id = transactions.trx_mysql_thread_id
    WHERE processes.db = database() AND processes.id <> connection_id()
    ORDER BY transactions.trx_started LIMIT 3
"""
_UNKNOWN: Final = "grant PROCESS to this login to be told which connection holds it"


async def who_holds_locks(link: MySQLConnection) -> str:
    """Return a sentence about the connections that are in a transaction of the database."""
    try:
        rows = await link.fetch(_WHO)
    except MySQLError as error:
        if not is_missing_right(error):
            raise
        return _UNKNOWN
    return describe_blockers(
        Blocker(connection=number, where=f"{user} at {host}", seconds=float(seconds), idle=bool(idle))
        for number, user, host, seconds, idle in rows
    )


class MySQLDriver(ServerDriver):
    """Runs transactions on a MySQL or MariaDB database that other processes may use as well."""

    engine = "mysql"
    troubles = TROUBLES
    index_language: TokenLanguage = FULLTEXT

    def __init__(
        self,
        database: str | Pool,
        *,
        limits: ServerLimits = USUAL,
        cached_statements: int = CACHED_STATEMENTS,
        migrations: Sequence[Migration] = (),
        jitter: Callable[[], float] = ANY,
    ) -> None:
        """Use the *database* at an address, or through a pool of asyncmy that its maker closes.

        Settings stay on the connections of such a pool, and these must count the rows that a change finds:
        `client_flag=asyncmy.constants.CLIENT.FOUND_ROWS`.
        """
        super().__init__(limits=limits, migrations=migrations, jitter=jitter)
        self._database = database
        self._cached_statements = cached_statements

    async def describe_blockers(self) -> str:
        """Return a sentence about connections whose locks others wait for; empty if there are none."""
        try:
            async with self._transaction(lambda link: link.begin_reading(view=False)) as link:
                return await who_holds_locks(cast("MySQLConnection", link))
        except FOREIGN as error:
            raise TROUBLES.translate(error) from error

    async def _connect(self, migrations: Sequence[Migration], cleanup: AsyncExitStack) -> Lend:
        pool = self._database
        if isinstance(pool, str):
            pool = await open_pool(pool, self._limits, self._limits.connections)
            cleanup.push_async_callback(close_pool, pool)
        links = ConnectionLender(pool, self._limits, self._cached_statements)
        await self._migrate(links, migrations)
        return links.lend

    async def _migrate(self, links: ConnectionLender, migrations: Sequence[Migration]) -> None:
        """Migrate the database on a connection that is closed afterwards, as its time limits are too long."""
        async with links.lend() as link:
            try:
                await migrate_database(link.with_time_limit(_MIGRATION_SECONDS), migrations)
            finally:
                link.close()
        async with links.lend() as link:
            counts_rows_found = await link.change(_SAME_AGAIN, [()])
        if not counts_rows_found:
            problem = "the connections of the pool must be made with client_flag=CLIENT.FOUND_ROWS"
            raise InvalidInputError(problem)


async def open_pool(text: str, limits: ServerLimits, connections: int) -> ClosablePool:
    """Return a pool of so many connections to the address."""
    address = parse_address(text)
    make = partial(make_pool, connections, limits.acquire_seconds)
    if address.tls_context_maker is None:
        return await make(address.connect_arguments())
    pool = await make(address.connect_arguments() | {"ssl": await in_thread(address.tls_context_maker)})
    if address.merely_prefers_tls and not await _knows_tls(pool, limits):
        return await make(address.connect_arguments())
    return pool


async def _knows_tls(pool: Pool, limits: ServerLimits) -> bool:
    """Return True if the server knows TLS; the connection that was made to find out stays in the pool."""
    try:
        pool.release(await borrow_connection(pool, limits))
    except MySQLError as error:
        if not isinstance(error.__cause__, _NO_TLS):
            raise
        return False
    return True


async def close_pool(pool: ClosablePool) -> None:
    """Close the pool, and give running transactions a while to end."""
    pool.close()
    try:
        await asyncio.wait_for(pool.wait_closed(), _CLOSE_SECONDS)
    except TimeoutError:
        pool.terminate()


class MySQLReadingEngine(ReadingServerEngine, MySQLDriver):
    """Reads a database that another process may own."""

    place: str = PLACE

    def __init__(self, address: str, home: Path, *, limits: ServerLimits = USUAL) -> None:
        super().__init__(address, limits=limits)
        self.path: Path = home / FILE_ON_SERVERS

    async def _migrate(self, links: ConnectionLender, migrations: Sequence[Migration]) -> None:
        async with links.lend() as link:
            require_current_schema(WHAT, (await read_schema_state(link)).version, migrations)


T = TypeVar("T")

POLLING_STATEMENTS: Final = 8
"""Prepared statements for the few queries of a heartbeat."""


class OneConnectionPool:
    """Keeps one connection of a pool that its maker closes, for heartbeats alone."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._kept: Connection | None = None

    async def acquire(self) -> Connection:
        """Return the connection; another one if it was lost."""
        if self._kept is not None and not self._kept.connected:
            self.close()
        if self._kept is None:
            self._kept = cast("Connection", await self._pool.acquire())
        return self._kept

    def release(self, conn: Connection) -> None:
        """Keep the connection."""

    def close(self) -> None:
        """Return the connection to the pool."""
        kept, self._kept = self._kept, None
        if kept is not None:
            self._pool.release(kept)

    async def wait_closed(self) -> None:
        """Do nothing: `close` has returned the connection."""

    def terminate(self) -> None:
        """Do nothing: the maker of the pool closes its connections."""


class HeartbeatConnection:
    """Runs heartbeats on a connection beside the pool, which is opened again when it was lost."""

    notifies_at_once: bool = False
    """MySQL notifies no connection, so nodes poll."""

    def __init__(self, connect: Callable[[], Awaitable[ClosablePool]], limits: ServerLimits) -> None:
        """*connect* makes a pool of one connection."""
        self._connect = connect
        self._limits = limits
        self._pool: ClosablePool | None = None
        self._links: ConnectionLender | None = None
        # A connection can run one query at a time.
        self._turn = asyncio.Lock()

    async def run_transaction(
        self, queries: Mapping[str, Query], language: TokenLanguage, transaction: TransactionFactory[T]
    ) -> T:
        """Run a transaction that takes none of our locks."""
        async with self._turn:
            try:
                async with self._lend() as link:
                    await link.begin_without_locks()
                    result = await TransactionRun(link, queries, language).drive(
                        BegunTransaction(transaction())
                    )
                    await link.commit()
                    return result
            except FOREIGN as error:
                raise translate_error(error) from error

    async def notify_nodes(self, epochs: frozenset[int]) -> None:
        """Do nothing: the nodes find out when they poll."""

    async def close(self) -> None:
        """Close the connection."""
        pool, self._pool, self._links = self._pool, None, None
        if pool is not None:
            await close_pool(pool)

    @asynccontextmanager
    async def _lend(self) -> AsyncGenerator[MySQLConnection]:
        """Lend the connection, and close it if the block fails: its state is unknown then."""
        if self._links is None:
            self._pool = await self._connect()
            self._links = ConnectionLender(self._pool, self._limits, POLLING_STATEMENTS)
        async with self._links.lend() as link:
            with ExitStack() as hanging_up:
                hanging_up.callback(link.close)
                yield link
                hanging_up.pop_all()


LEAST: Final = 2
"""The least size of a given pool: heartbeats keep one connection, the transactions need another one."""


class MySQLEngine(SharedServerEngine, MySQLDriver):
    """Owns the home of a database on a server, for one node of several."""

    place: str = PLACE

    def __init__(
        self,
        address: str,
        home: Path,
        *,
        limits: ServerLimits = USUAL,
        allow_network: bool,
        pool: object | None = None,
    ) -> None:
        """Take all connections from *pool* if one is given; its maker closes it."""
        given = None if pool is None else _check_pool(pool)
        super().__init__(given or address, limits=limits)
        self._home = home
        self._allow_network = allow_network
        make = (
            partial(open_pool, address, self._limits, 1)
            if given is None
            else partial(_one_connection_of, given)
        )
        self._side_connection = HeartbeatConnection(make, self._limits)


async def _one_connection_of(pool: Pool) -> OneConnectionPool:
    return OneConnectionPool(pool)


def _check_pool(given: object) -> Pool:
    if not isinstance(given, asyncmy.Pool):
        problem = f"pool must be made by asyncmy.create_pool, not a {type(given).__name__}"
        raise InvalidInputError(problem)
    if cast("Any", given).maxsize < LEAST:  # it has no types of its own
        problem = f"pool needs {LEAST} connections or more: one of them says that the node lives"
        raise InvalidInputError(problem)
    return cast("Pool", given)
