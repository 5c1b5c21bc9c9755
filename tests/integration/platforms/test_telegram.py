"""Bots on Telegram with a gateway: real client libraries, a fake Telegram, and what may go wrong."""

from __future__ import annotations

import base64
import logging
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from aiogram import Dispatcher, types
from aiogram.filters import Command
from telegram import Update
from telegram.ext import ApplicationBuilder, CommandHandler, ContextTypes

from gateway_sessions import Gateway, Reply, SessionStore, TurnContext
from gateway_sessions.adapters import (
    Attachment,
    AttachmentKind,
    OutboundMessage,
    ReplyTarget,
    TextFormat,
)
from gateway_sessions.core.delivery.message_parts import split_message
from gateway_sessions.errors import (
    AdapterUnavailableError,
    DeliveryRefusedError,
    InvalidInputError,
    StorageUnavailableError,
)
from gateway_sessions.integrations.aiogram import AiogramAdapter
from gateway_sessions.integrations.python_telegram_bot import PtbAdapter
from gateway_sessions.integrations.telegram import TelegramAdapter
from gateway_sessions.integrations.telegram.bot_api import BotApiError
from gateway_sessions.integrations.telegram.client import TelegramBot
from gateway_sessions.testing.contract.adapter import Inbox
from gateway_sessions.testing.fakes.faults import RefusedCall
from gateway_sessions.testing.fakes.telegram import FakeTelegram
from tests.integration.gateway.gateway_harness import QUICK
from tests.integration.platforms.telegram_doors import DOORS, Door, aiogram_bot, own_door, ptb_application

ANN = ReplyTarget(platform="telegram", chat_id="1001")


def rendered(text: str, adapter: TelegramAdapter, **others: Any) -> tuple[OutboundMessage, ...]:
    """A text in Markdown as a gateway hands it to the adapter."""
    message = OutboundMessage(text=text, format=TextFormat.MARKDOWN, **others)
    return split_message(message, adapter.capabilities)


@pytest.fixture(autouse=True)
def no_warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    """python-telegram-bot warns whenever Telegram asks for a pause, unless this is set."""
    monkeypatch.setenv("PTB_TIMEDELTA", "true")


@pytest.fixture
async def fake() -> AsyncGenerator[FakeTelegram]:
    async with FakeTelegram() as fake:
        fake.chats.person("ann")
        yield fake


@pytest.fixture(params=DOORS)
def door(request: pytest.FixtureRequest) -> Door:
    return DOORS[request.param]


@pytest.fixture
async def adapter(fake: FakeTelegram) -> AsyncGenerator[TelegramAdapter]:
    async with own_door(fake) as adapter:
        yield adapter


async def echo(turn: TurnContext) -> Reply:
    return Reply(f"You said **{turn.text}**.", format=TextFormat.MARKDOWN)


# With a gateway


async def test_a_conversation_goes_both_ways_in_its_places(fake: FakeTelegram, door: Door, tmp_path: Path):
    async with (
        door(fake) as adapter,
        SessionStore.open(tmp_path, QUICK) as store,
        Gateway(store, agent=echo, adapters=[adapter]),
    ):
        fake.says("ann", "hello")
        fake.says("bob", "@helper_bot hi", group="team", topic="plans")
        fake.says("bob", "not for the bot", group="team")
        await fake.wait_until(lambda: fake.texts("ann") and fake.texts(group="team"))
        assert fake.texts("ann") == ["You said hello."]
        assert fake.texts(group="team", topic="plans") == ["You said hi."]
        (shown,) = fake.shown("ann")
        assert [one["type"] for one in shown["entities"]] == ["bold"]
        assert shown["reply_to_message"]["text"] == "hello"
        for key in ("dm:1001", f"group:{fake.chats.group('team').id}:2"):
            assert await store.peek_session_id(f"agent:main:telegram:{key}") is not None


