"""The examples of bots on WhatsApp, as processes on a fake one: killed, started again, ended in order."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from gateway_sessions.core.delivery.message_parts import REPEATED
from gateway_sessions.testing.fakes.faults import CutConnection
from gateway_sessions.testing.fakes.whatsapp import FakeWhatsApp
from gateway_sessions.testing.fakes.whatsapp.server import ACCESS_TOKEN, APP_SECRET, PHONE_NUMBER_ID
from tests.integration.platforms.bot_processes import PATIENCE, free_port, listening_bot

pytestmark = pytest.mark.timeout(3 * PATIENCE)


def answers(fake: FakeWhatsApp) -> list[str]:
    """Return what ann was answered; a reply that was cut off may come again, and says so."""
    return list(dict.fromkeys(text.removeprefix(f"{REPEATED}\n") for text in fake.texts("ann")))


@pytest.mark.parametrize(("name", "path"), [("whatsapp.py", ""), ("whatsapp_fastapi.py", "/hooks")])
async def test_a_bot_that_is_killed_answers_everything_once(name: str, path: str, tmp_path: Path):
    async with FakeWhatsApp() as fake:
        port = free_port()
        address = f"http://127.0.0.1:{port}{path}/whatsapp"
        environment = {
            "WHATSAPP_PHONE_NUMBER_ID": PHONE_NUMBER_ID,
            "WHATSAPP_ACCESS_TOKEN": ACCESS_TOKEN,
            "WHATSAPP_APP_SECRET": APP_SECRET,
            "WHATSAPP_VERIFY_TOKEN": "word",
            "WHATSAPP_API_URL": fake.url,
        }
        async with listening_bot(name, tmp_path, port, environment) as process:
            fake.webhook_url = address
            fake.says("ann", "one")
            await fake.wait_until(lambda: fake.texts("ann"), seconds=PATIENCE)
            # It ends between the reply and its mark: only a report tells that the reply was sent. If it ended
            # just before, no report would come, and the next process would wait for one for ten seconds.
            fake.faults.plan(CutConnection.AFTER, method="messages")
            fake.says("ann", "two")
            await fake.wait_until(lambda: len(fake.texts("ann")) == 2, seconds=PATIENCE)
            process.send_signal(signal.SIGKILL)
            fake.webhook_url = ""
        fake.says("ann", "three")
        async with listening_bot(name, tmp_path, port, environment) as process:
            fake.webhook_url = address
            await fake.wait_until(lambda: len(answers(fake)) == 3, seconds=PATIENCE)
            process.send_signal(signal.SIGTERM)
            output, _ = await asyncio.to_thread(process.communicate, timeout=PATIENCE)
            # uvicorn passes the signal on to whoever waits for its end.
            assert process.returncode in (0, -signal.SIGTERM), output
            # Only what a killed process leaves is told.
            known = {"WARNING recovered", "WARNING reply_not_findable", "WARNING reply_retry"}
            assert {line.split(":")[0] for line in output.splitlines()} <= known
    assert answers(fake) == [f"You have told me {number} things, and first: one" for number in (1, 2, 3)]
