"""Behind a pooler that lends a connection for one transaction, everything is as it is without one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway_sessions import Config, SessionDB
from gateway_sessions.errors import UnsupportedStorageError
from gateway_sessions.storage.engines.postgresql.engine import PostgresDriver
from gateway_sessions.storage.engines.server.driver import ServerLimits
from gateway_sessions.storage.tables.sql_files import load_migrations
from gateway_sessions.testing.agents import ScriptedAgent
from tests.integration.postgresql.test_driver import PostgresRival, rival_at
from tests.integration.servers.driver_contract import DriverContract, make_session
from tests.integration.servers.nodes import BRISK, config_on, running_node, wait_until, wait_until_nodes_meet
from tests.integration.servers.running_drivers import running_driver
from tests.pooler import REAL, running_pooler


@pytest.fixture
async def address(dsn: str) -> AsyncIterator[str]:
    async with running_pooler(dsn) as address:
        yield address


class TestDriver(DriverContract):
    newest_schema = load_migrations("postgresql")[-1].version
    unreachable = "postgresql://me:hunter2@127.0.0.1:1/x"
    not_an_address = "postgresql://me:hunter2@127.0.0.1:port/x"

    @pytest.fixture(autouse=True)
    def _server(self, dsn: str) -> None:
        self.dsn = dsn

    def make_driver(self, address: Any, limits: ServerLimits) -> PostgresDriver:
        return PostgresDriver(address, limits=limits, cached_statements=0, jitter=lambda: 0.0)

    def rival(self, address: str) -> AbstractAsyncContextManager[PostgresRival]:
        return rival_at(self.dsn)


@pytest.fixture
def config(address: str) -> Config:
    config = config_on(address, replace(BRISK, poll_only=True))
    return replace(config, sessiondb=replace(config.sessiondb, prepared_statements=False))


async def test_nodes_share_the_work(tmp_path: Path, config: Config):
    agent = ScriptedAgent()
    people = [f"p{number}" for number in range(6)]
    texts = [f"{number}" for number in range(4)]
    async with (
        running_node(tmp_path, config, "a", agent) as one,
        running_node(tmp_path, config, "b", agent) as other,
    ):
        await wait_until_nodes_meet(one, other)
        for text in texts:
            said = [(here, who) for who in people for here in (one, other)]
            await asyncio.gather(*(here.receive_message(who, f"{who} {text}") for here, who in said))
        await wait_until(lambda: not any(here.gateway.busy for here in (one, other)))
        await asyncio.gather(one.gateway.settled(), other.gateway.settled())
        for who in people:
            rows = await one.said(who)
            assert [row for row in rows if str(row).startswith(who)] == [f"{who} {text}" for text in texts]


async def test_what_reads_needs_no_prepared_statements_either(tmp_path: Path, address: str):
    async with SessionDB.open(address, home=tmp_path, prepared_statements=False) as db:
        await db.create_session("s", "cli")
        async with SessionDB.open_reader(address, home=tmp_path, prepared_statements=False) as reader:
            for _ in range(20):
                assert await reader.get_session("s")


@pytest.mark.skipif(REAL is not None, reason="a real pooler may know prepared statements")
async def test_statements_that_got_lost_are_told_with_what_to_do(address: str):
    with pytest.raises(UnsupportedStorageError, match=r"set sessiondb.prepared_statements to false"):
        await work_with_prepared_statements(address)


async def work_with_prepared_statements(address: str) -> None:
    async with running_driver(PostgresDriver(address)) as driver:
        for _ in range(20):
            await asyncio.gather(*(driver.write(make_session) for _ in range(4)))
