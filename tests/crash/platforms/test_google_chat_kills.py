"""An app in Google Chat that is killed again and again, on a bad day, loses and doubles nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway_sessions.testing.fakes.google_chat import FakeGoogleChat
from tests.crash.platforms.kill_sweep import LONG, SHORT, SPEED, SweptWebhooks, sweep_long, sweep_short


class SweptGoogleChat(SweptWebhooks):
    platform = "google_chat"
    sends = frozenset({"create"})
    reads = ("token", "keys", "spaces")

    def settings(self, home: Path) -> dict[str, Any]:
        key_file = home / "key.json"
        key_file.write_text(json.dumps(self.fake.key))
        return {
            "audience": self.fake.audience,
            "key_file": str(key_file),
            "api_url": self.fake.url,
            "keys_url": self.fake.url,
        }


@pytest.mark.soak
@pytest.mark.timeout(LONG)
async def test_fifty_kills_in_five_hundred_messages_lose_nothing(
    tmp_path: Path, record_property: Callable[[str, object], None]
):
    async with FakeGoogleChat(speed=SPEED) as fake:
        await sweep_long(SweptGoogleChat(fake, tmp_path), record_property)


@pytest.mark.timeout(SHORT)
async def test_three_kills_in_twenty_messages_lose_nothing(tmp_path: Path):
    async with FakeGoogleChat(speed=SPEED) as fake:
        await sweep_short(SweptGoogleChat(fake, tmp_path))
