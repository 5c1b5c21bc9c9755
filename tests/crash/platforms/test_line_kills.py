"""An account of LINE that is killed again and again, on a LINE at its worst, loses and doubles nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway_sessions.testing.fakes.line import FakeLine
from tests.crash.platforms.kill_sweep import LONG, SHORT, SPEED, SweptWebhooks, sweep_long, sweep_short


class SweptLine(SweptWebhooks):
    platform = "line"
    sends = frozenset({"reply", "push"})
    reads = ("info",)
    may_mark = True  # a reply by its token has no key
    use_reply_tokens = True

    def settings(self, home: Path) -> dict[str, Any]:
        return {
            "channel_secret": self.fake.channel_secret,
            "channel_access_token": self.fake.channel_access_token,
            "use_reply_tokens": self.use_reply_tokens,
            "api_url": self.fake.url,
            "data_url": self.fake.url,
        }


class SweptPushingLine(SweptLine):
    may_mark = False
    use_reply_tokens = False


@pytest.mark.soak
@pytest.mark.timeout(LONG)
@pytest.mark.parametrize("swept", [SweptLine, SweptPushingLine])
async def test_fifty_kills_in_five_hundred_messages_lose_nothing(
    swept: type[SweptLine], tmp_path: Path, record_property: Callable[[str, object], None]
):
    async with FakeLine(speed=SPEED) as fake:
        await sweep_long(swept(fake, tmp_path), record_property)


@pytest.mark.timeout(SHORT)
async def test_three_kills_in_twenty_messages_lose_nothing(tmp_path: Path):
    async with FakeLine(speed=SPEED) as fake:
        await sweep_short(SweptLine(fake, tmp_path))
