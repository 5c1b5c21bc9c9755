"""The bots of the examples, as processes on a fake Telegram: killed, started again, ended in order."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway_sessions.core.delivery.message_parts import REPEATED
from gateway_sessions.testing.fakes.telegram import FakeTelegram

BOTS = Path(__file__).parents[3] / "examples" / "bots"
PATIENCE = 60
LINES = 40
"""So many lines an example may have, blank ones included."""

pytestmark = pytest.mark.timeout(3 * PATIENCE)


@pytest.fixture
async def fake() -> AsyncGenerator[FakeTelegram]:
    async with FakeTelegram() as fake:
        yield fake


@asynccontextmanager
async def running(bot: Path, fake: FakeTelegram, folder: Path) -> AsyncIterator[subprocess.Popen[str]]:
    """Run a bot, and make an end of it."""
    environment = {**os.environ, "TELEGRAM_TOKEN": fake.token, "TELEGRAM_API_URL": fake.url}
    process = subprocess.Popen(
        [sys.executable, bot],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        await asyncio.to_thread(process.communicate)


@pytest.mark.parametrize("bot", sorted(BOTS.glob("telegram*.py")), ids=lambda path: path.stem)
async def test_a_bot_that_is_killed_answers_everything_once(bot: Path, fake: FakeTelegram, tmp_path: Path):
    async with running(bot, fake, tmp_path) as process:
        fake.says("ann", "one")
        await fake.wait_until(lambda: fake.texts("ann"), seconds=PATIENCE)
        await fake.wait_until(lambda: fake.pending == 0, seconds=PATIENCE)
        process.send_signal(signal.SIGKILL)
    fake.says("ann", "two")
    fake.says("bob", "/about")
    async with running(bot, fake, tmp_path) as process:
        await fake.wait_until(lambda: len(answers(fake)) == 2 and fake.texts("bob"), seconds=PATIENCE)
        process.send_signal(signal.SIGTERM)
        output, _ = await asyncio.to_thread(process.communicate, timeout=PATIENCE)
        assert (process.returncode, output) == (0, "")
    assert answers(fake) == [
        "You have told me 1 things, and first: one",
        "You have told me 2 things, and first: one",
    ]
    handled = "I remember what you tell me." if bot.stem != "telegram_without_library" else "/about"
    assert handled in fake.texts("bob")[0]


def answers(fake: FakeTelegram) -> list[str]:
    """Return what ann was answered, without repeats that say that they may be one: Telegram cannot tell."""
    return [text for text in fake.texts("ann") if not text.startswith(REPEATED)]


@pytest.mark.parametrize("bot", sorted(BOTS.glob("*.py")), ids=lambda path: path.stem)
def test_a_bot_is_short(bot: Path):
    assert len(bot.read_text("utf-8").splitlines()) <= LINES
