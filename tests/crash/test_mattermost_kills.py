"""A Mattermost bot that is killed again and again, on a server at its worst, loses and doubles nothing."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway_sessions.testing.fakes.mattermost import FakeMattermost
from tests.crash.kill_sweep import NONE_FOUND, KillSweep, SweptPlatform


def sweep_of(fake: FakeMattermost, home: Path, draw: random.Random) -> KillSweep:
    platform = SweptPlatform(
        fake=fake,
        says=fake.says,
        texts=fake.texts,
        is_begun=lambda: fake.looks > 1,
        sends="create_post",
        reads=("channels", "channel_posts", "user"),
    )
    return KillSweep(platform, draw, "tests.crash.mattermost_bot", fake.url, fake.token, str(home))


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_fifty_kills_in_five_hundred_messages_lose_nothing(
    tmp_path: Path, record_property: Callable[[str, object], None]
):
    seed = int(os.environ.get("SWEEP_SEED", time.time_ns() % 10**6))
    async with FakeMattermost() as fake:
        sweep = sweep_of(fake, tmp_path / "home", random.Random(seed))
        findings = await sweep.run(messages=500, kills=50)
    record_property("sweep", f"seed {seed}: {sweep.kills} kills, {findings}")
    assert findings == NONE_FOUND, seed


@pytest.mark.timeout(300)
async def test_three_kills_in_thirty_messages_lose_nothing(tmp_path: Path):
    async with FakeMattermost() as fake:
        sweep = sweep_of(fake, tmp_path / "home", random.Random(20261120))
        assert await sweep.run(messages=30, kills=3) == NONE_FOUND
