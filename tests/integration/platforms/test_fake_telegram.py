"""The fake Telegram, asked by the client libraries that people use: it answers as Telegram does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from datetime import timedelta

import pytest
import telegram
from aiogram import Bot
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.exceptions import (
    ClientDecodeError,
    TelegramBadRequest,
    TelegramConflictError,
    TelegramForbiddenError,
    TelegramMigrateToChat,
    TelegramNetworkError,
    TelegramRetryAfter,
    TelegramUnauthorizedError,
)
from aiogram.types import (
    BotCommand,
    BufferedInputFile,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InputMediaPhoto,
    ReplyParameters,
)

from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.fakes.faults import CutConnection, RateLimit, RefusedCall, ServerFault
from gateway_sessions.testing.fakes.telegram import FakeTelegram, TelegramLimits

BINARY = bytes(range(256)) + b"\r\n--boundary\r\n"


class QuickSession(AiohttpSession):
    """Closes without the pause that TLS needs."""

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()


def bot_of(fake: FakeTelegram, token: str) -> Bot:
    return Bot(token, session=QuickSession(api=TelegramAPIServer.from_base(fake.url)))


@pytest.fixture
async def fake() -> AsyncGenerator[FakeTelegram]:
    async with FakeTelegram() as fake:
        yield fake


@pytest.fixture
async def bot(fake: FakeTelegram) -> AsyncGenerator[Bot]:
    async with bot_of(fake, fake.token) as bot:
        yield bot


@pytest.fixture
async def other(fake: FakeTelegram) -> AsyncGenerator[telegram.Bot]:
    async with telegram.Bot(
        fake.token, base_url=f"{fake.url}/bot", base_file_url=f"{fake.url}/file/bot"
    ) as bot:
        yield bot


def private(fake: FakeTelegram, person: str = "ann") -> int:
    return fake.chat_of(person).id


# Messages


async def test_what_people_write_is_an_update_until_it_is_confirmed(fake: FakeTelegram, bot: Bot):
    fake.says("ann", "/help@helper_bot is @everyone there: https://example.org")
    fake.says("bob", "hello", group="team", topic="plans")
    first, second = await bot.get_updates()
    assert first.message is not None
    assert [one.type for one in first.message.entities or []] == ["bot_command", "mention", "url"]
    assert second.message is not None
    assert (second.message.chat.type, second.message.is_topic_message) == ("supergroup", True)
    assert len(await bot.get_updates()) == 2
    assert await bot.get_updates(offset=second.update_id) == [second]
    assert fake.pending == 1
    await bot.get_updates(offset=second.update_id + 1)
    assert (fake.pending, fake.chats.confirmed) == (0, [first.update_id, second.update_id])


async def test_a_long_poll_ends_with_the_first_update(fake: FakeTelegram, bot: Bot):
    async with asyncio.TaskGroup() as tasks:
        poll = tasks.create_task(bot.get_updates(timeout=30))
        await fake.wait_until(lambda: fake.polls)
        fake.says("ann", "hello")
    assert len(poll.result()) == 1


async def test_a_second_poller_ends_the_first(fake: FakeTelegram, bot: Bot):
    async def first() -> None:
        with pytest.raises(TelegramConflictError, match="terminated by other getUpdates request"):
            await bot.get_updates(timeout=30)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(first())
        await fake.wait_until(lambda: fake.polls)
        tasks.create_task(bot.get_updates(timeout=1))


async def test_html_is_parsed_as_telegram_parses_it(fake: FakeTelegram, bot: Bot):
    markup = (
        '<b>bold <i>both</i></b> &lt;&amp; <a href="https://example.org">x</a> '
        '<pre><code class="language-py">y</code></pre>'
    )
    message = await bot.send_message(private(fake), markup, parse_mode="HTML")
    assert message.text == "bold both <& x y"
    kinds = [(one.type, one.offset, one.length) for one in message.entities or []]
    assert kinds == [("bold", 0, 9), ("italic", 5, 4), ("text_link", 13, 1), ("pre", 15, 1)]
    assert fake.texts("ann") == ["bold both <& x y"]


@pytest.mark.parametrize(
    ("markup", "problem"),
    [
        ("<b>x", 'Can\'t find end tag corresponding to start tag "b"'),
        ("<b>x</i>", 'Unmatched end tag at byte offset 4, expected "</b>", found "</i>"'),
        ("é<h1>x</h1>", 'Unsupported start tag "h1" at byte offset 2'),
        ("a < b", "Unclosed start tag at byte offset 2"),
        ("</b>", "Unexpected end tag at byte offset 0"),
        ("<blockquote>a<blockquote>b</blockquote></blockquote>", "Blockquote entity can't be nested"),
    ],
)
async def test_html_that_cannot_be_parsed_is_refused(fake: FakeTelegram, bot: Bot, markup: str, problem: str):
    with pytest.raises(TelegramBadRequest) as refused:
        await bot.send_message(private(fake), markup, parse_mode="HTML")
    assert f"can't parse entities: {problem}" in str(refused.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (" \n", "message text is empty"),
        ("x" * 4097, "message is too long"),
        ("\U0001f600" * 2049, "message is too long"),
    ],
)
async def test_texts_have_telegram_s_limits(fake: FakeTelegram, bot: Bot, text: str, problem: str):
    with pytest.raises(TelegramBadRequest, match=problem):
        await bot.send_message(private(fake), text)
    await bot.send_message(private(fake), "<b></b>" * 500 + "x" * 4096, parse_mode="HTML")


async def test_the_bot_edits_and_deletes_what_it_said(fake: FakeTelegram, bot: Bot):
    message = await bot.send_message(private(fake), "one")
    await bot.edit_message_text("two", chat_id=message.chat.id, message_id=message.message_id)
    with pytest.raises(TelegramBadRequest, match="message is not modified"):
        await bot.edit_message_text("two", chat_id=message.chat.id, message_id=message.message_id)
    assert fake.texts("ann") == ["two"]
    await bot.delete_message(message.chat.id, message.message_id)
    assert fake.texts("ann") == []
    with pytest.raises(TelegramBadRequest, match="message to edit not found"):
        await bot.edit_message_text("three", chat_id=message.chat.id, message_id=message.message_id)


async def test_replies_name_what_they_answer_while_it_is_there(fake: FakeTelegram, bot: Bot):
    fake.says("ann", "question")
    (update,) = await bot.get_updates()
    assert update.message is not None
    answered = ReplyParameters(message_id=update.message.message_id)
    message = await bot.send_message(private(fake), "answer", reply_parameters=answered)
    assert message.reply_to_message is not None
    gone = ReplyParameters(message_id=99)
    with pytest.raises(TelegramBadRequest, match="message to be replied not found"):
        await bot.send_message(private(fake), "answer", reply_parameters=gone)
    anyhow = ReplyParameters(message_id=99, allow_sending_without_reply=True)
    assert (await bot.send_message(private(fake), "answer", reply_parameters=anyhow)).reply_to_message is None


async def test_files_go_both_ways_unchanged(fake: FakeTelegram, bot: Bot):
    fake.sends("ann", "document", BINARY, caption="look", name="a.bin")
    (update,) = await bot.get_updates()
    assert update.message is not None
    assert update.message.document is not None
    received = await bot.download(update.message.document)
    assert received is not None
    assert received.read() == BINARY
    sent = await bot.send_document(
        private(fake), BufferedInputFile(BINARY, "b.bin"), caption="<i>c</i>", parse_mode="HTML"
    )
    assert sent.document is not None
    assert fake.files[sent.document.file_id] == BINARY
    album = await bot.send_media_group(
        private(fake),
        [
            InputMediaPhoto(media=BufferedInputFile(b"1", "1")),
            InputMediaPhoto(media=BufferedInputFile(b"2", "2")),
        ],
    )
    assert len({one.media_group_id for one in album}) == 1


async def test_people_press_buttons_edit_and_block(fake: FakeTelegram, bot: Bot):
    keys = InlineKeyboardMarkup(inline_keyboard=[[InlineKeyboardButton(text="Yes", callback_data="y")]])
    await bot.send_message(private(fake), "sure?", reply_markup=keys)
    fake.presses("ann", "Yes")
    with pytest.raises(AssertionError, match="ann sees no button 'No'"):
        fake.presses("ann", "No")
    fake.edits(fake.says("ann", "hllo"), "hello")
    fake.blocks("ann")
    pressed, said, edited, blocked = await bot.get_updates()
    assert pressed.callback_query is not None
    assert pressed.callback_query.data == "y"
    assert await bot.answer_callback_query(pressed.callback_query.id, "thanks")
    assert fake.methods.answered_buttons == {pressed.callback_query.id: "thanks"}
    assert said.message is not None
    assert edited.edited_message is not None
    assert (said.message.text, edited.edited_message.text) == ("hllo", "hello")
    assert blocked.my_chat_member is not None
    with pytest.raises(TelegramForbiddenError, match="bot was blocked by the user"):
        await bot.send_message(private(fake), "still there?")
    fake.unblocks("ann")
    await bot.send_message(private(fake), "welcome back")


async def test_a_group_that_becomes_a_supergroup_has_another_id(fake: FakeTelegram, bot: Bot):
    group = fake.chats.group("team", basic=True)
    upgraded = fake.chats.upgrade(group)
    with pytest.raises(TelegramMigrateToChat) as moved:
        await bot.send_message(group.id, "hello")
    assert moved.value.migrate_to_chat_id == upgraded.id
    await bot.send_message(upgraded.id, "hello")


async def test_menus_actions_and_drafts_are_kept(fake: FakeTelegram, bot: Bot):
    await bot.set_my_commands([BotCommand(command="new", description="A new session")])
    assert [one.command for one in await bot.get_my_commands()] == ["new"]
    with pytest.raises(TelegramBadRequest, match="BOT_COMMAND_INVALID"):
        await bot.set_my_commands([BotCommand(command="undo-reset", description="x")])
    await bot.send_chat_action(private(fake), "typing")
    assert fake.methods.actions == [(private(fake), "typing", None)]
    await bot.send_message_draft(private(fake), 7, text="half an ans")
    assert fake.methods.drafts == {(private(fake), 7): "half an ans"}


# What goes wrong


@pytest.mark.parametrize(
    ("fault", "expected", "is_shown"),
    [
        (RateLimit(3), TelegramRetryAfter, False),
        (ServerFault(), ClientDecodeError, False),
        (ServerFault(done=True), ClientDecodeError, True),
        (CutConnection.BEFORE, TelegramNetworkError, False),
        (CutConnection.AFTER, TelegramNetworkError, True),
        (RefusedCall(403, "Forbidden: bot was blocked by the user"), TelegramForbiddenError, False),
    ],
    ids=str,
)
async def test_a_planned_fault_hits_one_call(
    fake: FakeTelegram, bot: Bot, fault: object, expected: type[Exception], is_shown: bool
):
    fake.faults.plan(fault, method="sendMessage")  # type: ignore[arg-type]
    with pytest.raises(expected):
        await bot.send_message(private(fake), "hello")
    assert fake.texts("ann") == ["hello"] * is_shown
    assert await bot.get_me()


async def test_whoever_does_not_wait_is_asked_to_wait_longer(fake: FakeTelegram, bot: Bot):
    fake.faults.plan(RateLimit(0.2), method="sendMessage")
    pauses = [await retry_after(lambda: bot.send_message(private(fake), "hello")) for _ in range(4)]
    assert pauses == [1, 1, 1, 2]
    await bot.send_message(private(fake, "bob"), "another chat is not concerned")


async def retry_after(call: Callable[[], Awaitable[object]]) -> int:
    with pytest.raises(TelegramRetryAfter) as refused:
        await call()
    return refused.value.retry_after


async def test_limits_are_telegram_s_if_they_are_asked_for():
    clock = FakeClock()  # all messages come within one second, however slow the machine is
    async with (
        FakeTelegram(limits=TelegramLimits(), clock=clock) as fake,
        bot_of(fake, fake.token) as bot,
    ):
        await bot.send_message(private(fake), "one")
        assert await retry_after(lambda: bot.send_message(private(fake), "two")) == 1
        for number in range(28):
            await bot.send_message(private(fake, f"p{number}"), "hello")
        await bot.send_message(private(fake, "last"), "hello")
        assert await retry_after(lambda: bot.send_message(private(fake, "too many"), "hello")) == 1
        await clock.advance(timedelta(seconds=1))
        await bot.send_message(private(fake, "too many"), "hello")


async def test_another_token_is_unauthorized(fake: FakeTelegram):
    async with bot_of(fake, "123:other") as bot:
        with pytest.raises(TelegramUnauthorizedError):
            await bot.get_me()


async def test_what_is_written_in_an_outage_is_there_afterwards(fake: FakeTelegram, bot: Bot):
    async with fake.outage():
        fake.says("ann", "are you there?")
        with pytest.raises(TelegramNetworkError):
            await bot.get_updates()
    assert len(await bot.get_updates()) == 1


# Another library


async def test_python_telegram_bot_talks_to_it_as_well(
    fake: FakeTelegram, other: telegram.Bot, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PTB_TIMEDELTA", "1")
    fake.says("ann", "hello", group="team")
    (update,) = await other.get_updates()
    assert update.message is not None
    chat = update.message.chat.id
    sent = await other.send_document(chat, BINARY, filename="a.bin", caption="<i>c</i>", parse_mode="HTML")
    assert sent.document is not None
    received = await (await other.get_file(sent.document.file_id)).download_as_bytearray()
    assert bytes(received) == BINARY
    fake.faults.plan(RateLimit(2), method="sendMessage")
    with pytest.raises(telegram.error.RetryAfter) as refused:
        await other.send_message(chat, "hello")
    assert refused.value.retry_after == timedelta(seconds=2)
    for fault in (ServerFault(), CutConnection.AFTER):
        fake.faults.plan(fault, method="sendMessage")
        with pytest.raises(telegram.error.NetworkError):
            await other.send_message(private(fake), "hello")


async def test_an_update_is_posted_again_after_an_answer_that_is_none(fake: FakeTelegram, bot: Bot):
    answers = [b"what?\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answers.pop(0))
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1") as server:
        port = server.sockets[0].getsockname()[1]
        await bot.set_webhook(f"http://127.0.0.1:{port}/")
        fake.says("ann", "hello")
        await fake.wait_until(lambda: not fake.pending)
    assert answers == []
