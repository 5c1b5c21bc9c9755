"""A MariaDB or MySQL server of our own, which may be killed, and may stop to be the one to write to."""

import asyncio
import secrets
import signal
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gateway_sessions import SessionDB
from gateway_sessions.config import Provider
from gateway_sessions.core.instants import to_micros
from gateway_sessions.errors import NodeSilentError, StorageUnavailableError
from gateway_sessions.storage.engines.mysql.connection import MySQLConnection
from gateway_sessions.storage.tables.sql_files import load_queries
from tests.cluster.server import MySQLServer, make_server
from tests.integration.servers.nodes import BRISK, wait_until
from tests.mysql import open_connection

pytestmark = pytest.mark.timeout(120)

WRITERS = 6
ROLE = "gateway"
"""May not write to a server that is read-only, as an administrator may."""
SERVER_TIME = load_queries("mysql")["server_time"].sql
BERLIN = "CET-1CEST,M3.5.0,M10.5.0/3"
TWICE_HALF_PAST_TWO = (datetime(2026, 10, 25, 0, 30, tzinfo=UTC), datetime(2026, 10, 25, 1, 30, tzinfo=UTC))
"""Clocks were set back in between."""


@pytest.fixture(scope="module")
def made() -> Iterator[MySQLServer]:
    with tempfile.TemporaryDirectory() as home:  # the name of a socket must be short
        server = make_server(Path(home), Provider.MYSQL)
        if not isinstance(server, MySQLServer):
            pytest.skip("no MariaDB or MySQL server is installed on this machine")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TZ", BERLIN)
            asyncio.run(server.make())
            asyncio.run(server.start())
            yield server
        asyncio.run(server.stop(signal.SIGTERM))


@pytest.fixture
async def address(made: MySQLServer) -> str:
    name = f"store_{secrets.token_hex(4)}"
    async with open_connection(made.address_of("mysql")) as admin:
        making = f"CREATE DATABASE {name}; CREATE USER IF NOT EXISTS {ROLE} IDENTIFIED BY 'x'"
        await admin.run_texts(f"{making}; GRANT ALL ON {name}.* TO {ROLE}")
    return f"mysql://{ROLE}:x@127.0.0.1:{made.port}/{name}"


class Writers:
    """They go on whatever happens, and know what was acknowledged."""

    def __init__(self, db: SessionDB) -> None:
        self.db = db
        self.acknowledged: set[str] = set()
        self.problems: list[BaseException] = []
        self.done = asyncio.Event()

    async def write(self, session_id: str, writer: int) -> None:
        number = 0
        while not self.done.is_set():
            text, number = f"{writer} {number}", number + 1
            try:
                await self.db.append_message(session_id, "user", text)
                self.acknowledged.add(text)
            except StorageUnavailableError as error:
                self.problems.append(error)
                await asyncio.sleep(0.1)

    async def go_on(self) -> None:
        """Until there is a good deal more."""
        enough = len(self.acknowledged) + 50
        async with asyncio.timeout(60):
            while len(self.acknowledged) < enough:  # noqa: ASYNC110 -- the server decides
                await asyncio.sleep(0.05)


async def test_a_server_that_is_killed_loses_nothing_it_acknowledged(
    made: MySQLServer, address: str, tmp_path: Path
):
    async with SessionDB.open(address, home=tmp_path) as db:
        names = [await db.create_session(f"s{number}", "cli") for number in range(2)]
        writers = Writers(db)
        async with asyncio.TaskGroup() as tasks:
            for number in range(WRITERS):
                tasks.create_task(writers.write(names[number % len(names)], number))
            for _ in range(2):
                await writers.go_on()
                await made.stop()
                await made.start()
            await writers.go_on()
            writers.done.set()
        rows = [await db.get_messages(name) for name in names]
    found = [row.text for said in rows for row in said]
    assert writers.problems
    assert writers.acknowledged <= set(found)
    assert len(found) == len(set(found))
    assert all([row.seq for row in said] == list(range(1, len(said) + 1)) for said in rows)


async def test_a_node_whose_server_was_away_for_long_comes_back_as_another_one(
    made: MySQLServer, address: str, tmp_path: Path
):
    async with SessionDB.open(address, home=tmp_path, cluster=BRISK) as db:
        node, was = db.ownership.membership, db.ownership.epoch
        assert node is not None
        await made.stop()
        try:
            await wait_until(lambda: not node.trusted)
            assert not await node.send_heartbeat_or_rejoin(b"")
            with pytest.raises(NodeSilentError):
                await db.create_session("s", "cli")
        finally:
            await made.start()
        await wait_until(lambda: node.trusted)
        assert db.ownership.epoch > was
        await db.create_session("s", "cli")


async def test_a_server_that_became_read_only_is_told_and_left(
    made: MySQLServer, address: str, tmp_path: Path
):
    async with (
        open_connection(made.address_of("mysql")) as admin,
        SessionDB.open(address, home=tmp_path) as db,
    ):
        await db.create_session("s", "cli")
        before = await connections_of(admin)  # now: the index may be the first to meet the refusal
        assert before
        await admin.run_texts("SET GLOBAL read_only = 1")
        try:
            with pytest.raises(StorageUnavailableError, match="1290"):
                await db.append_message("s", "user", "no")
            assert await db.get_messages("s") == []
            await until_gone(admin, before)
        finally:
            await admin.run_texts("SET GLOBAL read_only = 0")
        await db.append_message("s", "user", "yes")
        assert [row.text for row in await db.get_messages("s")] == ["yes"]


async def test_the_hour_that_comes_twice_is_two_hours_for_nodes(address: str):
    async with open_connection(address) as link:
        for instant in TWICE_HALF_PAST_TWO:
            await link.run_texts(f"SET SESSION timestamp = {instant.timestamp()}")
            assert (await link.fetch("SELECT hour(now()), minute(now())")) == [(2, 30)]
            assert (await link.fetch(SERVER_TIME))[0][0] == to_micros(instant)


async def until_gone(admin: MySQLConnection, before: set[int]) -> None:
    """Some of them: a server takes a moment to forget a connection that was closed."""
    while before <= await connections_of(admin):  # noqa: ASYNC110 -- a server tells nobody
        await asyncio.sleep(0.01)


async def connections_of(admin: MySQLConnection) -> set[int]:
    asked = "SELECT id FROM information_schema.processlist WHERE user = ?"
    return {row[0] for row in await admin.fetch(asked, (ROLE,))}
