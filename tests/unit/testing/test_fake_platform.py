"""The platform for tests: what people do arrives, what is planned goes wrong, and all of it is remembered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from msgspec.structs import force_setattr

from gateway_sessions.core.delivery.adapter_capabilities import AdapterCapabilities
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.core.queue.inbound import (
    Attachment,
    AttachmentKind,
    Duplicate,
    InboundMessage,
    MessageKind,
    Receipt,
    ReplyTo,
)
from gateway_sessions.errors import (
    AdapterUnavailableError,
    DeliveryRefusedError,
    InvalidInputError,
    RateLimitedError,
)
from gateway_sessions.testing import FakeClock, FakePlatform
from gateway_sessions.testing.fake_platform import NoReplyError, Sent

ANN = ReplyTarget(platform="fake", chat_id="ann")
TEAM = ReplyTarget(platform="fake", chat_id="team")
PHOTO = Attachment(kind=AttachmentKind.PHOTO, url="file:///a.png")


class Inbox:
    def __init__(self) -> None:
        self.messages: list[InboundMessage] = []

    async def __call__(self, message: InboundMessage) -> Receipt:
        self.messages.append(message)
        return Duplicate(seq=len(self.messages), session_key="k")


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


@pytest.fixture
def platform() -> FakePlatform:
    return FakePlatform(patience=timedelta(seconds=0.05), run="")


@pytest.fixture
async def connected(platform: FakePlatform, inbox: Inbox) -> AsyncIterator[FakePlatform]:
    async with platform.connect(inbox):
        yield platform


def said(text: str, *, is_notice: bool = False) -> OutboundMessage:
    return OutboundMessage(text=text, is_notice=is_notice)


async def send(platform: FakePlatform, text: str, target: ReplyTarget = ANN, key: str | None = None) -> str:
    message_id = await platform.send(target, said(text), idempotency_key=key or text)
    assert message_id is not None
    return message_id


# What people do


async def test_what_a_person_says_arrives_and_the_receipt_comes_back(connected: FakePlatform, inbox: Inbox):
    receipt = await connected.says("ann", "hello")
    assert receipt == Duplicate(seq=1, session_key="k")
    (message,) = inbox.messages
    assert (message.text, message.message_id, message.account) == ("hello", "m1", "")
    source = message.source
    assert (source.platform, source.chat_id, source.chat_type) == ("fake", "ann", "dm")
    assert (source.user_id, source.user_name) == ("ann", "Ann")


async def test_people_write_in_groups_and_threads(connected: FakePlatform, inbox: Inbox):
    await connected.says("bob", "hi", chat="team", thread="t1")
    source = inbox.messages[0].source
    assert (source.chat_id, source.chat_name, source.chat_type) == ("team", "team", "group")
    assert (source.user_id, source.thread_id) == ("bob", "t1")


async def test_people_send_photos_and_answers(connected: FakePlatform, inbox: Inbox):
    earlier = ReplyTo(message_id="m0", own=True)
    await connected.says("ann", attachments=[PHOTO], reply_to=earlier, message_id="p1")
    (message,) = inbox.messages
    assert (message.attachments, message.reply_to, message.message_id) == ((PHOTO,), earlier, "p1")


async def test_edits_are_counted_and_deletions_are_told(connected: FakePlatform, inbox: Inbox):
    await connected.says("ann", "helo", message_id="m")
    await connected.edits("m", "hello")
    await connected.edits("m", "hello!")
    await connected.deletes("m")
    assert [(one.kind, one.revision, one.text) for one in inbox.messages] == [
        (MessageKind.NEW, 0, "helo"),
        (MessageKind.EDIT, 1, "hello"),
        (MessageKind.EDIT, 2, "hello!"),
        (MessageKind.DELETE, 2, ""),
    ]


async def test_what_was_delivered_last_is_delivered_again(connected: FakePlatform, inbox: Inbox):
    await connected.says("ann", "hello", message_id="m")
    await connected.redelivers("m")
    await connected.edits("m", "hello!")
    await connected.redelivers("m")
    first, again, edit, edit_again = inbox.messages
    assert first == again
    assert edit == edit_again


async def test_an_id_that_a_test_has_given_is_not_given_again(connected: FakePlatform, inbox: Inbox):
    await connected.says("ann", "one", message_id="m1")
    await connected.says("ann", "two")
    assert [one.message_id for one in inbox.messages] == ["m1", "m2"]


async def test_what_is_not_taken_when_the_connection_ends_is_not_acknowledged(platform: FakePlatform):
    submitting = asyncio.Event()

    async def hang(message: InboundMessage) -> Receipt:
        submitting.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with platform.connect(hang):
        with_text = asyncio.create_task(platform.says("ann", "hello"))
        await submitting.wait()
    with pytest.raises(AdapterUnavailableError, match="before the message was taken"):
        await with_text


async def test_a_platform_may_deliver_what_has_no_id(connected: FakePlatform, inbox: Inbox):
    await connected.delivers(InboundMessage(source=connected.source("ann"), text="hello"))
    assert [one.idempotency_key for one in inbox.messages] == [None]


async def test_what_nobody_wrote_cannot_be_changed(connected: FakePlatform):
    with pytest.raises(InvalidInputError, match="m7"):
        await connected.edits("m7", "x")


async def test_nothing_arrives_where_nobody_is_connected(platform: FakePlatform, inbox: Inbox):
    with pytest.raises(AdapterUnavailableError):
        await platform.says("ann", "hello")
    async with platform.connect(inbox):
        pass
    with pytest.raises(AdapterUnavailableError):
        await platform.says("ann", "hello")
    assert inbox.messages == []


async def test_a_message_knows_its_time_where_there_is_a_clock(inbox: Inbox):
    clock = FakeClock()
    platform = FakePlatform(clock=clock, run="")
    async with platform.connect(inbox):
        await platform.says("ann", "hello")
    assert inbox.messages[0].sent_at == clock.now()


async def test_accounts_of_one_platform_are_told_apart(inbox: Inbox):
    home, work = FakePlatform(name="home", run=""), FakePlatform(name="work", run="")
    async with home.connect(inbox), work.connect(inbox):
        await home.says("ann", "hello")
        await work.says("ann", "hello")
    first, second = inbox.messages
    assert first.idempotency_key != second.idempotency_key
    await send(home, "from home")
    assert (home.shown("ann"), work.shown("ann")) == (["from home"], [])


# What people see


async def test_what_is_sent_is_seen_in_its_chat(connected: FakePlatform):
    await send(connected, "one")
    await send(connected, "two", TEAM)
    assert connected.shown("ann") == ["one"]
    assert connected.shown("team") == ["two"]
    assert connected.shown() == ["one", "two"]


async def test_an_edited_message_is_seen_as_it_is_and_remembered_as_it_was(connected: FakePlatform):
    message_id = await send(connected, "hel")
    await connected.edit(ANN, message_id, said("hello"))
    assert connected.shown("ann") == ["hello"]
    assert [one.text for one in connected.sent[0].before] == ["hel"]


@pytest.mark.parametrize(("target", "message_id"), [(TEAM, "r1"), (ANN, "r9")])
async def test_what_is_not_there_cannot_be_edited(
    connected: FakePlatform, target: ReplyTarget, message_id: str
):
    await send(connected, "hello")
    with pytest.raises(DeliveryRefusedError):
        await connected.edit(target, message_id, said("x"))


async def test_typing_is_noted(connected: FakePlatform):
    await connected.typing(ANN)
    assert connected.typing_shown == [ANN]
    assert connected.sent == []


async def test_each_reply_is_waited_for_once_and_notices_only_if_asked_for(connected: FakePlatform):
    await send(connected, "one")
    await connected.send(ANN, said("by the way", is_notice=True), idempotency_key="n")
    await send(connected, "two", TEAM)
    await send(connected, "three")
    assert [(await connected.wait_for_reply("ann")).text for _ in range(2)] == ["one", "three"]
    assert (await connected.wait_for_reply()).text == "two"
    assert (await connected.wait_for_reply("ann", notices=True)).text == "by the way"


async def test_a_reply_is_waited_for_until_it_comes(connected: FakePlatform):
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(connected.wait_for_reply("ann"))
        await asyncio.sleep(0)
        await send(connected, "elsewhere", TEAM)
        await asyncio.sleep(0)
        assert not waiting.done()
        await send(connected, "here")
    assert waiting.result().text == "here"


async def test_whoever_waits_in_vain_is_told_what_there_was(connected: FakePlatform):
    await send(connected, "one")
    await connected.wait_for_reply("ann")
    with pytest.raises(NoReplyError, match="no further reply came to ann; there was: 'one'"):
        await connected.wait_for_reply("ann")
    with pytest.raises(NoReplyError, match="to any chat"):
        await connected.wait_for_reply()


async def test_it_settles_when_what_was_set_going_has_come_to_rest(connected: FakePlatform):
    seen: list[str] = []

    async def work() -> None:
        for _ in range(30):
            await asyncio.sleep(0)
        await send(connected, "done")
        seen.extend(connected.shown())

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(work())
        await connected.wait_until_idle()
        assert seen == ["done"]


# What goes wrong


async def test_nothing_gets_through_in_an_outage_and_everything_after_it(connected: FakePlatform):
    with connected.outage():
        with pytest.raises(AdapterUnavailableError):
            await send(connected, "one")
        with pytest.raises(AdapterUnavailableError):
            await connected.edit(ANN, "r1", said("x"))
        with pytest.raises(AdapterUnavailableError):
            await connected.typing(ANN)
    await send(connected, "two")
    assert connected.shown() == ["two"]
    assert [one.message.text for one in connected.attempts] == ["one", "two"]


async def test_planned_failures_come_in_their_order_and_then_it_works(connected: FakePlatform):
    connected.rate_limit(7)
    connected.refuses("blocked", times=2)
    with pytest.raises(RateLimitedError) as limited:
        await send(connected, "one")
    assert limited.value.retry_after == 7
    for _ in range(2):
        with pytest.raises(DeliveryRefusedError, match="blocked"):
            await send(connected, "one")
    assert connected.shown() == []
    await send(connected, "one")
    assert connected.shown() == ["one"]


@pytest.mark.parametrize("shown", [True, False])
async def test_after_an_ambiguous_failure_only_people_know_what_happened(
    connected: FakePlatform, shown: bool
):
    connected.fails_ambiguously(shown=shown)
    with pytest.raises(ConnectionResetError):
        await send(connected, "one")
    assert connected.shown() == (["one"] if shown else [])


async def test_a_late_answer_comes_in_the_end(connected: FakePlatform):
    async with asyncio.TaskGroup() as tasks:
        with connected.late_ack():
            sending = tasks.create_task(send(connected, "one"))
            assert (await connected.wait_for_reply("ann")).text == "one"
            await connected.wait_until_idle()
            assert not sending.done()
    assert sending.result() == connected.sent[0].message_id


async def test_what_is_sent_twice_is_seen_twice(connected: FakePlatform):
    assert await send(connected, "one", key="k") != await send(connected, "one", key="k")
    assert connected.shown() == ["one", "one"]


async def test_a_platform_that_knows_its_keys_shows_a_repeat_once():
    platform = FakePlatform(capabilities=AdapterCapabilities(idempotent_for=timedelta.max), run="")
    assert await send(platform, "one", key="k") == await send(platform, "one", key="k")
    assert await send(platform, "one", key="l")
    assert platform.shown() == ["one", "one"]


async def test_a_text_that_is_too_long_is_refused(connected: FakePlatform):
    await send(connected, "x" * 4096)
    with pytest.raises(DeliveryRefusedError, match="too long"):
        await send(connected, "x" * 4097)


def test_what_was_sent_says_what_it_says_now():
    one = Sent(message_id="r1", target=ANN, message=said("now"), idempotency_key="k", before=[said("then")])
    assert one.text == "now"


async def test_half_a_character_is_not_shown_but_fails_as_on_any_wire(platform: FakePlatform):
    message_id = await send(platform, "whole")
    broken = said("half")
    force_setattr(broken, "text", "half \ud83d")  # as no message of the package ever is
    with pytest.raises(UnicodeEncodeError):
        await platform.send(ANN, broken, idempotency_key="k")
    with pytest.raises(UnicodeEncodeError):
        await platform.edit(ANN, message_id, broken)
    assert platform.shown() == ["whole"]


class TestIds:
    """A store outlives the program that filled it, so no two programs may give an id twice."""

    async def test_two_instances_never_give_the_same_id(self, inbox: Inbox) -> None:
        ids: list[str] = []
        for _ in range(3):
            platform = FakePlatform()
            async with platform.connect(inbox):
                for _ in range(3):
                    await platform.says("ann", "hello")
                    ids.append(platform.last_message_id)
                ids.append(await platform.send(ANN, said("x"), idempotency_key="k") or "")
        assert len(set(ids)) == len(ids) == 12
        assert all(ids)

    async def test_what_was_delivered_last_is_delivered_again(
        self, connected: FakePlatform, inbox: Inbox
    ) -> None:
        await connected.says("ann", "one")
        await connected.says("ann", "two")
        await connected.edits("m1", "one, better")
        await connected.redelivers()
        assert connected.last_message_id == "m1"
        assert [one.text for one in inbox.messages] == ["one", "two", "one, better", "one, better"]

    async def test_nothing_can_be_repeated_before_anything_was_said(self, connected: FakePlatform) -> None:
        with pytest.raises(InvalidInputError, match="nobody has written"):
            await connected.redelivers()

    async def test_a_turn_that_waits_is_idle_and_under_its_old_name_as_well(self) -> None:
        platform, begun = FakePlatform(), asyncio.Event()

        async def wait() -> None:
            begun.set()
            await asyncio.Event().wait()

        waiting = asyncio.create_task(wait())
        await platform.wait_until_idle()
        assert begun.is_set()
        with pytest.warns(DeprecationWarning, match="wait_until_idle"):
            await platform.settles()
        assert not waiting.done()
        waiting.cancel()
