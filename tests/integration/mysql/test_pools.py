"""A store works on connections of asyncmy that the program has made, and leaves them to it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway_sessions import SessionSource, SessionStore
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.storage.engines.mysql.address import parse_address
from gateway_sessions.storage.engines.mysql.asyncmy_types import ClosablePool, make_pool
from gateway_sessions.testing.agents import ScriptedAgent
from tests.integration.gateway.gateway_harness import open_harness
from tests.integration.servers.nodes import BRISK, config_on, wait_until
from tests.mysql import open_connection

ALICE = SessionSource(platform="telegram", chat_id="1", user_id="alice")
CONNECTIONS = "SELECT count(*) FROM information_schema.processlist WHERE db = database()"
KILL = "SELECT id FROM information_schema.processlist WHERE db = database() AND id <> connection_id()"


@pytest.fixture
async def pool(address: str) -> AsyncIterator[ClosablePool]:
    pool = await make_pool(5, 5.0, parse_address(address).connect_arguments())
    yield pool
    pool.close()
    async with asyncio.timeout(15):  # all of them were given back
        await pool.wait_closed()


async def test_a_gateway_works_on_a_pool_and_gives_all_of_it_back(
    tmp_path: Path, address: str, pool: ClosablePool
):
    people = [f"person{number}" for number in range(6)]
    async with open_harness(tmp_path, config_on(address), agent=ScriptedAgent(), pool=pool) as harness:
        for text in ("one", "two"):
            await asyncio.gather(*(harness.platform.says(name, text) for name in people))
            await harness.wait_until_idle()
        for name in people:
            said = [content for role, content in await harness.transcript(name) if role == "user"]
            assert said == ["one", "two"]
    connection = await pool.acquire()
    pool.release(connection)


async def test_no_connection_is_made_beside_the_pool(tmp_path: Path, address: str, pool: ClosablePool):
    nowhere = "mysql://nobody@127.0.0.1:1/nothing"
    async with SessionStore.open(tmp_path, config_on(nowhere), pool=pool) as store:
        await store.get_or_create_session(ALICE)


async def test_a_node_lives_on_when_the_connections_of_its_pool_are_cut(
    tmp_path: Path, address: str, pool: ClosablePool
):
    async with SessionStore.open(tmp_path, config_on(address, BRISK), pool=pool) as store:
        membership = store.db.ownership.membership
        assert membership is not None
        async with open_connection(address) as admin:
            for (number,) in await admin.fetch(KILL):
                await admin.run_texts(f"KILL {number}")
        heard = membership._trust_ends  # noqa: SLF001 -- what each time that it is heard moves
        await wait_until(lambda: membership._trust_ends > heard, seconds=10)  # noqa: SLF001 -- the same
        await store.get_or_create_session(ALICE)
        assert membership.epoch == store.started.epoch


async def test_something_else_is_no_pool(tmp_path: Path, address: str):
    with pytest.raises(InvalidInputError, match=r"asyncmy\.create_pool"):
        async with SessionStore.open(tmp_path, config_on(address), pool=object()):
            pass


async def test_a_pool_of_one_connection_is_too_small(tmp_path: Path, address: str):
    small = await make_pool(1, 5.0, parse_address(address).connect_arguments())
    with pytest.raises(InvalidInputError, match="2 connections"):
        async with SessionStore.open(tmp_path, config_on(address), pool=small):
            pass
    small.close()
