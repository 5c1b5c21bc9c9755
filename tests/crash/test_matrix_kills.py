"""A Matrix bot that is killed again and again, on a homeserver at its worst, loses and doubles nothing."""

from __future__ import annotations

import os
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from gateway_sessions.testing.fakes.matrix import FakeMatrix
from tests.crash.kill_sweep import CHATS, NONE_FOUND, KillSweep, SweptPlatform
from tests.integration.platforms.matrix.person import person


def sweep_of(fake: FakeMatrix, home: Path, draw: random.Random) -> KillSweep:
    platform = SweptPlatform(
        fake=fake,
        says=fake.says,
        texts=fake.texts,
        is_begun=lambda: fake.syncs,
        sends="send",
        reads=("sync", "joined_members", "messages"),
    )
    return KillSweep(
        platform, draw, "tests.crash.matrix_bot", fake.url, fake.bot.user_id, fake.token, str(home)
    )


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_fifty_kills_in_five_hundred_messages_lose_nothing(
    tmp_path: Path, record_property: Callable[[str, object], None]
):
    seed = int(os.environ.get("SWEEP_SEED", time.time_ns() % 10**6))
    async with FakeMatrix() as fake:
        sweep = sweep_of(fake, tmp_path / "home", random.Random(seed))
        findings = await sweep.run(messages=500, kills=50)
    record_property("sweep", f"seed {seed}: {sweep.kills} kills, {findings}")
    assert findings == NONE_FOUND, seed


@pytest.mark.timeout(300)
async def test_three_kills_in_thirty_messages_lose_nothing(tmp_path: Path):
    async with FakeMatrix() as fake:
        sweep = sweep_of(fake, tmp_path / "home", random.Random(20261120))
        assert await sweep.run(messages=30, kills=3) == NONE_FOUND


# In encrypted rooms


@asynccontextmanager
async def encrypted_sweep(fake: FakeMatrix, home: Path, draw: random.Random) -> AsyncIterator[KillSweep]:
    """A sweep among people with clients of their own: what they cannot read was not said."""
    async with AsyncExitStack() as stack:
        names = [f"p{number}" for number in range(CHATS)]
        people = {name: await stack.enter_async_context(person(fake, name)) for name in names}
        platform = SweptPlatform(
            fake=fake,
            says=lambda name, text: people[name].will_say(text),
            texts=lambda name: people[name].texts,
            is_begun=lambda: fake.syncs and all(one.devices_of_bot for one in people.values()),
            sends="send",
            reads=("sync", "joined_members", "keys_query", "keys_claim", "send_to_device"),
        )
        bot = fake.bot.user_id
        program = ("tests.crash.matrix_bot", fake.url, bot, fake.token, str(home), "encrypted")
        yield KillSweep(platform, draw, *program)
        assert [one.unreadable for one in people.values()] == [[]] * CHATS


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_fifty_kills_in_encrypted_rooms_lose_nothing(
    tmp_path: Path, record_property: Callable[[str, object], None]
):
    seed = int(os.environ.get("SWEEP_SEED", time.time_ns() % 10**6))
    async with FakeMatrix() as fake, encrypted_sweep(fake, tmp_path / "home", random.Random(seed)) as sweep:
        findings = await sweep.run(messages=500, kills=50)
        record_property("sweep", f"seed {seed}: {sweep.kills} kills, {findings}")
        assert findings == NONE_FOUND, seed


@pytest.mark.timeout(300)
async def test_three_kills_in_encrypted_rooms_lose_nothing(tmp_path: Path):
    draw = random.Random(20261120)
    async with FakeMatrix() as fake, encrypted_sweep(fake, tmp_path / "home", draw) as sweep:
        assert await sweep.run(messages=30, kills=3) == NONE_FOUND
