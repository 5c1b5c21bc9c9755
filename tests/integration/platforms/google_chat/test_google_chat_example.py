"""The example of an app in Google Chat, as a process on a fake: killed, started again, ended in order."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path

import pytest

from gateway_sessions.testing.fakes.google_chat import FakeGoogleChat
from tests.integration.platforms.bot_processes import PATIENCE, free_port, listening_bot

pytestmark = pytest.mark.timeout(3 * PATIENCE)


async def test_an_app_that_is_killed_answers_everything_once(tmp_path: Path):
    async with FakeGoogleChat() as fake:
        key, port = tmp_path / "key.json", free_port()
        await asyncio.to_thread(key.write_text, json.dumps(fake.key))
        environment = {"GOOGLE_KEY_FILE": str(key), "PUBLIC_URL": fake.audience}
        environment |= {"GOOGLE_CHAT_URL": fake.url, "GOOGLE_KEYS_URL": fake.url}
        async with listening_bot("google_chat.py", tmp_path, port, environment) as process:
            fake.webhook_url = f"http://127.0.0.1:{port}/google_chat"
            fake.says("ann", "one")
            await fake.wait_until(lambda: fake.texts("ann"), seconds=PATIENCE)
            assert await fake.is_taken(fake.says("ann", "two"), seconds=PATIENCE)
            process.send_signal(signal.SIGKILL)  # what was acknowledged is in the database
            fake.webhook_url = ""
        fake.says("ann", "three")
        async with listening_bot("google_chat.py", tmp_path, port, environment) as process:
            fake.webhook_url = f"http://127.0.0.1:{port}/google_chat"
            await fake.wait_until(lambda: len(fake.texts("ann")) == 3, seconds=PATIENCE)
            process.send_signal(signal.SIGTERM)
            output, _ = await asyncio.to_thread(process.communicate, timeout=PATIENCE)
            assert process.returncode == 0
            # Only what a killed process leaves is told.
            assert {line.split(":")[0] for line in output.splitlines()} <= {"WARNING recovered"}
    # What is sent twice under one name is shown once: none is doubled, and none says that it may be.
    assert fake.texts("ann") == [f"You have told me {number} things, and first: one" for number in (1, 2, 3)]
