"""A bot on WhatsApp that is killed again and again, on a WhatsApp at its worst, loses and doubles nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gateway_sessions.testing.fakes.whatsapp import FakeWhatsApp
from tests.crash.platforms.kill_sweep import (
    BOTS,
    LONG,
    SHORT,
    SPEED,
    SweptWebhooks,
    sweep_long,
    sweep_short,
)


class SweptWhatsApp(SweptWebhooks):
    platform = "whatsapp"
    sends = frozenset({"messages"})
    reads = ("number",)
    may_mark = True  # it reports on no message that has not reached it: after a while, nobody knows

    def bot(self, home: Path, port: int) -> tuple[str, ...]:
        return (f"{BOTS}.whatsapp_bot", str(home), str(port), self.fake.url)


@pytest.mark.soak
@pytest.mark.timeout(LONG)
async def test_fifty_kills_in_five_hundred_messages_lose_nothing(
    tmp_path: Path, record_property: Callable[[str, object], None]
):
    async with FakeWhatsApp(speed=SPEED) as fake:
        await sweep_long(SweptWhatsApp(fake, tmp_path), record_property)


@pytest.mark.timeout(SHORT)
async def test_three_kills_in_twenty_messages_lose_nothing(tmp_path: Path):
    async with FakeWhatsApp(speed=SPEED) as fake:
        await sweep_short(SweptWhatsApp(fake, tmp_path))
