"""A Mattermost bot that is killed again and again, on a server at its worst, loses and doubles nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gateway_sessions.testing.fakes.mattermost import FakeMattermost
from tests.crash.platforms.kill_sweep import BOTS, LONG, SHORT, SweptPlatform, sweep_long, sweep_short


class SweptMattermost(SweptPlatform):
    sends = frozenset({"create_post"})
    reads = ("channels", "channel_posts", "user")

    def __init__(self, fake: FakeMattermost, home: Path) -> None:
        super().__init__(fake, f"{BOTS}.mattermost_bot", str(home), fake.url, fake.token)

    def is_begun(self) -> object:
        return self.fake.looks > 1


@pytest.mark.soak
@pytest.mark.timeout(LONG)
async def test_fifty_kills_in_five_hundred_messages_lose_nothing(
    tmp_path: Path, record_property: Callable[[str, object], None]
):
    async with FakeMattermost() as fake:
        await sweep_long(SweptMattermost(fake, tmp_path), record_property)


@pytest.mark.timeout(SHORT)
async def test_three_kills_in_twenty_messages_lose_nothing(tmp_path: Path):
    async with FakeMattermost() as fake:
        await sweep_short(SweptMattermost(fake, tmp_path))
