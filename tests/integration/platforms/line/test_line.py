"""An official account of LINE with a gateway: a fake LINE over real bytes, and what may go wrong."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gateway_sessions import Gateway, Reply, SessionStore, TurnContext
from gateway_sessions.adapters import Attachment, AttachmentKind, OutboundMessage, ReplyTarget
from gateway_sessions.adapters.group_talk import GroupTalk
from gateway_sessions.core.delivery.outbound_messages import Button
from gateway_sessions.errors import (
    AdapterUnavailableError,
    DeliveryRefusedError,
    InvalidInputError,
    RateLimitedError,
    StorageUnavailableError,
)
from gateway_sessions.integrations.line import LineAdapter, LineSettings
from gateway_sessions.integrations.line.adapter import MOST_CONTENT_BYTES
from gateway_sessions.testing.clock import FakeClock
from gateway_sessions.testing.contract.adapter import Inbox
from gateway_sessions.testing.fakes.faults import CutConnection, Delay, RateLimit, RefusedCall, ServerFault
from gateway_sessions.testing.fakes.line import FakeLine
from gateway_sessions.testing.fakes.line.messages import LineRefusalError, check_messages, check_retry_key
from tests.integration.gateway.gateway_harness import QUICK
from tests.integration.platforms.line.test_line_contract import settings_of
from tests.unit.adapters.loopback import loopback, send_endless_file

HELLO = OutboundMessage(text="hello")


@pytest.fixture
async def fake() -> AsyncGenerator[FakeLine]:
    async with FakeLine() as fake:
        yield fake


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


@asynccontextmanager
async def connected(fake: FakeLine, inbox: Inbox, **options: Any) -> AsyncIterator[LineAdapter]:
    adapter = LineAdapter(settings_of(fake), port=0, **options)
    async with adapter.connect(inbox):
        fake.webhook_url = adapter.url
        yield adapter


def calls_of(fake: FakeLine) -> list[str]:
    return [call.method for call in fake.calls if call.method in ("reply", "push")]


async def test_a_conversation_goes_both_ways_in_its_places(fake: FakeLine, tmp_path: Path):
    async def agent(turn: TurnContext) -> Reply:
        if turn.text == "yes":
            return Reply("It is done.")
        return Reply(f"You said: {turn.text}", buttons=(Button("Go on", "yes"),))

    adapter = LineAdapter(settings_of(fake), port=0)
    async with SessionStore.open(tmp_path, QUICK) as store, Gateway(store, agent=agent, adapters=[adapter]):
        await fake.wait_until(lambda: adapter.address)
        fake.webhook_url = adapter.url
        fake.says("bob", "not for the account", group="team")
        fake.says("bob", "plans", group="team", mentions=True)
        await fake.wait_until(lambda: fake.texts(group="team"))
        fake.says("ann", "hello")
        await fake.wait_until(lambda: fake.texts("ann"))
        assert fake.texts(group="team") == ["You said: plans\n[Go on]"]
        assert fake.texts("ann") == ["You said: hello\n[Go on]"]
        assert await fake.is_taken(fake.presses("ann", "Go on"))
        await fake.wait_until(lambda: fake.texts("ann")[1:])
        assert fake.texts("ann")[1:] == ["It is done."]
    assert set(calls_of(fake)) == {"reply"}


def lookups(fake: FakeLine) -> list[str]:
    return [one.method for one in fake.calls if one.method in ("profile", "member", "summary")]


async def test_people_and_groups_have_names_which_are_asked_for_once_an_hour(fake: FakeLine, inbox: Inbox):
    clock = FakeClock()
    fake.clock = clock
    room = {"type": "room", "userId": fake.person("ann"), "roomId": f"R{'e' * 32}"}
    async with connected(fake, inbox, clock=clock, groups=GroupTalk.ALL):
        for _ in range(2):
            assert await fake.is_taken(fake.says("ann", "in private"))
            assert await fake.is_taken(fake.says("ann", "in a group", group="team"))
        event = fake.event("ann", "message", message={"id": "1", "type": "text", "text": "in a room"})
        assert await fake.is_taken(fake.deliver({"destination": "x", "events": [{**event, "source": room}]}))
        assert lookups(fake) == ["profile", "member", "summary", "member"]
        await clock.advance(timedelta(hours=2))
        assert await fake.is_taken(fake.says("ann", "later"))
    assert lookups(fake)[4:] == ["profile"]
    assert {one.source.user_name for one in inbox.messages} == {"ann"}
    assert [one.source.chat_name for one in inbox.messages] == [None, "team", None, "team", None, None]


async def test_no_name_holds_up_a_message(fake: FakeLine, inbox: Inbox, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("gateway_sessions.integrations.line.names.NAME_SECONDS", 0.05)
    fake.unnamed.add("ann")
    async with connected(fake, inbox):
        assert await fake.is_taken(fake.says("ann", "one"))
        for fault in (ServerFault(503), Delay(60)):
            fake.faults.plan(fault, method="profile")
            assert await fake.is_taken(fake.says(f"bob {type(fault).__name__}", "two"))
    assert [one.source.user_name for one in inbox.messages] == [None, None, None]
    assert lookups(fake).count("profile") >= 2


async def test_what_a_store_does_not_take_line_delivers_again(fake: FakeLine, inbox: Inbox):
    inbox.failure = StorageUnavailableError("sessions.db", "is away")
    async with connected(fake, inbox):
        delivery = fake.says("ann", "hello")
        assert (await fake.settle(delivery)).status == 503
        inbox.failure = None
        assert await fake.is_taken(delivery)
        assert b'"isRedelivery": true' in delivery.body
    assert [one.text for one in inbox.messages] == ["hello"]


async def test_an_answer_that_comes_late_is_pushed(fake: FakeLine, inbox: Inbox):
    clock = FakeClock()
    fake.clock = clock
    async with connected(fake, inbox, clock=clock) as adapter:
        assert await fake.is_taken(fake.says("ann", "hello"))
        await clock.advance(timedelta(minutes=2))
        await adapter.send(ReplyTarget.answering(inbox.messages[0]), HELLO, idempotency_key="k")
    assert (calls_of(fake), fake.texts("ann")) == (["reply", "push"], ["hello"])


async def test_a_reply_whose_answer_was_lost_is_not_doubled(fake: FakeLine, inbox: Inbox):
    async with connected(fake, inbox) as adapter:
        assert await fake.is_taken(fake.says("ann", "hello"))
        target = ReplyTarget.answering(inbox.messages[0])
        fake.faults.plan(CutConnection.AFTER, method="reply")
        with pytest.raises(ConnectionError):
            await adapter.send(target, HELLO, idempotency_key="k")
        await adapter.send(target, HELLO, idempotency_key="k")
    assert (calls_of(fake), fake.texts("ann")) == (["reply"], ["hello"])


async def test_a_reply_that_was_not_carried_out_is_pushed_if_its_token_was_used_in_an_earlier_life(
    fake: FakeLine, inbox: Inbox
):
    async with connected(fake, inbox) as adapter:
        delivery = fake.says("ann", "hello")
        assert await fake.is_taken(delivery)
        target = ReplyTarget.answering(inbox.messages[0])
        await adapter.send(target, OutboundMessage(text="wait"), idempotency_key="notice")
    async with connected(fake, inbox) as adapter:
        assert await fake.is_taken(fake.again(delivery))
        fake.faults.plan(RateLimit(0), method="reply")
        with pytest.raises(RateLimitedError):
            await adapter.send(target, HELLO, idempotency_key="k")
        await adapter.send(target, HELLO, idempotency_key="k")
    assert fake.texts("ann") == ["wait", "hello"]


async def test_a_reply_that_had_to_wait_was_not_attempted(fake: FakeLine, inbox: Inbox):
    async with connected(fake, inbox) as adapter:
        delivery = fake.says("ann", "hello")
        assert await fake.is_taken(delivery)
        target = ReplyTarget.answering(inbox.messages[0])
        await adapter.send(target, OutboundMessage(text="wait"), idempotency_key="notice")
    clock = FakeClock(fake.clock.now())
    async with connected(fake, inbox, clock=clock) as adapter:
        assert await fake.is_taken(fake.again(delivery))
        fake.faults.plan(RateLimit(1), method="push")
        elsewhere = ReplyTarget(platform="line", chat_id=fake.person("bob"))
        for where, key in ((elsewhere, "other"), (target, "k"), (target, "k")):
            with pytest.raises(RateLimitedError):
                await adapter.send(where, HELLO, idempotency_key=key)
        await clock.advance(timedelta(seconds=2))
        await adapter.send(target, HELLO, idempotency_key="k")
    assert fake.texts("ann") == ["wait", "hello"]


async def test_a_push_whose_answer_was_lost_is_not_doubled(fake: FakeLine, inbox: Inbox):
    target = ReplyTarget(platform="line", chat_id=fake.person("ann"))
    async with connected(fake, inbox) as adapter:
        fake.faults.plan(CutConnection.AFTER, method="push")
        with pytest.raises(ConnectionError):
            await adapter.send(target, HELLO, idempotency_key="k")
        assert await adapter.send(target, HELLO, idempotency_key="k") == fake.messages[0][1]["id"]
    assert fake.texts("ann") == ["hello"]


async def test_an_answer_to_the_account_counts_as_a_mention(fake: FakeLine, inbox: Inbox):
    async with connected(fake, inbox) as adapter:
        target = ReplyTarget(platform="line", chat_id=fake.group("team"))
        sent = await adapter.send(target, HELLO, idempotency_key="k")
        assert await fake.is_taken(fake.says("bob", "why?", group="team", quotes=sent))
        assert await fake.is_taken(fake.takes_back("bob", "1"))
    assert [one.text for one in inbox.messages] == ["why?", ""]


async def test_typing_is_the_loading_animation(fake: FakeLine, inbox: Inbox):
    async with connected(fake, inbox) as adapter:
        for chat in (fake.person("ann"), fake.group("team")):
            await adapter.typing(ReplyTarget(platform="line", chat_id=chat))
    assert fake.loading == [fake.person("ann")]


async def test_content_is_fetched_with_the_token(fake: FakeLine, inbox: Inbox):
    async with connected(fake, inbox) as adapter:
        assert await fake.is_taken(
            fake.sends_content("ann", "file", b"content", fileName="a.pdf", fileSize=7)
        )
        (file,) = inbox.messages[0].attachments
        assert (file.name, await adapter.fetch(file)) == ("a.pdf", b"content")
        fake.contents.clear()
        with pytest.raises(
            InvalidInputError, match="the file cannot be fetched: line answered with status 404"
        ):
            await adapter.fetch(file)
        for url in ("https://e.org/1", "line:../../x", "line:"):
            with pytest.raises(InvalidInputError, match="the attachment is not kept by LINE"):
                await adapter.fetch(Attachment(kind=AttachmentKind.PHOTO, url=url))


async def test_a_file_that_is_too_large_is_refused_without_being_read_whole(fake: FakeLine, inbox: Inbox):
    async with connected(fake, inbox) as adapter:
        assert await fake.is_taken(fake.sends_content("ann", "file", b"x" * 101, fileName="a", fileSize=101))
        assert await fake.is_taken(fake.sends_content("ann", "image", b"x" * 101))
        file, photo = (one for message in inbox.messages for one in message.attachments)
        calls = len(fake.calls)
        with pytest.raises(InvalidInputError, match=r"^a has 101 bytes, at most 100 are fetched$"):
            await adapter.fetch(file, most=100)
        assert len(fake.calls) == calls
        with pytest.raises(InvalidInputError, match=r"^the file cannot be fetched: it has more than 100 b"):
            await adapter.fetch(photo, most=100)
    async with loopback(send_endless_file) as port:
        endless = LineAdapter(replace(settings_of(fake), data_url=f"http://127.0.0.1:{port}"))
        with pytest.raises(InvalidInputError, match=f"it has more than {MOST_CONTENT_BYTES} bytes"):
            await endless.fetch(photo)


async def test_a_right_that_is_missing_is_told_with_what_to_do(fake: FakeLine, inbox: Inbox):
    target = ReplyTarget(platform="line", chat_id=fake.person("ann"))
    async with connected(fake, inbox) as adapter:
        fake.faults.plan(RefusedCall(403, "Not authorized to use this API."), method="push")
        with pytest.raises(DeliveryRefusedError, match="to use this API: see which features the type and"):
            await adapter.send(target, HELLO, idempotency_key="k")


async def test_a_wrong_token_is_told_in_one_sentence(fake: FakeLine, inbox: Inbox):
    settings = LineSettings(channel_secret="s", channel_access_token="wrong", api_url=fake.url)
    with pytest.raises(
        AdapterUnavailableError, match=r"Authentication failed\. Confirm that the access token"
    ):
        async with LineAdapter(settings).connect(inbox):
            pass


async def test_a_wrong_secret_refuses_everybody_and_the_operator_is_told(
    fake: FakeLine, inbox: Inbox, caplog: pytest.LogCaptureFixture
):
    fake.channel_secret = "another"
    async with connected(fake, inbox):
        fake.channel_secret = "another still"
        assert (await fake.settle(fake.says("ann", "hello"))).status == 401
    assert "if line made it, correct channel_secret" in caplog.text


async def test_a_plan_that_is_used_up_is_told(fake: FakeLine, inbox: Inbox):
    fake.quota = 0
    target = ReplyTarget(platform="line", chat_id=fake.person("ann"))
    async with connected(fake, inbox) as adapter:
        with pytest.raises(DeliveryRefusedError, match="see the plan of the account"):
            await adapter.send(target, HELLO, idempotency_key="k")


ITEM = {"type": "action", "action": {"type": "message", "label": "x" * 21, "text": "x"}}


@pytest.mark.parametrize(
    "messages",
    [
        None,
        [],
        [{"type": "text", "text": "x"}] * 6,
        [{"type": "hologram"}],
        [{"type": "text", "text": " "}],
        [{"type": "text", "text": "x" * 5001}],
        [{"type": "image", "originalContentUrl": "http://e.org", "previewImageUrl": "https://e.org"}],
        [{"type": "text", "text": "x", "quickReply": {"items": [ITEM]}}],
        [{"type": "text", "text": "x", "quickReply": {"items": [ITEM] * 14}}],
    ],
)
def test_the_fake_refuses_what_line_refuses(messages: object):
    with pytest.raises(LineRefusalError):
        check_messages(messages)


def test_the_fake_takes_uuids_as_retry_keys_only():
    assert check_retry_key("") == ""
    with pytest.raises(LineRefusalError, match="Invalid retry key"):
        check_retry_key("k")


async def test_a_place_that_is_none_and_a_button_that_nobody_sees(fake: FakeLine, inbox: Inbox):
    target = ReplyTarget(platform="line", chat_id="x")
    async with connected(fake, inbox) as adapter:
        with pytest.raises(DeliveryRefusedError, match="'to', in the request body is invalid"):
            await adapter.send(target, HELLO, idempotency_key="to")
    fake.messages.append((fake.person("ann"), {"type": "text", "text": "x"}))
    with pytest.raises(AssertionError, match="sees no button"):
        fake.presses("ann", "Yes")
