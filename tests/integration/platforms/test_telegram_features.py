"""What Telegram has besides texts: growing replies, drafts, buttons, menus of commands, albums and links."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gateway_sessions import Command, Gateway, Reply, SessionStore, TurnContext
from gateway_sessions.adapters import Attachment, AttachmentKind, Button, OutboundMessage, ReplyTarget
from gateway_sessions.errors import DeliveryRefusedError
from gateway_sessions.integrations.telegram import TelegramAdapter
from gateway_sessions.testing.contract.adapter import Inbox
from gateway_sessions.testing.fakes.faults import RefusedCall
from gateway_sessions.testing.fakes.telegram import FakeTelegram
from tests.integration.gateway.gateway_harness import QUICK
from tests.integration.platforms.telegram_doors import DOORS, Door, own_door

ANN = ReplyTarget(platform="telegram", chat_id="1001")
KEYS = {"inline_keyboard": [[{"text": "Yes", "callback_data": "y"}]]}


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


@asynccontextmanager
async def gateway(
    adapter: TelegramAdapter, folder: Path, agent: Any, **options: Any
) -> AsyncGenerator[Gateway]:
    async with (
        SessionStore.open(folder, QUICK) as store,
        Gateway(store, agent=agent, adapters=[adapter], **options) as gateway,
    ):
        yield gateway


async def echo(turn: TurnContext) -> str:
    return f"You said {turn.text}."


async def counting(turn: TurnContext) -> str:
    stream = turn.stream()
    for word in ("one ", "two ", "three"):
        await stream.write(word)
        await asyncio.sleep(0.05)
    return "one two three"


async def test_a_reply_grows_in_one_message_of_a_group(
    fake: FakeTelegram, adapter: TelegramAdapter, tmp_path: Path
):
    async with gateway(adapter, tmp_path, counting):
        fake.says("ann", "/ask@helper_bot count", group="friends")
        await fake.wait_until(lambda: fake.texts(group="friends") == ["one two three"])
        assert not fake.methods.drafts
        assert [call.method for call in fake.calls if "edit" in call.method] == ["editMessageText"]


async def test_a_reply_grows_as_a_draft_in_private(fake: FakeTelegram, door: Door, tmp_path: Path):
    async with door(fake) as adapter, gateway(adapter, tmp_path, counting):
        fake.says("ann", "count")
        await fake.wait_until(lambda: fake.texts("ann") == ["one two three"])
    ((chat, number),) = fake.methods.drafts
    assert (chat, number != 0, fake.methods.drafts[chat, number]) == (1001, True, "one ")


async def test_where_drafts_are_refused_a_reply_grows_as_a_message(
    fake: FakeTelegram, adapter: TelegramAdapter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(adapter, "capabilities", replace(adapter.capabilities, min_edit_interval=timedelta()))
    fake.faults.plan(RefusedCall(400, "Bad Request: method is not available"), method="sendMessageDraft")
    async with gateway(adapter, tmp_path, counting):
        fake.says("ann", "count")
        await fake.wait_until(lambda: fake.texts("ann") == ["one two three"])
    assert "editMessageText" in {call.method for call in fake.calls}


# Buttons, menus, albums


async def test_a_pressed_button_is_answered_and_reaches_the_agent(
    fake: FakeTelegram, door: Door, tmp_path: Path
):
    async def asking(turn: TurnContext) -> Reply:
        (message,) = turn.messages
        if message.action is None:
            return Reply("Sure?", buttons=(Button("Yes", "confirm:7"), Button("Docs", url="https://e.org")))
        assert message.reply_to is not None
        return Reply(f"{message.text} to {message.reply_to.text} means {message.action}")

    async with door(fake) as adapter, gateway(adapter, tmp_path, asking):
        fake.says("ann", "delete it")
        await fake.wait_until(lambda: fake.texts("ann") == ["Sure?"])
        (question,) = fake.shown("ann")
        assert question["reply_markup"]["inline_keyboard"] == [
            [{"text": "Yes", "callback_data": "confirm:7"}, {"text": "Docs", "url": "https://e.org"}]
        ]
        fake.presses("ann", "Yes")
        await fake.wait_until(lambda: fake.texts("ann")[1:] == ["Yes to Sure? means confirm:7"])
        await fake.wait_until(lambda: fake.methods.answered_buttons)


async def test_a_button_pressed_in_a_group_is_the_persons_and_not_the_bots(
    fake: FakeTelegram, adapter: TelegramAdapter
):
    inbox = Inbox()
    group = fake.chat_of("ann", "friends")
    fake.chats.message_in(group, fake.bot, {"text": "?", "reply_markup": KEYS})
    async with adapter.connect(inbox):
        fake.presses("ann", "Yes", group="friends")
        fake.chats.add_update("callback_query", {"id": "9", "from": {"id": 7}, "data": "from nowhere"})
        (pressed,) = await inbox.wait_for(1)
        await fake.wait_until(lambda: fake.pending == 0)
    assert (pressed.source.chat_id, pressed.source.user_id) == (str(group.id), "1001")
    assert (pressed.source.is_bot, pressed.action, len(inbox.messages)) == (False, "y", 1)


async def test_many_buttons_stand_below_each_other_and_a_value_has_a_limit(
    fake: FakeTelegram, adapter: TelegramAdapter
):
    photos = (Attachment(kind=AttachmentKind.PHOTO, url="https://example.org/p.png"),) * 2
    longer = OutboundMessage(text="?", buttons=(Button("x" * 40), Button("y")))
    pictured = OutboundMessage(attachments=photos, buttons=(Button("y"),))
    own = OutboundMessage(
        text="!", extra={"telegram": {"disable_notification": True}, "slack": {"blocks": []}}
    )
    async with adapter.connect(Inbox()):
        for number, message in enumerate((longer, pictured, own)):
            await adapter.send(ANN, message, idempotency_key=f"k{number}")
        with pytest.raises(DeliveryRefusedError, match="may have 64 bytes, that of 'Go' has 65"):
            await adapter.send(
                ANN, OutboundMessage(text="?", buttons=(Button("Go", "x" * 65),)), idempotency_key="k"
            )
    keyboards = [one.get("reply_markup", {}).get("inline_keyboard", []) for one in fake.shown("ann")]
    assert [len(rows) for rows in keyboards] == [2, 0, 1, 0]
    assert fake.calls[-1].parameters["disable_notification"] in (True, "true")
    assert "blocks" not in fake.calls[-1].parameters


async def test_the_menu_shows_the_commands_of_the_gateway(fake: FakeTelegram, door: Door, tmp_path: Path):
    async def pong(_: object) -> str:
        return "pong"

    commands = [Command("ping-me", pong, summary="Say pong."), Command("größe", pong), Command("bare", pong)]
    async with door(fake) as adapter, gateway(adapter, tmp_path, echo, commands=commands):
        await fake.wait_until(lambda: fake.methods.commands)
    menu = {one["command"]: one["description"] for one in fake.methods.commands["default"]}
    assert (menu["ping_me"], menu["bare"]) == ("Say pong.", "/bare")
    assert {"new", "stop", "undo_reset"} <= menu.keys()
    assert "größe" not in menu


async def test_a_menu_that_cannot_be_set_is_told_and_the_bot_answers(
    fake: FakeTelegram, adapter: TelegramAdapter, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    fake.faults.plan(RefusedCall(400, "Bad Request: BOT_COMMAND_INVALID"), method="setMyCommands")
    async with gateway(adapter, tmp_path, echo):
        fake.says("ann", "hello")
        await fake.wait_until(lambda: fake.texts("ann") == ["You said hello."])
    assert "the menu of commands could not be set" in caplog.text


async def test_an_album_is_one_turn_and_a_link_tells_where_somebody_came_from(
    fake: FakeTelegram, adapter: TelegramAdapter
):
    inbox = Inbox()
    async with adapter.connect(inbox):
        for number in range(2):
            fake.sends("ann", "photo", b"x", name=f"{number}.png", album="holiday")
        fake.starts("ann", "from-the-website")
        fake.starts("ann")
        first, second, start, plain = await inbox.wait_for(4)
    assert (first.group_id, second.group_id) == ("holiday", "holiday")
    assert (dict(start.metadata), start.command) == ({"start": "from-the-website"}, "start")
    assert dict(plain.metadata) == {}
