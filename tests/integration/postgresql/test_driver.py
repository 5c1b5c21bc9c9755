"""Transactions on a PostgreSQL server: what they do stands whole or not at all, and errors are ours."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any

import anyio
import asyncpg
import pytest
from asyncpg import connect_utils

from gateway_sessions.core.committed_changes import SessionEnd
from gateway_sessions.core.instants import EPOCH
from gateway_sessions.errors import ForeignDatabaseError, InvalidInputError, StorageUnavailableError
from gateway_sessions.ports import Statement
from gateway_sessions.storage.engines.postgresql.engine import PostgresDriver
from gateway_sessions.storage.engines.postgresql.transaction import PostgresConnection
from gateway_sessions.storage.engines.server.driver import ServerLimits
from gateway_sessions.storage.tables import meta
from gateway_sessions.storage.tables.sql_files import load_migrations
from tests.integration.servers.driver_contract import DriverContract, make_session, session_exists
from tests.integration.servers.running_drivers import running_driver

BLOCKED = "SELECT count(*) FROM pg_stat_activity WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid))"
END = BLOCKED.replace("count(*)", "pg_terminate_backend(pid)")
INSERT = "INSERT INTO sessions (session_id, owner, source, started_at) VALUES ($1, 'o', 'cli', 1)"


class PostgresRival:
    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection

    async def insert(self, session_id: str) -> None:
        await self._connection.execute("BEGIN")
        await self._connection.execute(INSERT, session_id)

    async def commit(self) -> None:
        await self._connection.execute("COMMIT")

    async def roll_back(self) -> None:
        await self._connection.execute("ROLLBACK")

    async def blocks_somebody(self) -> bool:
        return bool(await self._connection.fetchval(BLOCKED))

    async def end_the_blocked(self) -> None:
        await self._connection.execute(END)


@asynccontextmanager
async def rival_at(dsn: str) -> AsyncIterator[PostgresRival]:
    connection = await asyncpg.connect(dsn)
    yield PostgresRival(connection)
    await connection.close()


@pytest.fixture
async def driver(dsn: str) -> AsyncIterator[PostgresDriver]:
    async with running_driver(PostgresDriver(dsn, jitter=lambda: 0.0)) as driver:
        yield driver


class TestPostgresql(DriverContract):
    newest_schema = load_migrations("postgresql")[-1].version
    unreachable = "postgresql://me:hunter2@127.0.0.1:1/x"
    not_an_address = "postgresql://me:hunter2@127.0.0.1:port/x"

    @pytest.fixture
    def address(self, dsn: str) -> str:
        return dsn

    def make_driver(self, address: Any, limits: ServerLimits) -> PostgresDriver:
        return PostgresDriver(address, limits=limits, jitter=lambda: 0.0)

    def rival(self, address: str) -> AbstractAsyncContextManager[PostgresRival]:
        return rival_at(address)


async def test_a_value_that_holds_a_zero_is_refused_and_not_quoted(driver: PostgresDriver):
    with pytest.raises(InvalidInputError) as refused:
        await driver.write(lambda: make_session("\0 private"))
    assert "private" not in str(refused.value)


async def test_a_commit_is_not_cut_off(driver: PostgresDriver, monkeypatch: pytest.MonkeyPatch):
    committing, go_on = asyncio.Event(), asyncio.Event()
    commit = PostgresConnection.commit

    async def slowly(link: PostgresConnection) -> None:
        committing.set()
        await go_on.wait()
        await commit(link)

    monkeypatch.setattr(PostgresConnection, "commit", slowly)
    writing = asyncio.create_task(driver.write(partial(meta.set_fact, "fact", 7)))
    await committing.wait()
    writing.cancel()
    await asyncio.sleep(0.05)
    assert not writing.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert await driver.read(lambda: meta.get_number("fact")) == 7


async def test_what_stands_is_told_though_its_caller_is_cancelled_as_it_gives_the_connection_back(
    driver: PostgresDriver, monkeypatch: pytest.MonkeyPatch
):
    commit, told = PostgresConnection.commit, list[object]()
    driver.on_news = told.extend
    news = SessionEnd(at=EPOCH, session_key="lane", session_id="s", reason="r")
    with anyio.CancelScope() as scope:

        async def commit_and_cancel(link: PostgresConnection) -> None:
            scope.cancel()
            await commit(link)

        monkeypatch.setattr(PostgresConnection, "commit", commit_and_cancel)
        await driver.change(Statement("mark_moved", ("lane", "elsewhere"), news=news))
    assert scope.cancelled_caught
    assert told == [news]


async def test_a_pool_of_the_program_is_used_and_left_open(dsn: str):
    async with asyncpg.create_pool(dsn, min_size=0, max_size=2, statement_cache_size=0) as pool:
        async with running_driver(PostgresDriver(pool)) as driver:
            assert await driver.write(make_session)
            assert await driver.change(Statement("add_totals", many=[("s", 1)])) == 1
        assert await pool.fetchval("SELECT count(*) FROM sessions") == 1


async def test_connections_begin_one_after_the_other(dsn: str, monkeypatch: pytest.MonkeyPatch):
    """As one begins, its certificates are read on the loop: see `ConnectingOneByOne`."""
    parse, passes = connect_utils._parse_connect_arguments, 0  # noqa: SLF001 -- what reads them
    begun: list[int] = []

    def noted(**arguments: object) -> object:
        begun.append(passes)
        return parse(**arguments)

    async def count() -> None:
        nonlocal passes
        while True:
            await asyncio.sleep(0)
            passes += 1

    async with running_driver(PostgresDriver(dsn)) as driver, asyncio.TaskGroup() as tasks:
        monkeypatch.setattr(connect_utils, "_parse_connect_arguments", noted)
        counting = tasks.create_task(count())
        await asyncio.gather(*(driver.read(lambda: session_exists("s")) for _ in range(8)))
        counting.cancel()
    assert len(begun) > 1
    assert len(set(begun)) == len(begun)


async def test_no_time_limit_stays_on_a_connection(dsn: str):
    async with asyncpg.create_pool(dsn, min_size=1, max_size=1) as pool:
        async with running_driver(PostgresDriver(pool)) as driver:
            before = await pool.fetchval("SHOW statement_timeout")
            await driver.write(make_session)
        assert await pool.fetchval("SHOW statement_timeout") == before


async def test_a_database_of_another_program_is_left_alone(dsn: str):
    connection = await asyncpg.connect(dsn)
    await connection.execute("CREATE TABLE meta (name text, value text)")
    with pytest.raises(ForeignDatabaseError):
        async with running_driver(PostgresDriver(dsn)):
            pass
    await connection.close()


async def test_a_server_that_says_nothing_is_given_up(dsn: str):
    """Its process is stopped, as a network that swallows everything would have it."""
    limits = ServerLimits(connections=1, answer_seconds=0.5)
    async with running_driver(PostgresDriver(dsn, limits=limits)) as driver:
        admin = await asyncpg.connect(dsn)
        ours = "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
        stopped = await admin.fetchval(f"{ours} AND pid <> pg_backend_pid()")
        try:
            os.kill(stopped, signal.SIGSTOP)
        except OSError as error:
            pytest.skip(f"only on the machine of the server, as a user who may stop it ({error!r})")
        try:
            async with asyncio.timeout(15):
                with pytest.raises(StorageUnavailableError):
                    await driver.write(make_session)
                assert await driver.write(make_session)
        finally:
            os.kill(stopped, signal.SIGCONT)
        await admin.close()
