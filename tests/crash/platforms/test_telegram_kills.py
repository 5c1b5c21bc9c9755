"""A Telegram bot that is killed again and again, on a Telegram at its worst, loses and doubles nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gateway_sessions.testing.fakes.telegram import FakeTelegram
from tests.crash.platforms.kill_sweep import (
    BOTS,
    LONG,
    SHORT,
    SweptPlatform,
    configured_bot,
    free_port,
    sweep_long,
    sweep_short,
)


class SweptTelegram(SweptPlatform):
    sends = frozenset({"sendMessage"})
    reads = ("getUpdates", "getMe", "setWebhook")
    may_mark = True  # Telegram knows no keys


def swept(fake: FakeTelegram, door: str, home: Path) -> SweptTelegram:
    settings = {"token": fake.token, "api_url": fake.url}
    match door:
        case "no library":
            return SweptTelegram(fake, *configured_bot(home, "telegram", settings))
        case "webhook":
            port = free_port()
            settings["webhook_url"] = f"http://127.0.0.1:{port}/telegram"
            return SweptTelegram(fake, *configured_bot(home, "telegram", settings, port=port))
        case _:
            return SweptTelegram(fake, f"{BOTS}.telegram_bot", str(home), door, fake.url, fake.token)


@pytest.mark.soak
@pytest.mark.timeout(LONG)
@pytest.mark.parametrize("door", ["no library", "webhook", "aiogram", "python-telegram-bot"])
async def test_fifty_kills_in_five_hundred_messages_lose_nothing(
    door: str, tmp_path: Path, record_property: Callable[[str, object], None]
):
    async with FakeTelegram() as fake:
        await sweep_long(swept(fake, door, tmp_path), record_property)


@pytest.mark.timeout(SHORT)
@pytest.mark.parametrize("door", ["no library", "webhook"])
async def test_three_kills_in_twenty_messages_lose_nothing(door: str, tmp_path: Path):
    async with FakeTelegram() as fake:
        await sweep_short(swept(fake, door, tmp_path))
