"""Whenever a node on a server is killed, the next one makes good of it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import mysql, postgresql

SAMPLE = 3
SOAK_SECONDS = 3600


async def is_there(server: str) -> None:
    """Skip the test without that server, or fail it where all has to be tested."""
    if server == "postgresql":
        await (await postgresql.admin_connection()).close()
    else:
        async with mysql.open_connection(mysql.SERVER):
            pass


def run(server: str, *options: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-m", "tests.crash.kills.server_matrix", server, *options],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.mark.timeout(180)
@pytest.mark.parametrize("server", ["postgresql", "mysql"])
@pytest.mark.parametrize("script", ["talk", "conversation"])
async def test_some_kills_lose_double_and_reorder_nothing(server: str, script: str):
    await is_there(server)
    assert " 1 | 0 | 0 | 0 | 0 |" in run(server, "--script", script, "--some", str(SAMPLE))


@pytest.mark.timeout(180)
@pytest.mark.parametrize("server", ["postgresql", "mysql"])
async def test_some_kills_while_a_database_is_made_are_made_good_of(server: str):
    await is_there(server)
    said = run(server, "--script", "migration", "--some", str(SAMPLE))
    assert re.search(r"a step is taken, its transaction is open \| [1-9]\d* \| 0 \| 0 \| 0 \| 0 \|", said), (
        said
    )


@pytest.mark.soak
@pytest.mark.timeout(SOAK_SECONDS)
@pytest.mark.parametrize("server", ["postgresql", "mysql"])
async def test_a_kill_at_every_pass_of_every_failpoint_loses_doubles_and_reorders_nothing(server: str):
    await is_there(server)
    said = run(server)
    assert "a turn is committed, nobody has been told" in said
    assert "a step is taken, its transaction is open" in said
