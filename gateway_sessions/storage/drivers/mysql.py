"""A MySQL or MariaDB database that many processes may use: each verb is a transaction on a connection.

Every connection is set up once, before it is used for anything else; nothing that a transaction needs of its
own outlives it. So everything holds behind a proxy that shares connections, if it keeps what is set on them.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Final, cast

from gateway_sessions.errors import InvalidInputError
from gateway_sessions.storage.drivers.limits import USUAL, Limits
from gateway_sessions.storage.drivers.mysql_address import parse
from gateway_sessions.storage.drivers.mysql_asyncmy import MySQLError, OwnPool, Pool, make_pool
from gateway_sessions.storage.drivers.mysql_blockers import who_holds_locks
from gateway_sessions.storage.drivers.mysql_errors import FOREIGN, TROUBLES
from gateway_sessions.storage.drivers.mysql_link import Link, Links, borrowed
from gateway_sessions.storage.drivers.mysql_schema import prepare
from gateway_sessions.storage.drivers.server import ANY, Lend, ServerDriver
from gateway_sessions.storage.in_thread import in_thread
from gateway_sessions.storage.queries import Migration
from gateway_sessions.storage.search_column.languages import FULLTEXT, Language

CACHED_STATEMENTS: Final = 96
"""Room for what is asked all the time; the server counts the statements of all connections together."""
_SAME_AGAIN: Final = "UPDATE meta SET value = value WHERE name = 'schema_version'"
_MIGRATION_SECONDS: Final = 24 * 3600.0
_CLOSE_SECONDS: Final = 10.0
_NO_TLS: Final = (ssl.SSLError, ConnectionResetError)
"""What comes of asking a server for a protected connection that knows none."""


class MySQLDriver(ServerDriver):
    """Runs verbs on a MySQL or MariaDB database, which others may use as well."""

    engine = "mysql"
    troubles = TROUBLES
    index_language: Language = FULLTEXT

    def __init__(
        self,
        database: str | Pool,
        *,
        limits: Limits = USUAL,
        cached_statements: int = CACHED_STATEMENTS,
        migrations: Sequence[Migration] = (),
        jitter: Callable[[], float] = ANY,
    ) -> None:
        """*database* is an address, or a pool of asyncmy that somebody else closes.

        What is set on the connections of that pool stays set, and they must count the rows that a change
        finds: `client_flag=asyncmy.constants.CLIENT.FOUND_ROWS`.
        """
        super().__init__(limits=limits, migrations=migrations, jitter=jitter)
        self._database = database
        self._cached_statements = cached_statements

    async def blockers(self) -> str:
        """Who holds locks that others wait for, in words; empty if nobody does."""
        try:
            async with self._transaction(lambda link: link.begin_reading(view=False)) as link:
                return await who_holds_locks(cast("Link", link))
        except FOREIGN as error:
            raise TROUBLES.translate(error) from error

    async def _connect(self, migrations: Sequence[Migration], cleanup: AsyncExitStack) -> Lend:
        pool = self._database
        if isinstance(pool, str):
            pool = await connect(pool, self._limits, self._limits.connections)
            cleanup.push_async_callback(hang_up, pool)
        links = Links(pool, self._limits, self._cached_statements)
        await self._prepare(links, migrations)
        return links.lent

    async def _prepare(self, links: Links, migrations: Sequence[Migration]) -> None:
        """Bring the database up to date, on a connection that nobody uses afterwards: it waits too long."""
        async with links.lent() as link:
            try:
                await prepare(link.patient(_MIGRATION_SECONDS), migrations)
            finally:
                link.close()
        async with links.lent() as link:
            counts_rows_found = await link.change(_SAME_AGAIN, [()])
        if not counts_rows_found:
            problem = "the connections of the pool must be made with client_flag=CLIENT.FOUND_ROWS"
            raise InvalidInputError(problem)


async def connect(text: str, limits: Limits, connections: int) -> OwnPool:
    """A pool of so many connections to an address."""
    address = parse(text)
    make = partial(make_pool, connections, limits.acquire_seconds)
    if address.tls is None:
        return await make(address.arguments())
    pool = await make(address.arguments() | {"ssl": await in_thread(address.tls)})
    if address.merely_prefers_tls and not await _is_protected(pool, limits):
        return await make(address.arguments())
    return pool


async def _is_protected(pool: Pool, limits: Limits) -> bool:
    """Whether the server knows what a pool asks for; the connection that was made for that stays in it."""
    try:
        pool.release(await borrowed(pool, limits))
    except MySQLError as error:
        if not isinstance(error.__cause__, _NO_TLS):
            raise
        return False
    return True


async def hang_up(pool: OwnPool) -> None:
    """Let what runs come to its end, for a while."""
    pool.close()
    try:
        await asyncio.wait_for(pool.wait_closed(), _CLOSE_SECONDS)
    except TimeoutError:
        pool.terminate()
