"""The Discord bot of the examples as a process on a fake Discord: killed, started again, ended in order."""

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

from gateway_sessions.testing.fakes.discord import FakeDiscord

ROOT = Path(__file__).parents[4]
BOT = ROOT / "examples" / "bots" / "discord_py.py"
PATIENCE = 60

pytestmark = pytest.mark.timeout(3 * PATIENCE)


@asynccontextmanager
async def running(fake: FakeDiscord, folder: Path) -> AsyncIterator[subprocess.Popen[str]]:
    """Run the bot, and make an end of it."""
    launcher = [sys.executable, "-m", "tests.integration.platforms.discord.run_on_fake"]
    process = subprocess.Popen(
        [*launcher, fake.api_url, fake.gateway_url, str(BOT)],
        cwd=folder,
        env={**os.environ, "DISCORD_TOKEN": fake.token, "PYTHONPATH": str(ROOT)},
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
    async with FakeDiscord() as fake:
        async with running(fake, tmp_path) as process:
            await fake.wait_until(lambda: fake.gateway.connected, seconds=PATIENCE)
            fake.says("ann", "one")
            fake.says("bob", "!about")
            await fake.wait_until(lambda: fake.texts("ann") and fake.texts("bob"), seconds=PATIENCE)
            process.send_signal(signal.SIGKILL)
        fake.says("ann", "two")
        fake.says("carol", f"{fake.mention} hello", channel="general")
        async with running(fake, tmp_path) as process:
            await fake.wait_until(
                lambda: len(fake.texts("ann")) == 2 and fake.texts(channel="general"), seconds=PATIENCE
            )
            await fake.wait_until(lambda: "new" in fake.rest.commands, seconds=PATIENCE)
            process.send_signal(signal.SIGTERM)
            output, _ = await asyncio.to_thread(process.communicate, timeout=PATIENCE)
            assert process.returncode == 0
            assert "Traceback" not in output
        assert fake.texts("ann") == [
            "You have told me 1 things, and first: one",
            "You have told me 2 things, and first: one",
        ]
        assert fake.texts("bob") == ["I remember what you tell me."]
        assert fake.texts(channel="general") == ["You have told me 1 things, and first: hello"]
