"""A bot on Teams that is killed again and again, on a Teams at its worst, loses and doubles nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway_sessions.testing.fakes.teams import FakeTeams
from tests.crash.platforms.kill_sweep import LONG, SHORT, SPEED, SweptWebhooks, sweep_long, sweep_short


class SweptTeams(SweptWebhooks):
    platform = "teams"
    sends = frozenset({"sendActivity"})
    reads = ("token", "openidconfiguration", "keys")
    may_mark = True  # the Bot Connector knows no keys, and shows nobody what it has shown

    def settings(self, home: Path) -> dict[str, Any]:
        return {
            "app_id": self.fake.app_id,
            "app_secret": self.fake.app_secret,
            "tenant_id": "contoso.example",
            "api_url": self.fake.url,
        }


@pytest.mark.soak
@pytest.mark.timeout(LONG)
async def test_fifty_kills_in_five_hundred_messages_lose_nothing(
    tmp_path: Path, record_property: Callable[[str, object], None]
):
    async with FakeTeams(speed=SPEED) as fake:
        await sweep_long(SweptTeams(fake, tmp_path), record_property)


@pytest.mark.timeout(SHORT)
async def test_three_kills_in_twenty_messages_lose_nothing(tmp_path: Path):
    async with FakeTeams(speed=SPEED) as fake:
        await sweep_short(SweptTeams(fake, tmp_path))
