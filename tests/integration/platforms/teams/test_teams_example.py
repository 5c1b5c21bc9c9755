"""The example of a bot on Teams, as a process on a fake Teams: killed, started again, ended in order."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from gateway_sessions.core.delivery.message_parts import REPEATED
from gateway_sessions.testing.fakes.teams import FakeTeams
from tests.integration.platforms.bot_processes import PATIENCE, free_port, listening_bot

pytestmark = pytest.mark.timeout(3 * PATIENCE)


def answers(fake: FakeTeams) -> list[str]:
    """Return what ann was answered; a reply that was cut off comes again and says so: Teams cannot tell."""
    return list(dict.fromkeys(text.removeprefix(f"{REPEATED}\n") for text in fake.texts("ann")))


async def test_a_bot_that_is_killed_answers_everything_once(tmp_path: Path):
    async with FakeTeams() as fake:
        port = free_port()
        environment = {"TEAMS_APP_ID": fake.app_id, "TEAMS_APP_SECRET": fake.app_secret}
        environment |= {"TEAMS_TENANT_ID": "tenant", "TEAMS_URL": fake.url}
        async with listening_bot("teams.py", tmp_path, port, environment) as process:
            fake.webhook_url = f"http://127.0.0.1:{port}/teams"
            fake.says("ann", "one")
            await fake.wait_until(lambda: fake.texts("ann"), seconds=PATIENCE)
            assert await fake.is_taken(fake.says("ann", "two"), seconds=PATIENCE)
            process.send_signal(signal.SIGKILL)  # what was acknowledged is in the database
            fake.webhook_url = ""
        fake.says("ann", "three")
        async with listening_bot("teams.py", tmp_path, port, environment) as process:
            fake.webhook_url = f"http://127.0.0.1:{port}/teams"
            await fake.wait_until(lambda: len(answers(fake)) == 3, seconds=PATIENCE)
            process.send_signal(signal.SIGTERM)
            output, _ = await asyncio.to_thread(process.communicate, timeout=PATIENCE)
            assert process.returncode == 0
            # Only what a killed process leaves is told.
            assert {line.split(":")[0] for line in output.splitlines()} <= {"WARNING recovered"}
    assert answers(fake) == [f"You have told me {number} things, and first: one" for number in (1, 2, 3)]