async def test_what_a_store_does_not_take_telegram_keeps(fake: FakeTelegram, door: Door):
    inbox = Inbox()
    inbox.failure = StorageUnavailableError("sessions.db", "is away")
    async with door(fake) as adapter, adapter.connect(inbox):
        first = fake.says("ann", "hello")
        assert not await fake.is_taken(first)
        assert fake.pending == 1
        inbox.failure = None
        await inbox.wait_for_text("hello")
        await fake.wait_until(lambda: fake.pending == 0)


# Handlers of the bot's own


async def test_handlers_of_aiogram_come_first(fake: FakeTelegram):
    dispatcher, inbox, seen = Dispatcher(), Inbox(), list[str]()

    @dispatcher.message(Command("settings"))
    async def settings(message: types.Message) -> None:
        seen.append("settings")
        await message.answer("Your settings")

    @dispatcher.callback_query()
    async def pressed(query: types.CallbackQuery) -> Any:
        seen.append(str(query.data))
        return query.answer("thanks")

    @dispatcher.message(Command("broken"))
    async def broken(message: types.Message) -> None:
        seen.append("broken")
        raise LookupError(message.text)

    @dispatcher.startup()
    async def start() -> None:
        seen.append("start")

    @dispatcher.shutdown()
    async def stop() -> None:
        seen.append("stop")

    async with aiogram_bot(fake) as bot:
        async with AiogramAdapter(bot, dispatcher=dispatcher).connect(inbox):
            for text in ("/settings", "/broken", "hello"):
                fake.says("ann", text)
            message = fake.chats.message_in(
                fake.chat_of("ann"), fake.bot, {"text": "?", "reply_markup": KEYS}
            )
            assert message["message_id"]
            fake.presses("ann", "Yes")
            await inbox.wait_for(1)
            await fake.wait_until(lambda: fake.methods.answered_buttons)
        assert [one.text for one in inbox.messages] == ["hello"]
        assert sorted(seen[1:-1]) == ["broken", "settings", "y"]
        assert (seen[0], seen[-1]) == ("start", "stop")
        assert "Your settings" in fake.texts("ann")


KEYS = {"inline_keyboard": [[{"text": "Yes", "callback_data": "y"}]]}


async def test_handlers_of_python_telegram_bot_come_first(fake: FakeTelegram):
    inbox, application = Inbox(), ptb_application(fake)

    async def settings(update: Update, _: ContextTypes.DEFAULT_TYPE) -> None:
        assert update.message is not None
        await update.message.reply_text("Your settings")

    application.add_handler(CommandHandler("settings", settings))
    async with PtbAdapter(application).connect(inbox):
        fake.says("ann", "/settings")
        fake.says("ann", "hello")
        await inbox.wait_for(1)
    assert [one.text for one in inbox.messages] == ["hello"]
    assert fake.texts("ann") == ["Your settings"]


async def test_an_application_that_runs_already_goes_on_running(fake: FakeTelegram):
    inbox, application = Inbox(), ptb_application(fake)
    async with application:
        await application.start()
        async with PtbAdapter(application).connect(inbox):
            fake.says("ann", "hello")
            await inbox.wait_for(1)
        assert application.running
        await application.stop()


def test_an_application_with_an_updater_is_refused(fake: FakeTelegram):
    application = ApplicationBuilder().token(fake.token).build()
    with pytest.raises(InvalidInputError, match=r"build it with \.updater\(None\)"):
        PtbAdapter(application)


# What may go wrong


@pytest.mark.parametrize("token", ["", "123", "123:", "x:AA", "1:A\n"])
def test_what_is_no_token_is_refused_at_once(token: str):
    with pytest.raises(InvalidInputError, match="the token is none of Telegram's"):
        TelegramBot(token)


async def test_a_revoked_token_is_told_in_one_sentence(fake: FakeTelegram):
    bot = TelegramBot("123456789:another", api_url=fake.url)
    with pytest.raises(AdapterUnavailableError, match="does not know this token: ask @BotFather"):
        async with TelegramAdapter(bot).connect(Inbox()):
            pass
    await bot.aclose()


