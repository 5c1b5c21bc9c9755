"""A MySQL or MariaDB server for tests: databases of their own, which are gone afterwards."""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from urllib.parse import urlsplit

import pytest
import pytest_asyncio

from gateway_sessions.storage.engines.mysql.address import parse_address
from gateway_sessions.storage.engines.mysql.asyncmy_types import ClosablePool, MySQLError, make_pool
from gateway_sessions.storage.engines.mysql.connection import ConnectionLender, MySQLConnection
from gateway_sessions.storage.engines.mysql.schema import migrate_database
from gateway_sessions.storage.engines.server.driver import USUAL
from gateway_sessions.storage.tables.sql_files import load_migrations

SERVER = os.environ.get("GATEWAY_SESSIONS_MYSQL", "mysql://root@127.0.0.1:3306/mysql")
"""Whoever this names may create databases."""
MIGRATIONS = load_migrations("mysql")
_TABLES = "SELECT table_name FROM information_schema.tables WHERE table_schema = database()"
_KEPT = frozenset({"meta", "locks"})
BLOCKED = """
    SELECT trx_mysql_thread_id FROM information_schema.innodb_trx JOIN information_schema.processlist
    ON id = trx_mysql_thread_id WHERE trx_state = 'LOCK WAIT' AND db = database()
"""
"""Whoever waits for others in the same database."""
HOW_TO_START = "mariadbd-safe --user=mysql &, or name one in GATEWAY_SESSIONS_MYSQL"


@asynccontextmanager
async def empty_database() -> AsyncIterator[str]:
    """The address of a database with nothing in it."""
    name = f"gateway_sessions_{os.getpid()}_{secrets.token_hex(4)}"
    async with open_connection(SERVER) as admin:
        # On a server of any collation: what our columns do must not depend on it.
        await admin.run_texts(f"CREATE DATABASE {name} CHARACTER SET latin1 COLLATE latin1_swedish_ci")
        try:
            yield urlsplit(SERVER)._replace(path=f"/{name}").geturl()
        finally:
            await admin.run_texts("SET SESSION lock_wait_timeout = 10")
            await admin.run_texts(f"DROP DATABASE {name}")


@asynccontextmanager
async def migrated_database_at() -> AsyncIterator[str]:
    """The address of a database with our tables."""
    async with empty_database() as address:
        async with open_connection(address) as link:
            await migrate_database(link, MIGRATIONS)
        yield address


@asynccontextmanager
async def open_connection(address: str) -> AsyncIterator[MySQLConnection]:
    """A connection of somebody else."""
    async with lend_pool(address) as pool, ConnectionLender(pool, USUAL, 10).lend() as link:
        try:
            yield link
        finally:
            link.close()


@asynccontextmanager
async def lend_pool(address: str, **options: object) -> AsyncIterator[ClosablePool]:
    """A pool of somebody else. Without a server the test is skipped, unless all has to be tested here."""
    arguments = parse_address(address).connect_arguments() | options
    pool = await make_pool(2, USUAL.acquire_seconds, arguments)
    try:
        pool.release(await pool.acquire())
    except (OSError, TimeoutError, MySQLError) as error:
        missing = f"no MySQL or MariaDB server answers ({error!r}); start one: {HOW_TO_START}"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    try:
        yield pool
    finally:
        pool.close()
        await pool.wait_closed()


@contextmanager
def kept_database() -> Iterator[str]:
    """The address of a database with our tables, for many tests that each `wipe` it: making one takes long.

    It needs no event loop, because each of those tests has one of its own.
    """
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        address = runner.run(stack.enter_async_context(migrated_database_at()))
        try:
            yield address
        finally:
            runner.run(stack.aclose())


@pytest.fixture(scope="module")
def shared_address() -> Iterator[str]:
    """The address of a database with our tables, for all tests of a module."""
    with kept_database() as address:
        yield address


@pytest_asyncio.fixture
async def fresh_address(shared_address: str) -> str:
    """The same database with nothing in its tables, as when it was just made."""
    await delete_all_rows(shared_address)
    return shared_address


async def delete_all_rows(address: str) -> None:
    """Leave a database as it was when all migrations had been taken."""
    async with open_connection(address) as link:
        tables = [row[0] for row in await link.fetch(_TABLES)]
        forgetting = [f"DELETE FROM {table}" for table in tables if table not in _KEPT]  # noqa: S608 -- ours
        facts = "DELETE FROM meta WHERE name NOT IN ('schema_version', 'readable_from')"
        await link.run_texts("; ".join(["START TRANSACTION", *forgetting, facts, "COMMIT"]))


async def drop_all_tables(address: str) -> None:
    """Leave a database as it was when it was made: without a table."""
    async with open_connection(address) as link:
        tables = ", ".join(row[0] for row in await link.fetch(_TABLES))
        if tables:
            await link.run_texts(f"DROP TABLE {tables}")
