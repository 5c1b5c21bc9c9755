"""A bot to which Telegram posts: in an ASGI application, with a gateway, with handlers of its own."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gateway_sessions import Gateway, Reply, SessionStore, TurnContext
from gateway_sessions.adapters import Button, OutboundMessage, ReplyTarget
from gateway_sessions.adapters.webhooks import WebhookApp
from gateway_sessions.adapters.webhooks.engine import TAKEN
from gateway_sessions.errors import AdapterUnavailableError, InvalidInputError, StorageUnavailableError
from gateway_sessions.integrations.telegram import TelegramAdapter, TelegramWebhook
from gateway_sessions.integrations.telegram.client import TelegramBot
from gateway_sessions.testing.contract.adapter import Inbox
from gateway_sessions.testing.fakes.faults import RefusedCall
from gateway_sessions.testing.fakes.telegram import FakeTelegram
from tests.integration.gateway.gateway_harness import QUICK
from tests.integration.webhooks.example_world import serving

SECRET = "a_secret_of_the_tests"


@pytest.fixture
async def fake() -> AsyncGenerator[FakeTelegram]:
    async with FakeTelegram() as fake:
        fake.chats.person("ann")
        yield fake


@pytest.fixture
async def bot(fake: FakeTelegram) -> AsyncGenerator[TelegramBot]:
    bot = TelegramBot(fake.token, api_url=fake.url)
    yield bot
    await bot.aclose()


@asynccontextmanager
async def mounted(bot: TelegramBot, **options: Any) -> AsyncGenerator[TelegramWebhook]:
    adapter = TelegramWebhook(bot, "http://127.0.0.1/telegram", secret=SECRET, **options)
    async with serving(WebhookApp(adapter)) as url:
        adapter.public_url = f"{url}/telegram"
        yield adapter


async def echo(turn: TurnContext) -> Reply:
    return Reply(f"You said {turn.text}.")


async def test_a_conversation_goes_both_ways(fake: FakeTelegram, bot: TelegramBot, tmp_path: Path):
    async with (
        mounted(bot) as adapter,
        SessionStore.open(tmp_path, QUICK) as store,
        Gateway(store, agent=echo, adapters=[adapter]),
    ):
        fake.says("ann", "hello")
        await fake.wait_until(lambda: fake.texts("ann") == ["You said hello."])
        await fake.wait_until(lambda: fake.pending == 0)


async def test_what_a_store_does_not_take_is_posted_again(fake: FakeTelegram, bot: TelegramBot):
    inbox = Inbox()
    inbox.failure = StorageUnavailableError("sessions.db", "is away")
    async with mounted(bot) as adapter, adapter.connect(inbox):
        first = fake.says("ann", "hello")
        await fake.wait_until(lambda: first in fake.posted)
        assert (fake.posted[first], fake.pending) == (False, 1)
        inbox.failure = None
        await inbox.wait_for_text("hello")
        await fake.wait_until(lambda: fake.pending == 0)


async def test_what_is_written_while_nobody_listens_is_posted_later(fake: FakeTelegram, bot: TelegramBot):
    inbox = Inbox()
    async with mounted(bot) as adapter:
        async with adapter.connect(inbox):
            pass
        late = fake.says("ann", "late")
        await fake.wait_until(lambda: late in fake.posted)
        assert not fake.posted[late]
        async with adapter.connect(inbox):
            await inbox.wait_for_text("late")


async def test_only_telegram_is_listened_to(fake: FakeTelegram, bot: TelegramBot):
    inbox = Inbox()
    async with mounted(bot) as adapter, adapter.connect(inbox), httpx2.AsyncClient() as client:
        update = {"update_id": 1, "message": {}}
        for headers in ({}, {"x-telegram-bot-api-secret-token": "guess"}):
            answer = await client.post(adapter.public_url, json=update, headers=headers)
            assert answer.status_code == 401
    assert inbox.calls == 0


async def test_what_cannot_be_read_is_put_aside(fake: FakeTelegram, bot: TelegramBot, tmp_path: Path):
    headers = {"x-telegram-bot-api-secret-token": SECRET}
    async with (
        mounted(bot, unreadable=tmp_path) as adapter,
        adapter.connect(Inbox()),
        httpx2.AsyncClient() as client,
    ):
        for body in (b"\xff", b'{"update_id": 1, "message": {"message_id": "x"}}'):
            answer = await client.post(adapter.public_url, content=body, headers=headers)
            assert (answer.status_code, answer.headers[TAKEN]) == (200, "durable")
    assert len(list(tmp_path.iterdir())) == 2


async def test_without_a_folder_it_is_logged(bot: TelegramBot, caplog: pytest.LogCaptureFixture):
    headers = {"x-telegram-bot-api-secret-token": SECRET}
    async with mounted(bot) as adapter, adapter.connect(Inbox()), httpx2.AsyncClient() as client:
        answer = await client.post(adapter.public_url, content=b"{}7", headers=headers)
        assert answer.headers[TAKEN] == "logged"
        ignored = await client.post(adapter.public_url, json={"update_id": 5, "poll": {}}, headers=headers)
        assert ignored.status_code == 200
    assert "could not be read" in caplog.text


async def test_handlers_of_the_program_come_first(fake: FakeTelegram, bot: TelegramBot):
    inbox, seen = Inbox(), list[Any]()

    async def handle(update: Any) -> bool:
        seen.append(update["message"]["text"])
        if update["message"]["text"] == "/broken":
            raise LookupError
        return update["message"]["text"] == "/settings"

    async with mounted(bot, handle=handle) as adapter, adapter.connect(inbox):
        for text in ("/settings", "/broken", "hello"):
            fake.says("ann", text)
        await inbox.wait_for_text("hello")
        async with httpx2.AsyncClient() as client:
            headers = {"x-telegram-bot-api-secret-token": SECRET}
            assert (await client.post(adapter.public_url, content=b"{", headers=headers)).status_code == 200
    assert seen == ["/settings", "/broken", "hello"]
    assert [one.text for one in inbox.messages] == ["hello"]


async def test_a_pressed_button_stops_waiting(fake: FakeTelegram, bot: TelegramBot):
    inbox = Inbox()
    async with mounted(bot) as adapter, adapter.connect(inbox):
        target = ReplyTarget(platform="telegram", chat_id=str(fake.chat_of("ann").id))
        question = OutboundMessage(text="Sure?", buttons=(Button("Yes", "y"),))
        await adapter.send(target, question, idempotency_key="1")
        fake.presses("ann", "Yes")
        (pressed,) = await inbox.wait_for(1)
        assert pressed.action == "y"
        await fake.wait_until(lambda: fake.methods.answered_buttons)


async def test_a_bot_can_go_back_to_polling(fake: FakeTelegram, bot: TelegramBot):
    inbox = Inbox()
    async with mounted(bot) as adapter, adapter.connect(inbox):
        pass
    await adapter.delete_webhook()
    fake.says("ann", "hello")
    async with TelegramAdapter(bot).connect(inbox):
        await inbox.wait_for_text("hello")


async def test_a_bot_that_telegram_does_not_know_is_told(fake: FakeTelegram, bot: TelegramBot):
    async with mounted(bot) as adapter:
        fake.faults.plan(
            RefusedCall(400, "Bad Request: bad webhook: HTTPS url must be provided"), method="setWebhook"
        )
        with pytest.raises(AdapterUnavailableError, match="HTTPS url must be provided"):
            async with adapter.connect(Inbox()):
                pass
        assert adapter.address is None


def test_a_secret_must_be_one_that_telegram_takes(bot: TelegramBot):
    for secret in ("short", "with blanks and more of them", "x" * 257):
        with pytest.raises(InvalidInputError, match="secret must have"):
            TelegramWebhook(bot, "https://example.org/hook", secret=secret)
    assert TelegramWebhook(bot, "https://example.org/hook").path == "/hook"
    assert TelegramWebhook(bot, "https://example.org").path == "/"