async def test_the_log_of_requests_does_not_show_the_token(
    fake: FakeTelegram, caplog: pytest.LogCaptureFixture
):
    """The HTTP client logs each address, and Telegram wants the token in it."""
    with caplog.at_level(logging.INFO, "httpx2"):
        bot = TelegramBot(fake.token, api_url=fake.url)
        await bot.call("getMe", {})
        with pytest.raises(BotApiError):
            await bot.download("no/file", most=1)
        await bot.aclose()
    assert f"{fake.url}/bot…/getMe" in caplog.text
    assert f"{fake.url}/file/bot…/no/file" in caplog.text
    assert fake.token not in caplog.text


async def test_a_telegram_that_is_away_is_unavailable(fake: FakeTelegram, adapter: TelegramAdapter):
    async with fake.outage():
        with pytest.raises(AdapterUnavailableError, match="telegram: cannot be reached"):
            async with adapter.connect(Inbox()):
                pass


async def test_a_second_poller_is_told_of_with_what_to_do(
    fake: FakeTelegram, adapter: TelegramAdapter, caplog: pytest.LogCaptureFixture
):
    inbox = Inbox()
    async with adapter.connect(inbox), own_door(fake) as other:
        await fake.wait_until(lambda: fake.polls)
        with caplog.at_level(logging.WARNING):
            async with other.connect(Inbox()):
                await fake.wait_until(
                    lambda: "end the other program that polls with this token" in caplog.text
                )
        fake.says("ann", "still here")
        await inbox.wait_for_text("still here")


@pytest.mark.parametrize(
    ("status", "refusal", "to_do"),
    [
        (400, "Bad Request: not enough rights to send text messages to the chat", "an administrator of"),
        (400, "Bad Request: have no rights to send a message", "make the bot an administrator of"),
        (403, "Forbidden: bot was kicked from the supergroup chat", "add the bot to the chat again"),
        (403, "Forbidden: bot is not a member of the channel chat", "add the bot to the chat"),
    ],
    ids=range(4),
)
async def test_a_right_that_is_missing_is_told_with_what_to_do(
    fake: FakeTelegram, door: Door, status: int, refusal: str, to_do: str
):
    target = ReplyTarget(platform="telegram", chat_id=str(fake.chats.group("team").id))
    async with door(fake) as adapter, adapter.connect(Inbox()):
        fake.faults.plan(RefusedCall(status, refusal), method="sendMessage")
        with pytest.raises(DeliveryRefusedError, match=to_do):
            await adapter.send(target, OutboundMessage(text="x"), idempotency_key="k")


async def test_what_cannot_be_read_is_kept_in_a_file(fake: FakeTelegram, tmp_path: Path):
    async with own_door(fake, unreadable=tmp_path) as adapter, adapter.connect(Inbox()):
        assert await fake.is_taken(fake.chats.add_update("message", {"message_id": "seven"}))
    (kept,) = tmp_path.iterdir()
    assert '"seven"' in kept.read_text()


async def test_a_group_that_moved_is_found_again(fake: FakeTelegram, adapter: TelegramAdapter):
    group = fake.chats.group("team", basic=True)
    target = ReplyTarget(platform="telegram", chat_id=str(group.id))
    upgraded = fake.chats.upgrade(group)
    async with adapter.connect(Inbox()):
        for text in ("one", "two"):
            await adapter.send(target, OutboundMessage(text=text), idempotency_key=text)
    assert [message["text"] for message in upgraded.messages.values()] == ["one", "two"]
    assert sum(call.status == 400 for call in fake.calls) == 1


async def test_markup_that_is_refused_is_sent_as_plain_text(fake: FakeTelegram, adapter: TelegramAdapter):
    fake.faults.plan(RefusedCall(400, "Bad Request: can't parse entities: x"), method="sendMessage")
    (message,) = rendered("**bold** & more", adapter)
    async with adapter.connect(Inbox()):
        await adapter.send(ANN, message, idempotency_key="k")
    assert fake.texts("ann") == ["bold & more"]


