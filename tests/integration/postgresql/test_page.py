"""What the page about PostgreSQL says to type works as it stands."""

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

import asyncpg
import pytest

from gateway_sessions import Config, SessionDB, SessionStore
from gateway_sessions.config import Provider, load_config, parse_config
from gateway_sessions.errors import MissingRightError
from gateway_sessions.storage.engines.upgrade import EngineOpening, upgrade_schema
from tests.postgresql import SERVER, empty_database

PAGE = (Path(__file__).parents[3] / "docs/how-to/run-on-postgresql.md").read_text("utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BLOCKS = dict(reversed(BLOCK.findall(PAGE)))
"""The first of each language."""
NARROWING = dict(BLOCK.findall(PAGE))["sql"]
BEHIND_A_POOLER = dict(BLOCK.findall(PAGE))["yaml"]


@pytest.fixture
async def address() -> AsyncIterator[str]:
    """Of a database that was made as the page says, under names of its own."""
    mark = secrets.token_hex(4)
    role, database = f"gateway_{mark}", f"sessions_{mark}"
    script = BLOCKS["sql"].replace("gateway", role).replace("sessions", database)
    async with empty_database() as outside:
        admin = await asyncpg.connect(outside)
        try:
            for statement in filter(str.strip, script.split(";")):
                await admin.execute(statement)
            host = urlsplit(SERVER).netloc.rpartition("@")[2]
            yield urlsplit(SERVER)._replace(netloc=f"{role}:x@{host}", path=f"/{database}").geturl()
        finally:
            await admin.execute(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')
            await admin.execute(f'DROP ROLE IF EXISTS "{role}"')
            await admin.close()


async def test_the_page_makes_a_database_and_a_store_in_it(address: str, tmp_path: Path):
    written = tmp_path / "config.yaml"
    written.write_text(BLOCKS["yaml"], "utf-8")
    config = await asyncio.to_thread(load_config, written, environ={"STORE_ADDRESS": address})
    assert isinstance(config, Config)
    assert config.sessiondb.provider is Provider.POSTGRESQL
    async with SessionStore.open(tmp_path / "home", config) as store:
        assert store.db.ownership.opening.epoch == 1


async def test_the_code_of_the_page_runs(address: str, tmp_path: Path):
    environ = {**os.environ, "STORE_ADDRESS": address, "XDG_STATE_HOME": str(tmp_path)}
    with tempfile.TemporaryDirectory() as runtime:  # a socket's path has to be short
        environ["XDG_RUNTIME_DIR"] = runtime
        done = subprocess.run(
            [sys.executable, "-c", BLOCKS["python"]], env=environ, capture_output=True, text=True, check=False
        )
    assert (done.stdout, done.stderr) == ("agent:main:local:dm:desk\n", "")


@pytest.fixture
async def narrow(address: str) -> AsyncIterator[str]:
    """The address of a role that owns nothing, made as the page says, in that database."""
    owner = str(urlsplit(address).username)
    role, admins = f"{owner}_runs", urlsplit(SERVER)._replace(path=urlsplit(address).path).geturl()
    admin = await asyncpg.connect(admins)
    await admin.execute(NARROWING.replace("gateway", owner))
    try:
        yield address.replace(f"{owner}:", f"{role}:")
    finally:
        await admin.execute(f'DROP OWNED BY "{role}"; DROP ROLE "{role}"')
        await admin.close()


async def test_few_rights_are_enough_once_the_tables_are_there(address: str, narrow: str, tmp_path: Path):
    made = await upgrade_schema(address, EngineOpening(home=tmp_path))
    assert str(made).startswith("Made the tables")
    async with SessionDB.open(narrow, home=tmp_path) as db:
        await db.create_session("s", "cli", user_id="alice")
        await db.append_message("s", "user", "walrus")
        async with SessionDB.open_reader(narrow, home=tmp_path) as reader:
            assert [one.text for one in await reader.get_messages("s")] == ["walrus"]
        record = await db.get_session("s")
        assert record is not None
        assert (await db.erase(record.owner)).rows["messages"] == 1
    assert not (await upgrade_schema(narrow, EngineOpening(home=tmp_path))).changed


async def test_whoever_may_not_make_tables_is_told_so(narrow: str, tmp_path: Path):
    role = urlsplit(narrow).username
    with pytest.raises(MissingRightError, match=rf"{role} lacks.* schema public.*sessiondb upgrade"):
        await SessionDB.open(narrow, home=tmp_path).__aenter__()


async def test_whoever_may_not_change_rows_is_told_so(address: str, narrow: str, tmp_path: Path):
    async with SessionDB.open(address, home=tmp_path / "owner") as db:
        await db.create_session("s", "cli")
    owner = await asyncpg.connect(address)
    await owner.execute(f"REVOKE INSERT ON messages FROM {urlsplit(narrow).username}")
    await owner.close()
    async with SessionDB.open(narrow, home=tmp_path) as db:
        with pytest.raises(MissingRightError, match="for table messages; grant"):
            await db.append_message("s", "user", "walrus")


def test_the_settings_for_a_pooler_are_settings():
    config = parse_config(BEHIND_A_POOLER, origin="config.yaml", environ={})
    assert (config.cluster.poll_only, config.sessiondb.prepared_statements) == (True, False)
