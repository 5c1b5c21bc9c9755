"""The three doors to Telegram, as a program opens them, on a fake Telegram."""

from __future__ import annotations

import mimetypes
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from aiogram import Bot
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from telegram.ext import Application, ApplicationBuilder

from gateway_sessions.integrations.aiogram import AiogramAdapter
from gateway_sessions.integrations.python_telegram_bot import PtbAdapter
from gateway_sessions.integrations.telegram import TelegramAdapter
from gateway_sessions.integrations.telegram.client import TelegramBot
from gateway_sessions.testing.fakes.telegram import FakeTelegram

mimetypes.init()  # python-telegram-bot reads the system's list of types when it first sends a file
Door = Callable[..., AbstractAsyncContextManager[TelegramAdapter]]


class QuickSession(AiohttpSession):
    """Closes without the pause that TLS needs."""

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()


def aiogram_bot(fake: FakeTelegram, token: str | None = None) -> Bot:
    return Bot(token or fake.token, session=QuickSession(api=TelegramAPIServer.from_base(fake.url)))


def ptb_application(fake: FakeTelegram) -> Application[Any, Any, Any, Any, Any, Any]:
    builder = ApplicationBuilder().token(fake.token).updater(None)
    return builder.base_url(f"{fake.url}/bot").base_file_url(f"{fake.url}/file/bot").build()


@asynccontextmanager
async def own_door(fake: FakeTelegram, **options: Any) -> AsyncIterator[TelegramAdapter]:
    bot = TelegramBot(fake.token, api_url=fake.url)
    try:
        yield TelegramAdapter(bot, **options)
    finally:
        await bot.aclose()


@asynccontextmanager
async def aiogram_door(fake: FakeTelegram, **options: Any) -> AsyncIterator[TelegramAdapter]:
    async with aiogram_bot(fake) as bot:
        yield AiogramAdapter(bot, **options)


@asynccontextmanager
async def ptb_door(fake: FakeTelegram, **options: Any) -> AsyncIterator[TelegramAdapter]:
    yield PtbAdapter(ptb_application(fake), **options)


DOORS: dict[str, Door] = {"own": own_door, "aiogram": aiogram_door, "python-telegram-bot": ptb_door}
