"""The Mattermost bot of the examples as a process on a fake server: killed, started again, ended in order."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway_sessions.testing.fakes.mattermost import FakeMattermost

BOT = Path(__file__).parents[4] / "examples" / "bots" / "mattermost.py"
PATIENCE = 60

pytestmark = pytest.mark.timeout(3 * PATIENCE)


@asynccontextmanager
async def running(fake: FakeMattermost, folder: Path) -> AsyncIterator[subprocess.Popen[str]]:
    """Run the bot, and make an end of it."""
    process = subprocess.Popen(
        [sys.executable, BOT],
        cwd=folder,
        env={**os.environ, "MATTERMOST_URL": fake.url, "MATTERMOST_TOKEN": fake.token},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        await asyncio.to_thread(process.communicate)


async def test_a_bot_that_is_killed_answers_everything_once(tmp_path: Path):
    async with FakeMattermost() as fake:
        async with running(fake, tmp_path) as process:
            await fake.is_read(seconds=PATIENCE)
            fake.says("ann", "one")
            await fake.wait_until(lambda: fake.texts("ann"), seconds=PATIENCE)
            process.send_signal(signal.SIGKILL)
        fake.says("ann", "two")
        async with running(fake, tmp_path) as process:
            await fake.wait_until(lambda: len(fake.texts("ann")) == 2, seconds=PATIENCE)
            process.send_signal(signal.SIGTERM)
            output, _ = await asyncio.to_thread(process.communicate, timeout=PATIENCE)
            assert (process.returncode, output) == (0, "")
        assert fake.texts("ann") == [
            "You have told me 1 things, and first: one",
            "You have told me 2 things, and first: one",
        ]
