"""What the page about PostgreSQL says to type works as it stands."""

import asyncio
import os
import re
import secrets
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest

from gateway_sessions import Config, SessionStore
from gateway_sessions.config import Provider, load_config, parse_config
from tests.postgresql import SERVER, empty_database

PAGE = (Path(__file__).parents[3] / "docs/how-to/run-on-postgresql.md").read_text("utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BLOCKS = dict(reversed(BLOCK.findall(PAGE)))
"""The first of each language."""
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
        assert store.db.opening.epoch == 1


async def test_the_code_of_the_page_runs(address: str, tmp_path: Path):
    environ = {**os.environ, "STORE_ADDRESS": address, "XDG_STATE_HOME": str(tmp_path)}
    environ["XDG_RUNTIME_DIR"] = str(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", BLOCKS["python"]], env=environ, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("agent:main:local:dm:desk\n", "")


def test_the_settings_for_a_pooler_are_settings():
    config = parse_config(BEHIND_A_POOLER, origin="config.yaml", environ={})
    assert (config.cluster.poll_only, config.sessiondb.prepared_statements) == (True, False)
