"""A Telegram bot made with a library that repeats what it is told; `main` has its arguments."""

from __future__ import annotations

from gateway_sessions.adapters import Adapter
from tests.crash.platforms.bots.repeating_bot import repeat_all


def adapter_of(door: str, url: str, token: str) -> Adapter:
    if door == "aiogram":
        from aiogram import Bot  # noqa: PLC0415 -- a bot imports its own library only, as people's bots do
        from aiogram.client.session.aiohttp import AiohttpSession  # noqa: PLC0415 -- the same
        from aiogram.client.telegram import TelegramAPIServer  # noqa: PLC0415 -- the same

        from gateway_sessions.integrations.aiogram import AiogramAdapter  # noqa: PLC0415 -- the same

        return AiogramAdapter(Bot(token, session=AiohttpSession(api=TelegramAPIServer.from_base(url))))
    from telegram.ext import ApplicationBuilder  # noqa: PLC0415 -- the same

    from gateway_sessions.integrations.python_telegram_bot import PtbAdapter  # noqa: PLC0415 -- the same

    builder = ApplicationBuilder().token(token).updater(None)
    return PtbAdapter(builder.base_url(f"{url}/bot").base_file_url(f"{url}/file/bot").build())


async def main(home: str, door: str, url: str, token: str) -> None:
    await repeat_all(home, adapter_of(door, url, token))
