"""The example of a number at Twilio, as a process on a fake Twilio: killed, started again, ended in order."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from gateway_sessions.core.delivery.message_parts import REPEATED
from gateway_sessions.testing.fakes.twilio import FakeTwilio
from tests.integration.platforms.bot_processes import PATIENCE, free_port, listening_bot

pytestmark = pytest.mark.timeout(3 * PATIENCE)


def answers(fake: FakeTwilio) -> list[str]:
    """Return what ann was answered; a reply that was cut off comes again and says so: Twilio cannot tell."""
    return list(dict.fromkeys(text.removeprefix(f"{REPEATED}\n") for text in fake.texts("ann")))


async def test_a_number_that_is_killed_answers_everything_once(tmp_path: Path):
    async with FakeTwilio() as fake:
        port = free_port()
        environment = {"TWILIO_ACCOUNT_SID": fake.account_sid, "TWILIO_AUTH_TOKEN": fake.auth_token}
        environment |= {
            "TWILIO_NUMBER": fake.number,
            "PUBLIC_URL": fake.public_url,
            "TWILIO_API_URL": fake.url,
        }
        async with listening_bot("twilio_sms.py", tmp_path, port, environment) as process:
            fake.webhook_url = f"http://127.0.0.1:{port}/twilio"
            fake.says("ann", "one")
            await fake.wait_until(lambda: fake.texts("ann"), seconds=PATIENCE)
            assert await fake.is_taken(fake.says("ann", "two"), seconds=PATIENCE)
            process.send_signal(signal.SIGKILL)  # what was acknowledged is in the database
            fake.webhook_url = ""
        fake.says("ann", "three")
        async with listening_bot("twilio_sms.py", tmp_path, port, environment) as process:
            fake.webhook_url = f"http://127.0.0.1:{port}/twilio"
            await fake.wait_until(lambda: len(answers(fake)) == 3, seconds=PATIENCE)
            process.send_signal(signal.SIGTERM)
            output, _ = await asyncio.to_thread(process.communicate, timeout=PATIENCE)
            assert process.returncode == 0
            # Only what a killed process leaves is told.
            assert {line.split(":")[0] for line in output.splitlines()} <= {"WARNING recovered"}
    assert answers(fake) == [f"You have told me {number} things, and first: one" for number in (1, 2, 3)]
