"""A number at Twilio that is killed again and again, on a Twilio at its worst, loses and doubles nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway_sessions.testing.fakes.twilio import FakeTwilio
from tests.crash.platforms.kill_sweep import LONG, SHORT, SPEED, SweptWebhooks, sweep_long, sweep_short


class SweptTwilio(SweptWebhooks):
    platform = "twilio"
    sends = frozenset({"send"})
    reads = ("list",)
    may_mark = True  # Twilio knows no keys

    def settings(self, home: Path) -> dict[str, Any]:
        return {
            "account_sid": self.fake.account_sid,
            "auth_token": self.fake.auth_token,
            "sender": self.fake.number,
            "public_url": self.fake.public_url,
            "api_url": self.fake.url,
        }


@pytest.mark.soak
@pytest.mark.timeout(LONG)
async def test_fifty_kills_in_five_hundred_messages_lose_nothing(
    tmp_path: Path, record_property: Callable[[str, object], None]
):
    async with FakeTwilio(speed=SPEED) as fake:
        await sweep_long(SweptTwilio(fake, tmp_path), record_property)


@pytest.mark.timeout(SHORT)
async def test_three_kills_in_twenty_messages_lose_nothing(tmp_path: Path):
    async with FakeTwilio(speed=SPEED) as fake:
        await sweep_short(SweptTwilio(fake, tmp_path))
