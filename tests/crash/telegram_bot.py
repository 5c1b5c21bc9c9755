"""A Telegram bot that repeats what it is told: `python -m tests.crash.telegram_bot DOOR URL TOKEN HOME`."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from gateway_sessions import Config, Gateway, SessionStore, TurnContext
from gateway_sessions.core.queue.busy_modes import BusyRules
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.integrations.telegram import TelegramAdapter
from gateway_sessions.integrations.telegram.client import TelegramBot

ATTEMPTS = 1000
"""A sweep kills the bot more often within a minute, and within one turn, than anything else does."""


def config() -> Config:
    """Return a configuration in which each message is a turn, and nothing waits because of many crashes."""
    plain = Config(timezone="UTC", busy=BusyRules(mode=BusyMode.QUEUE, debounce=timedelta()))
    return replace(
        plain,
        agent=replace(plain.agent, max_restart_attempts=ATTEMPTS),
        delivery=replace(plain.delivery, retry=timedelta(seconds=0.05)),
        gateway=replace(plain.gateway, crash_loop_starts=ATTEMPTS),
    )


def adapter_of(door: str, url: str, token: str) -> TelegramAdapter:
    if door == "aiogram":
        from aiogram import Bot  # noqa: PLC0415 -- a bot imports its own library only, as people's bots do
        from aiogram.client.session.aiohttp import AiohttpSession  # noqa: PLC0415 -- the same
        from aiogram.client.telegram import TelegramAPIServer  # noqa: PLC0415 -- the same

        from gateway_sessions.integrations.aiogram import AiogramAdapter  # noqa: PLC0415 -- the same

        return AiogramAdapter(Bot(token, session=AiohttpSession(api=TelegramAPIServer.from_base(url))))
    if door == "python-telegram-bot":
        from telegram.ext import ApplicationBuilder  # noqa: PLC0415 -- the same

        from gateway_sessions.integrations.python_telegram_bot import PtbAdapter  # noqa: PLC0415 -- the same

        builder = ApplicationBuilder().token(token).updater(None)
        return PtbAdapter(builder.base_url(f"{url}/bot").base_file_url(f"{url}/file/bot").build())
    return TelegramAdapter(TelegramBot(token, api_url=url))


async def answer(turn: TurnContext) -> str:
    return f"A:{turn.text}"


async def main(door: str, url: str, token: str, home: str) -> None:
    async with (
        SessionStore.open(Path(home), config()) as store,
        Gateway(store, agent=answer, adapters=[adapter_of(door, url, token)]) as gateway,
    ):
        await gateway.run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
