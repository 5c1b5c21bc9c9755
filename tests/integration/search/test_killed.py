"""The process is killed while it fills the index: the next one finds all that was acknowledged."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

from tests.integration.search.conftest import EVERYTHING, open_database

WRITER = """
import asyncio, sys
from gateway_sessions import SessionDB

async def main():
    async with SessionDB.open(sys.argv[1], survives_power_cut=False) as db:
        await db.create_session("s", "cli")
        for number in range(100_000):
            said = [{"role": "user", "content": f"docker n{number}x{at} " + "word " * 20} for at in range(20)]
            await db.append_messages("s", said)
            print(number, flush=True)
            if number % 3 == 0:
                asyncio.ensure_future(db.catch_up_search_index())

asyncio.run(main())
"""


def killed_after(seconds: float, path: Path) -> list[int]:
    """What the child said to have written."""
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        acknowledged = [int(child.stdout.readline())]
        time.sleep(seconds)
        child.kill()
        return [*acknowledged, *map(int, child.stdout.read().split("\n")[:-1])]


async def test_a_kill_loses_nothing_that_a_search_should_find(tmp_path: Path):
    acknowledged = await asyncio.to_thread(killed_after, 0.1, tmp_path / "sessions.db")
    async with open_database(tmp_path) as db:
        for _ in range(2):
            for number in {*acknowledged[:3], *acknowledged[-3:]}:
                result = await db.search_messages(f"n{number}x0 docker", scope=EVERYTHING)
                assert (len(result.hits), result.degraded) == (1, False)
            await db.catch_up_search_index()
        assert (await db.check_search_index()).problem is None
        assert db.search_index.rebuilt == 0
