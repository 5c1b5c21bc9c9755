"""Verbs on a PostgreSQL server: what they do stands whole or not at all, and errors are ours."""

import asyncio
import traceback
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import anyio
import asyncpg
import pytest

from gateway_sessions.core.instants import EPOCH
from gateway_sessions.core.news import News, SessionEnd
from gateway_sessions.errors import (
    ForeignDatabaseError,
    GatewaySessionsError,
    InvalidInputError,
    SchemaTooNewError,
    StorageUnavailableError,
    StoreStoppedError,
)
from gateway_sessions.ports import Statement, Verb
from gateway_sessions.storage.drivers.postgresql import Limits, PostgresDriver
from gateway_sessions.storage.queries import load_migrations
from gateway_sessions.storage.verbs import meta
from tests.postgresql import empty_database

SECRET = bytes(range(32))
BLOCKED = "SELECT count(*) FROM pg_stat_activity WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid))"
END = BLOCKED.replace("count(*)", "pg_terminate_backend(pid)")
SHIPPED = load_migrations("postgresql")


@pytest.fixture
async def dsn() -> AsyncIterator[str]:
    async with empty_database() as dsn:
        yield dsn


@asynccontextmanager
async def running(driver: PostgresDriver) -> AsyncIterator[PostgresDriver]:
    async with AsyncExitStack() as cleanup:
        await driver.start(anyio.create_task_group(), cleanup)  # it starts no task
        yield driver


@pytest.fixture
async def driver(dsn: str) -> AsyncIterator[PostgresDriver]:
    async with running(PostgresDriver(dsn, jitter=lambda: 0.0)) as driver:
        yield driver


def make_session(session_id: str = "s", owner: str = "o") -> Verb[bool]:
    """Whether it was this verb that made it."""
    if (yield Statement("session_exists", (session_id,))):
        return False
    yield Statement("add_session", (session_id, None, owner, "cli", None, None, None, 1))
    return True


def exists(session_id: str = "s") -> Verb[bool]:
    return bool((yield Statement("session_exists", (session_id,))))


def make_two(second: str) -> Verb[None]:
    yield from make_session("first")
    yield from make_session(second)


async def test_a_store_is_the_same_when_it_is_opened_again(dsn: str):
    for epoch, secret in ((1, SECRET), (2, b"another one")):
        async with running(PostgresDriver(dsn)) as driver:
            opening = await driver.write(partial(meta.open_store, secret))
            assert (opening.epoch, opening.install_secret) == (epoch, SECRET)
            assert await driver.read(lambda: meta.number("schema_version")) == SHIPPED[-1].version


async def test_many_may_open_a_new_database_at_once(dsn: str):
    async with AsyncExitStack() as cleanup:
        drivers = [PostgresDriver(dsn) for _ in range(3)]
        await asyncio.gather(*(one.start(anyio.create_task_group(), cleanup) for one in drivers))
        assert [await one.read(exists) for one in drivers] == [False] * 3


async def test_a_verb_stands_whole_or_not_at_all(driver: PostgresDriver):
    with pytest.raises(InvalidInputError):
        await driver.write(lambda: make_two("\0"))
    assert not await driver.read(lambda: exists("first"))
    await driver.write(lambda: make_two("second"))
    assert await driver.read(lambda: exists("first"))


@pytest.mark.parametrize("value", ["\0 private", "\ud800 private"])
async def test_a_value_that_cannot_be_stored_is_refused_and_not_quoted(driver: PostgresDriver, value: str):
    with pytest.raises(InvalidInputError) as refused:
        await driver.write(lambda: make_session(value))
    assert "private" not in str(refused.value)


async def test_changes_are_counted_and_told_when_they_stand(driver: PostgresDriver):
    told: list[Sequence[News]] = []
    driver.on_news = told.append
    news = SessionEnd(at=EPOCH, session_key="k", session_id="s", reason="r")
    end = Statement("end_session", (2, "r", "{}", "s"), news=news)
    assert await driver.change(end) == 0
    assert told == []
    await driver.write(make_session)
    assert await driver.change(end) == 1
    assert told == [(news,)]
    rows = [("a", 1), ("b", 2)]
    assert await driver.change(Statement("add_totals", many=rows)) == 2


async def test_what_sessions_json_shows_is_counted(driver: PostgresDriver):
    calls: list[None] = []
    driver.on_change = lambda: calls.append(None)
    await driver.write(make_session)
    await driver.change(Statement("put_record", ("{}", 1)))
    assert (driver.changes, calls) == (0, [])
    await driver.change(Statement("put_clocks", (1, 1, 1, None)))
    assert (driver.changes, calls) == (1, [None])


async def test_a_view_shows_one_moment(driver: PostgresDriver):
    async with driver.view() as view:
        await driver.write(make_session)
        assert not any(await asyncio.gather(view.read(exists), view.read(exists)))
    assert await driver.read(exists)


