"""A Discord bot that is killed again and again, on a Discord at its worst, loses and doubles nothing."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway_sessions.testing.fakes.discord import FakeDiscord
from tests.crash.platforms.kill_sweep import BOTS, LONG, SHORT, SweptPlatform, sweep_long, sweep_short


class SweptDiscord(SweptPlatform):
    """People write in private, in channels and in threads, and the gateway of Discord breaks."""

    sends = frozenset({"create_message"})
    reads = ("get_messages",)
    # Nobody can find a private channel in which the bot was never spoken to.
    greets = True

    def __init__(self, fake: FakeDiscord, home: Path) -> None:
        addresses = (fake.api_url, fake.gateway_url)
        super().__init__(fake, f"{BOTS}.discord_bot", str(home), *addresses, fake.token)

    def is_begun(self) -> object:
        return self.fake.gateway.connected

    def says(self, person: str, text: str) -> None:
        self.fake.says(person, text, **place_of(person))

    def texts(self, person: str) -> list[str]:
        return self.fake.texts(person, **place_of(person))

    async def something_happens(self, draw: random.Random) -> None:
        gateway = self.fake.gateway
        if gateway.connected and draw.random() < 0.1:
            broken = [gateway.cut, gateway.invalidate, gateway.forget_sessions, gateway.ask_to_reconnect]
            await self.fake.on_gateway(draw.choice(broken))


def place_of(person: str) -> dict[str, str]:
    """Return where a person writes: every second one in private, every fifth one in a thread."""
    number = int(person[1:])
    if number % 2 == 0:
        return {}
    return {"channel": f"c{number}", "thread": "t"} if number % 5 == 0 else {"channel": f"c{number}"}


@pytest.mark.soak
@pytest.mark.timeout(LONG)
async def test_fifty_kills_in_five_hundred_messages_lose_nothing(
    tmp_path: Path, record_property: Callable[[str, object], None]
):
    async with FakeDiscord() as fake:
        await sweep_long(SweptDiscord(fake, tmp_path), record_property)


@pytest.mark.timeout(SHORT)
async def test_three_kills_in_twenty_messages_lose_nothing(tmp_path: Path):
    async with FakeDiscord() as fake:
        await sweep_short(SweptDiscord(fake, tmp_path))
