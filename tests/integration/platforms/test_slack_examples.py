"""The apps of the examples, as processes on a fake Slack: killed, started again, ended in order."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway_sessions.testing.fakes.slack import FakeSlack, SlackTiming

BOTS = Path(__file__).parents[3] / "examples" / "bots"
PATHS = {"slack_bolt_http": "/slack/events", "slack_without_bolt": "/slack"}
PATIENCE = 60

pytestmark = pytest.mark.timeout(3 * PATIENCE)


@pytest.fixture
async def slack() -> AsyncGenerator[FakeSlack]:
    async with FakeSlack(timing=SlackTiming(speed=3600, delayed_events=True)) as slack:
        yield slack


@pytest.fixture
def port() -> int:
    """A port for the app: it has to be the same after a kill."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@asynccontextmanager
async def running(
    bot: Path, slack: FakeSlack, port: int, folder: Path
) -> AsyncIterator[subprocess.Popen[str]]:
    """Run an app, and make an end of it."""
    environment = {
        **os.environ,
        "SLACK_BOT_TOKEN": slack.token,
        "SLACK_APP_TOKEN": slack.app_token,
        "SLACK_SIGNING_SECRET": slack.signing_secret,
        "SLACK_API_URL": slack.api_url,
        "PORT": str(port),
    }
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


@pytest.mark.parametrize("bot", sorted(BOTS.glob("slack*.py")), ids=lambda path: path.stem)
async def test_an_app_that_is_killed_answers_everything_once(
    bot: Path, slack: FakeSlack, port: int, tmp_path: Path
):
    if bot.stem in PATHS:
        slack.listen_at(f"http://127.0.0.1:{port}{PATHS[bot.stem]}")
    async with running(bot, slack, port, tmp_path) as process:
        slack.people.says("ann", "one")
        await slack.wait_until(lambda: slack.texts("ann") and slack.pending == 0, seconds=PATIENCE)
        process.send_signal(signal.SIGKILL)
        await asyncio.to_thread(process.wait)
    slack.people.says("ann", "two")
    slack.people.says("bob", "about")
    async with running(bot, slack, port, tmp_path) as process:
        await slack.wait_until(lambda: len(slack.texts("ann")) == 2 and slack.texts("bob"), seconds=PATIENCE)
        process.send_signal(signal.SIGTERM)
        output, _ = await asyncio.to_thread(process.communicate, timeout=PATIENCE)
        assert (process.returncode, output) == (0, "")
    assert slack.texts("ann") == [
        "You have told me 1 things, and first: one",
        "You have told me 2 things, and first: one",
    ]
    handled = "I remember what you tell me." if bot.stem != "slack_without_bolt" else "first: about"
    assert handled in slack.texts("bob")[0]
