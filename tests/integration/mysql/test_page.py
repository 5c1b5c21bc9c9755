"""What the page about MySQL and MariaDB says to type works as it stands."""

import asyncio
import os
import re
import secrets
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from gateway_sessions import Config, SessionDB, SessionStore
from gateway_sessions.config import Provider, load_config
from gateway_sessions.errors import MissingRightError
from tests.mysql import SERVER, open_connection

PAGE = (Path(__file__).parents[3] / "docs/how-to/run-on-mysql.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
FIRST = dict(reversed(BLOCKS))
MAKING, NARROWING = [text for kind, text in BLOCKS if kind == "sql"]


class Place:
    """A database that was made as the page says, under names of its own."""

    def __init__(self) -> None:
        mark = secrets.token_hex(4)
        self.role, self.database = f"gateway_{mark}", f"sessions_{mark}"
        host = urlsplit(SERVER).netloc.rpartition("@")[2]
        login = f"{self.role}:choose%20one@{host}"
        self.address = urlsplit(SERVER)._replace(netloc=login, path=f"/{self.database}").geturl()

    async def run(self, script: str) -> None:
        async with open_connection(SERVER) as admin:
            await admin.run_texts(
                script.replace("gateway", self.role).replace("sessions", self.database).strip(";\n ")
            )


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    place = Place()
    try:
        await place.run(MAKING)
        yield place
    finally:
        await place.run("DROP DATABASE IF EXISTS sessions; DROP USER IF EXISTS gateway")


async def test_the_page_makes_a_database_and_a_store_in_it(place: Place, tmp_path: Path):
    written = tmp_path / "config.yaml"
    written.write_text(FIRST["yaml"], "utf-8")
    config = await asyncio.to_thread(load_config, written, environ={"STORE_ADDRESS": place.address})
    assert isinstance(config, Config)
    assert config.sessiondb.provider is Provider.MYSQL
    async with SessionStore.open(tmp_path / "home", config) as store:
        assert store.db.ownership.opening.epoch == 1


async def test_the_code_of_the_page_runs(place: Place, tmp_path: Path):
    environ = {**os.environ, "STORE_ADDRESS": place.address, "XDG_STATE_HOME": str(tmp_path)}
    with tempfile.TemporaryDirectory() as runtime:  # a socket's path has to be short
        environ["XDG_RUNTIME_DIR"] = runtime
        done = subprocess.run(
            [sys.executable, "-c", FIRST["python"]], env=environ, capture_output=True, text=True, check=False
        )
    assert (done.stdout, done.stderr) == ("agent:main:local:dm:desk\n", "")


async def test_few_rights_are_enough_once_the_tables_are_there(place: Place, tmp_path: Path):
    async with SessionDB.open(place.address, home=tmp_path):
        pass
    await place.run(NARROWING)
    async with SessionDB.open(place.address, home=tmp_path) as db:
        await db.create_session("s", "cli", user_id="alice")
        await db.append_message("s", "user", "walrus")
        async with SessionDB.open_reader(place.address, home=tmp_path) as reader:
            assert [one.text for one in await reader.get_messages("s")] == ["walrus"]
        record = await db.get_session("s")
        assert record is not None
        assert (await db.erase(record.owner)).rows["messages"] == 1


async def test_who_only_reads_needs_no_other_right(place: Place, tmp_path: Path):
    async with SessionDB.open(place.address, home=tmp_path) as db:
        await db.create_session("s", "cli")
        await db.append_message("s", "user", "walrus")
        await place.run("REVOKE ALL ON sessions.* FROM gateway; GRANT SELECT ON sessions.* TO gateway")
        async with SessionDB.open_reader(place.address, home=tmp_path) as reader:
            assert [one.text for one in await reader.get_messages("s")] == ["walrus"]
        await place.run("GRANT ALL ON sessions.* TO gateway")


async def test_whoever_may_not_make_tables_is_told_so(place: Place, tmp_path: Path):
    await place.run(NARROWING)
    told = rf"CREATE command denied to user '{place.role}'.*grant.*sessiondb upgrade"
    with pytest.raises(MissingRightError, match=told):
        await SessionDB.open(place.address, home=tmp_path).__aenter__()
