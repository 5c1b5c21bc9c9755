"""The adapter to which Telegram posts passes the contract on a fake Telegram, on a port of its own."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from gateway_sessions.integrations.telegram import TelegramWebhook
from gateway_sessions.integrations.telegram.client import TelegramBot
from gateway_sessions.testing.contract.adapter import Ability, AdapterBench, AdapterContract, SendFailure
from gateway_sessions.testing.fakes.telegram import FakeTelegram
from tests.contract.telegram_bench import TelegramBench


class LocalWebhook(TelegramWebhook):
    """Tells Telegram the port that it has got."""

    async def _set_webhook(self) -> None:
        assert self.address is not None
        self.public_url = f"http://127.0.0.1:{self.address[1]}/hook"
        await super()._set_webhook()


class PostedBench(TelegramBench):
    """Whether an update was taken shows in whether Telegram keeps it."""

    async def says(self, text: str) -> bool:
        return await self._is_taken(self.fake.says("ann", text))

    async def delivers_again(self) -> bool:
        message = list(self.fake.chat_of("ann").messages.values())[-1]
        return await self._is_taken(self.fake.chats.add_update("message", message))

    async def garbles(self) -> bool:
        broken = {"message_id": "seven", "chat": []}
        return await self._is_taken(self.fake.chats.add_update("message", broken))

    async def _is_taken(self, update_id: int) -> bool:
        """Wait for the first answer to an update, and return whether it was a success."""
        await self.fake.wait_until(lambda: update_id in self.fake.posted)
        return self.fake.posted[update_id]


class TestTelegramWebhook(AdapterContract):
    abilities = frozenset({Ability.ACKNOWLEDGES, Ability.REDELIVERS})
    failures = frozenset(SendFailure)

    @pytest.fixture
    async def bench(self) -> AsyncGenerator[AdapterBench]:
        async with FakeTelegram() as fake:
            bot = TelegramBot(fake.token, api_url=fake.url)
            yield PostedBench(fake, LocalWebhook(bot, "http://127.0.0.1/hook", port=0))
            await bot.aclose()