async def test_nothing_is_changed_by_reading(driver: PostgresDriver):
    with pytest.raises(GatewaySessionsError):
        await driver.read(make_session)
    assert not await driver.read(exists)


async def test_a_verb_that_is_overtaken_is_run_afresh(driver: PostgresDriver, dsn: str):
    rival = await asyncpg.connect(dsn)
    async with asyncio.TaskGroup() as tasks:
        await rival.execute("BEGIN; INSERT INTO sessions VALUES ('s', NULL, 'o', 'cli', NULL, NULL, NULL, 1)")
        made = tasks.create_task(driver.write(make_session))
        await wait_until_blocked(rival)
        await rival.execute("COMMIT")
    assert made.result() is False
    await rival.close()


async def test_nobody_waits_for_a_lock_for_ever(dsn: str):
    async with running(PostgresDriver(dsn, limits=Limits(lock_seconds=0.05))) as driver:
        rival = await asyncpg.connect(dsn)
        await rival.execute("BEGIN; LOCK TABLE sessions")
        with pytest.raises(StorageUnavailableError, match="55P03"):
            await driver.write(make_session)
        await rival.close()
        assert await driver.write(make_session)


async def test_a_verb_that_is_cancelled_leaves_nothing_behind(dsn: str):
    async with running(PostgresDriver(dsn, limits=Limits(connections=1))) as driver:
        rival = await asyncpg.connect(dsn)
        await rival.execute("BEGIN; INSERT INTO sessions VALUES ('b', NULL, 'o', 'cli', NULL, NULL, NULL, 1)")
        writing = asyncio.create_task(driver.write(lambda: make_two("b")))
        await wait_until_blocked(rival)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        await rival.close()
        assert not await driver.read(lambda: exists("first"))


async def test_a_pool_of_the_program_is_used_and_left_open(dsn: str):
    async with asyncpg.create_pool(dsn, min_size=0, max_size=2, statement_cache_size=0) as pool:
        async with running(PostgresDriver(pool)) as driver:
            assert await driver.write(make_session)
            assert await driver.change(Statement("add_totals", many=[("s", 1)])) == 1
        assert await pool.fetchval("SELECT count(*) FROM sessions") == 1


async def test_no_time_limit_stays_on_a_connection(dsn: str):
    async with asyncpg.create_pool(dsn, min_size=1, max_size=1) as pool:
        async with running(PostgresDriver(pool)) as driver:
            before = await pool.fetchval("SHOW statement_timeout")
            await driver.write(make_session)
        assert await pool.fetchval("SHOW statement_timeout") == before


async def test_a_database_of_another_program_is_left_alone(dsn: str):
    connection = await asyncpg.connect(dsn)
    await connection.execute("CREATE TABLE meta (name text, value text)")
    with pytest.raises(ForeignDatabaseError):
        async with running(PostgresDriver(dsn)):
            pass
    await connection.close()


async def test_a_newer_schema_is_left_alone(dsn: str):
    async with running(PostgresDriver(dsn)) as driver:
        await driver.write(lambda: meta.remember("readable_from", SHIPPED[-1].version + 1))
    with pytest.raises(SchemaTooNewError):
        async with running(PostgresDriver(dsn)):
            pass


@pytest.mark.parametrize(
    ("address", "error"),
    [
        ("postgresql://me:hunter2@127.0.0.1:1/x", StorageUnavailableError),
        ("postgresql://me:hunter2@127.0.0.1:port/x", InvalidInputError),
        ("mysql://me:hunter2@127.0.0.1/x", InvalidInputError),
    ],
)
async def test_an_error_never_quotes_the_password(address: str, error: type[Exception]):
    with pytest.raises(error) as refused:
        async with running(PostgresDriver(address)):
            pass
    assert "hunter2" not in "".join(traceback.format_exception(refused.value))


async def test_a_driver_that_is_closed_says_so(dsn: str):
    async with running(PostgresDriver(dsn)) as driver:
        pass
    with pytest.raises(StoreStoppedError):
        await driver.read(exists)


async def test_a_connection_that_is_lost_is_replaced(driver: PostgresDriver, dsn: str):
    rival = await asyncpg.connect(dsn)
    await rival.execute("BEGIN; INSERT INTO sessions VALUES ('s', NULL, 'o', 'cli', NULL, NULL, NULL, 1)")
    writing = asyncio.create_task(driver.write(make_session))
    await wait_until_blocked(rival)
    await rival.execute(END)
    with pytest.raises(StorageUnavailableError):
        await writing
    await rival.close()
    assert await driver.write(make_session)


async def wait_until_blocked(rival: asyncpg.Connection) -> None:
    """Until somebody waits for what the rival holds."""
    while not await rival.fetchval(BLOCKED):  # noqa: ASYNC110 -- only the server knows
        await asyncio.sleep(0.01)
