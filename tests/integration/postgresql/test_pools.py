"""A store works on connections that the program has made, and leaves them to it."""

import asyncio
import json
import os
import sys
import tempfile
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from gateway_sessions import Scope, SessionDB, SessionSource, SessionStore
from gateway_sessions.errors import InvalidInputError, StorageUnavailableError
from gateway_sessions.testing.agents import ScriptedAgent
from tests.integration.gateway.gateway_harness import open_harness
from tests.integration.servers.nodes import config_on, running_node, wait_until, wait_until_nodes_meet

PAGE = Path(__file__).parents[3] / "docs/how-to/hand-in-a-pool.md"
ALICE = SessionSource(platform="telegram", chat_id="1", user_id="alice")
CUT = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


async def with_json(connection: asyncpg.Connection) -> None:
    """What many programs do with their connections."""
    for name in ("json", "jsonb"):
        await connection.set_type_codec(name, encoder=json.dumps, decoder=json.loads, schema="pg_catalog")


@pytest.fixture
async def pool(dsn: str) -> AsyncIterator[asyncpg.Pool]:
    async with asyncpg.create_pool(dsn, min_size=0, max_size=5, init=with_json) as pool:
        yield pool


async def all_come_back_to(pool: asyncpg.Pool) -> None:
    """The pool itself may still be busy with one whose user was cancelled."""
    await wait_until(lambda: pool.get_idle_size() == pool.get_size(), seconds=5)


async def test_a_gateway_works_on_a_pool_and_gives_all_of_it_back(
    tmp_path: Path, dsn: str, pool: asyncpg.Pool
):
    people = [f"person{number}" for number in range(12)]
    async with open_harness(tmp_path, config_on(dsn), agent=ScriptedAgent(), pool=pool) as harness:
        for text in ("one", "two"):
            await asyncio.gather(*(harness.platform.says(name, text) for name in people))
            await harness.wait_until_idle()
        for name in people:
            said = [content for role, content in await harness.transcript(name) if role == "user"]
            assert said == ["one", "two"]
        assert len(await harness.store.list_sessions(scope=Scope.operator())) == 12
        found = await harness.store.list_sessions(scope=Scope.of(harness.platform.source("person3")))
        assert len(found) == 1
    await all_come_back_to(pool)
    assert await pool.fetchval("SELECT count(*) FROM entries") == 12
    assert await pool.fetchval("SHOW statement_timeout") == "0"


async def test_no_connection_is_made_beside_the_pool(tmp_path: Path, dsn: str, pool: asyncpg.Pool):
    """Whoever makes a pool may know more than its address: a certificate, or a password that changes."""
    nowhere = "postgresql://nobody@127.0.0.1:1/nothing"
    async with SessionStore.open(tmp_path, config_on(nowhere), pool=pool) as store:
        await store.get_or_create_session(ALICE)
        ours = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        assert await pool.fetchval(ours) == pool.get_size()
    await all_come_back_to(pool)


async def test_a_store_is_opened_by_address_and_pool(
    tmp_path: Path, dsn: str, pool: asyncpg.Pool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    async with SessionStore.open(dsn, pool=pool) as store:
        await store.get_or_create_session(ALICE)
    async with SessionDB.open(dsn, home=tmp_path / "other", pool=pool) as db:
        assert await db.session_count(scope=Scope.operator()) == 1
    await all_come_back_to(pool)


async def test_nodes_on_pools_call_each_other(tmp_path: Path, dsn: str, pool: asyncpg.Pool):
    agent, config = ScriptedAgent(), config_on(dsn)
    async with (
        running_node(tmp_path, config, "a", agent, pool=pool) as one,
        running_node(tmp_path, config, "b", agent, pool=pool) as other,
    ):
        await wait_until_nodes_meet(one, other)
        theirs = other.person_of_its_own()
        await one.receive_message(theirs, "hello")
        await wait_until(lambda: agent.turns)
        await asyncio.gather(one.gateway.settled(), other.gateway.settled())
    await all_come_back_to(pool)


async def test_connections_of_a_pool_that_are_cut_are_replaced(tmp_path: Path, dsn: str, pool: asyncpg.Pool):
    async with SessionStore.open(tmp_path, config_on(dsn), pool=pool) as store:
        for _ in range(3):
            admin = await asyncpg.connect(dsn)
            await admin.execute(CUT)
            await admin.close()
            await store.get_or_create_session(ALICE)
        membership = store.db.ownership.membership
        assert membership is not None
        await wait_until(lambda: len(membership.nodes) == 1)
    await all_come_back_to(pool)


async def test_a_pool_that_was_closed_is_not_there(tmp_path: Path, dsn: str):
    pool = await asyncpg.create_pool(dsn, min_size=0, max_size=5)
    async with SessionStore.open(tmp_path, config_on(dsn), pool=pool) as store:
        pool.terminate()
        with pytest.raises(StorageUnavailableError):
            await store.get_or_create_session(ALICE)


async def test_what_cannot_be_used_as_a_pool_is_refused(dsn: str, tmp_path: Path):
    with pytest.raises(InvalidInputError, match=r"must be made by asyncpg.create_pool, not a str"):
        SessionDB.open(dsn, home=tmp_path, pool=dsn)
    async with asyncpg.create_pool(dsn, min_size=0, max_size=1) as small:
        with pytest.raises(InvalidInputError, match="needs 2 connections or more"):
            SessionDB.open(dsn, home=tmp_path, pool=small)


async def test_the_page_about_pools_works_as_it_stands(dsn: str, tmp_path: Path):
    page = await asyncio.to_thread(PAGE.read_text, "utf-8")
    code = page.split("```python\n")[1].split("```")[0]
    environ = {**os.environ, "STORE_ADDRESS": dsn, "XDG_STATE_HOME": str(tmp_path)}
    with tempfile.TemporaryDirectory() as runtime:  # a socket's path has to be short
        environ["XDG_RUNTIME_DIR"] = runtime
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-W", "error", "-c", code, env=environ, stdout=PIPE, stderr=PIPE
        )
        assert await child.communicate() == (b"agent:main:local:dm:desk 1\n", b"")