async def test_an_edit_that_changes_nothing_has_succeeded(fake: FakeTelegram, adapter: TelegramAdapter):
    async with adapter.connect(Inbox()):
        message_id = await adapter.send(ANN, OutboundMessage(text="same"), idempotency_key="k")
        assert message_id is not None
        await adapter.edit(ANN, message_id, OutboundMessage(text="same"))
        with pytest.raises(DeliveryRefusedError, match="message to edit not found"):
            await adapter.edit(ANN, "99", OutboundMessage(text="other"))


async def test_what_grows_beyond_one_message_is_not_cut_off_in_its_place(
    fake: FakeTelegram, adapter: TelegramAdapter
):
    rows = "".join(f"| {number} | [page](https://example.org/{number}) |\n" for number in range(150))
    table = f"| The number of the row | The page that the row is about |\n|---|---|\n{rows}"
    first, *others = rendered(table, adapter)
    async with adapter.connect(Inbox()):
        message_id = await adapter.send(ANN, OutboundMessage(text="…"), idempotency_key="k1")
        assert message_id is not None
        with pytest.raises(DeliveryRefusedError, match="a message may have 4096 UTF-16 units, this one has"):
            await adapter.edit(ANN, message_id, OutboundMessage(text=table))
        await adapter.edit(ANN, message_id, first)
        for number, part in enumerate(others):
            await adapter.send(ANN, part, idempotency_key=f"p{number}")
    assert len(others) > 1
    assert sum(text.count("The number of the row") for text in fake.texts("ann")) == table.count("page](")


async def test_a_question_that_was_deleted_is_answered_all_the_same(
    fake: FakeTelegram, adapter: TelegramAdapter
):
    async with adapter.connect(Inbox()):
        target = ReplyTarget(platform="telegram", chat_id="1001", reply_to="99")
        await adapter.send(target, OutboundMessage(text="answer"), idempotency_key="k")
    assert fake.texts("ann") == ["answer"]


# Files


async def test_files_come_and_go_by_content(fake: FakeTelegram, door: Door):
    inbox, content = Inbox(), bytes(range(256))
    async with door(fake) as adapter, adapter.connect(inbox):
        fake.sends("ann", "document", content, caption="look", name="in.bin")
        (message,) = await inbox.wait_for(1)
        (attachment,) = message.attachments
        assert (attachment.name, await adapter.fetch(attachment)) == ("in.bin", content)
        with pytest.raises(InvalidInputError, match="has 256 bytes, at most 100 are fetched"):
            await adapter.fetch(attachment, most=100)
        url = "data:application/x;base64," + base64.b64encode(content).decode()
        sent = Attachment(kind=AttachmentKind.DOCUMENT, url=url, name="out.bin")
        (reply,) = rendered("**here**", adapter, attachments=(sent,))
        await adapter.send(ANN, reply, idempotency_key="k")
    (shown,) = fake.shown("ann")
    assert (shown["caption"], shown["document"]["file_name"]) == ("here", "out.bin")
    assert fake.files[shown["document"]["file_id"]] == content


async def test_a_long_text_stands_in_front_of_its_file(fake: FakeTelegram, adapter: TelegramAdapter):
    photo = Attachment(kind=AttachmentKind.PHOTO, url="https://example.org/p.png")
    async with adapter.connect(Inbox()):
        await adapter.send(ANN, OutboundMessage(text="x" * 2000, attachments=(photo,)), idempotency_key="k")
    text, picture = fake.shown("ann")
    assert (len(text["text"]), "photo" in picture, "caption" in picture) == (2000, True, False)


@pytest.mark.parametrize("url", ["/etc/passwd", "file:///etc/passwd", "", "data:;base64,%%%"])
async def test_a_path_or_a_damaged_address_is_refused(fake: FakeTelegram, adapter: TelegramAdapter, url: str):
    file = Attachment(kind=AttachmentKind.DOCUMENT, url=url, name="secret")
    async with adapter.connect(Inbox()):
        with pytest.raises(
            DeliveryRefusedError, match=r"has no address that Telegram can read|cannot be read"
        ):
            await adapter.send(ANN, OutboundMessage(attachments=(file,)), idempotency_key="k")
    assert fake.shown("ann") == []
