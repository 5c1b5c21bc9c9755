"""The adapters to Telegram, each with its real client library, pass the contract on a fake Telegram."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest
from aiogram import Bot
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from telegram.ext import ApplicationBuilder

from gateway_sessions.integrations.aiogram import AiogramAdapter
from gateway_sessions.integrations.python_telegram_bot import PtbAdapter
from gateway_sessions.integrations.telegram import TelegramAdapter
from gateway_sessions.integrations.telegram.client import TelegramBot
from gateway_sessions.testing.contract.adapter import Ability, AdapterBench, AdapterContract, SendFailure
from gateway_sessions.testing.fakes.telegram import FakeTelegram
from tests.contract.telegram_bench import TelegramBench


class QuickSession(AiohttpSession):
    """Closes without the pause that TLS needs."""

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()


class TelegramContract(AdapterContract):
    abilities = frozenset({Ability.ACKNOWLEDGES, Ability.REDELIVERS})
    failures = frozenset(SendFailure)

    @pytest.fixture
    async def fake(self) -> AsyncGenerator[FakeTelegram]:
        async with FakeTelegram() as fake:
            yield fake


class TestOwnClient(TelegramContract):
    @pytest.fixture
    async def bench(self, fake: FakeTelegram) -> AsyncGenerator[AdapterBench]:
        bot = TelegramBot(fake.token, api_url=fake.url)
        yield TelegramBench(fake, TelegramAdapter(bot))
        await bot.aclose()


class TestAiogram(TelegramContract):
    @pytest.fixture
    async def bench(self, fake: FakeTelegram) -> AsyncGenerator[AdapterBench]:
        async with Bot(fake.token, session=QuickSession(api=TelegramAPIServer.from_base(fake.url))) as bot:
            yield TelegramBench(fake, AiogramAdapter(bot))


class TestPythonTelegramBot(TelegramContract):
    @pytest.fixture(autouse=True)
    def no_warnings(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The library warns whenever Telegram asks for a pause, unless this is set."""
        monkeypatch.setenv("PTB_TIMEDELTA", "true")

    @pytest.fixture
    def bench(self, fake: FakeTelegram) -> AdapterBench:
        builder = ApplicationBuilder().token(fake.token).updater(None)
        builder = builder.base_url(f"{fake.url}/bot").base_file_url(f"{fake.url}/file/bot")
        return TelegramBench(fake, PtbAdapter(builder.build()))
