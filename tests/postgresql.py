"""A PostgreSQL server for tests: databases of their own, which are gone afterwards."""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from urllib.parse import urlsplit

import asyncpg
import pytest

from gateway_sessions.storage.engines.postgresql.schema import migrate_database
from gateway_sessions.storage.tables.sql_files import load_migrations

SERVER = os.environ.get("GATEWAY_SESSIONS_POSTGRESQL", "postgresql://postgres@127.0.0.1:5432/postgres")
"""Whoever this names may create databases."""
MIGRATIONS = load_migrations("postgresql")
TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
FORGET_THE_REST = "DELETE FROM meta WHERE name NOT IN ('schema_version', 'readable_from')"
HOW_TO_START = "pg_ctlcluster --skip-systemctl-redirect $(ls /etc/postgresql) main start"


@asynccontextmanager
async def empty_database() -> AsyncIterator[str]:
    """The DSN of a database with nothing in it."""
    name = f"gateway_sessions_{os.getpid()}_{secrets.token_hex(4)}"
    admin = await admin_connection()
    try:
        # In a cluster of any locale: what our columns do must not depend on it.
        await admin.execute(f'CREATE DATABASE "{name}" TEMPLATE template0')
        try:
            yield urlsplit(SERVER)._replace(path=f"/{name}").geturl()
        finally:
            await admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
    finally:
        await admin.close()


@asynccontextmanager
async def connected_migrated_database() -> AsyncIterator[asyncpg.Connection]:
    """A connection to a database with our tables."""
    async with empty_database() as dsn:
        connection = await asyncpg.connect(dsn)
        try:
            for step in MIGRATIONS:
                await connection.execute(step.script)
            yield connection
        finally:
            await connection.close()


@asynccontextmanager
async def migrated_database_at() -> AsyncIterator[str]:
    """The DSN of a database with our tables."""
    async with empty_database() as dsn:
        await _prepare(dsn)
        yield dsn


@contextmanager
def kept_database() -> Iterator[str]:
    """The DSN of a database with our tables, for many tests that each `wipe` it: making one takes far longer.

    It needs no event loop, because each of those tests has one of its own.
    """
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        dsn = runner.run(stack.enter_async_context(migrated_database_at()))
        try:
            yield dsn
        finally:
            runner.run(stack.aclose())


async def delete_all_rows(dsn: str) -> None:
    """Leave a database as it was when all migrations had been taken."""
    connection = await asyncpg.connect(dsn)
    try:
        tables = await connection.fetch(TABLES)
        emptied = "".join(f'DELETE FROM "{name}";' for (name,) in tables if name != "meta")  # noqa: S608 -- names that the server gave
        await connection.execute(f"SET synchronous_commit = off; {emptied} {FORGET_THE_REST}")
    finally:
        await connection.close()


async def drop_all_tables(dsn: str) -> None:
    """Leave a database as it was when it was made: without a table."""
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    finally:
        await connection.close()


async def _prepare(dsn: str) -> None:
    async with asyncpg.create_pool(dsn, min_size=1, max_size=1) as pool, pool.acquire() as connection:
        await migrate_database(connection, MIGRATIONS)


async def admin_connection() -> asyncpg.Connection:
    """Without a server the test is skipped, unless this is the place where everything has to be tested."""
    try:
        return await asyncpg.connect(SERVER, timeout=5)
    except (OSError, TimeoutError, asyncpg.PostgresError) as error:
        missing = f"no PostgreSQL server answers ({error!r}); start one: {HOW_TO_START}"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
