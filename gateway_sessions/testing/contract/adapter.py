"""`AdapterContract`: the tests that every adapter must pass, and the bench that plays its platform.

Inherit from `AdapterContract`, and give it the fixture `bench`: a platform as a test needs it, with a person
who writes there, the messages that people see, and faults.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from enum import StrEnum
from typing import ClassVar, Final

import anyio
import msgspec
import pytest

from gateway_sessions import Accepted, Attachment, AttachmentKind, InboundMessage, Receipt, build_session_key
from gateway_sessions.adapters import (
    Adapter,
    AdapterCapabilities,
    Button,
    FindingAdapter,
    MessageKind,
    OutboundMessage,
    ReceiveClass,
    ReplyTarget,
)
from gateway_sessions.errors import (
    AdapterUnavailableError,
    DeliveryRefusedError,
    RateLimitedError,
    StorageUnavailableError,
)
from gateway_sessions.queue import Disposition
from gateway_sessions.testing.inside import SendFailure, classify_failure, split_message

PATIENCE_SECONDS: Final = 10
"""The real time for which anything is waited for: much more than a slow machine needs."""


class Ability(StrEnum):
    """Names what a platform may have or lack beside its capabilities."""

    ACKNOWLEDGES = "acknowledges"  # it learns whether a message was taken, and keeps it if it was not
    REDELIVERS = "redelivers"  # its messages have ids, and may come twice


class AdapterBench(ABC):
    """Plays a platform with one person in one chat, and makes the adapter to it."""

    adapter: Adapter

    @abstractmethod
    async def says(self, text: str) -> bool:
        """Let the person write a message; return whether it was taken, if the platform learns that."""

    @abstractmethod
    async def garbles(self) -> bool:
        """Deliver an event that the adapter cannot read; return True if it will not come again.

        Return True as well if the platform has no such events.
        """

    @abstractmethod
    async def shown(self) -> str:
        """Return all that people see, the oldest first, in one text; of attachments names and addresses."""

    @abstractmethod
    def hanging(self) -> AbstractAsyncContextManager[None]:
        """Answer no send within the block."""

    async def writes_unheard(self, text: str) -> None:
        """Let the person write while the adapter is not connected. Only platforms that keep it are asked."""
        raise NotImplementedError

    async def presses(self, label: str) -> None:
        """Let the person press the button with that label. Only platforms with buttons are asked."""
        raise NotImplementedError

    async def delivers_again(self) -> bool:
        """Deliver the last message once more. Only platforms that redeliver are asked."""
        raise NotImplementedError

    def failing(self, how: SendFailure) -> AbstractAsyncContextManager[None]:
        """Let each send fail like that within the block. Only failures in `failures` are asked for."""
        raise NotImplementedError


class Inbox:
    """Takes messages from an adapter, as a gateway does."""

    def __init__(self) -> None:
        self.messages: list[InboundMessage] = []
        self.calls: int = 0
        self.under_way: int = 0
        self.failure: Exception | None = None
        self.open: asyncio.Event = asyncio.Event()
        self.open.set()
        self._changed = asyncio.Condition()

    async def __call__(self, message: InboundMessage) -> Receipt:
        """Take a message once the inbox is open, or fail."""
        self.calls += 1
        self.under_way += 1
        await self._wake_waiting()
        try:
            await self.open.wait()
            if self.failure is not None:
                raise self.failure
            self.messages.append(message)
        finally:
            self.under_way -= 1
            await self._wake_waiting()
        return Accepted(
            seq=len(self.messages),
            session_key=build_session_key(message.source),
            session_id="s",
            disposition=Disposition.STARTS,
        )

    async def wait_for(self, count: int) -> list[InboundMessage]:
        """Wait until so many messages have arrived, and return them."""
        await self._wait_until_met(lambda: len(self.messages) >= count)
        return self.messages

    async def wait_for_text(self, text: str) -> None:
        """Wait until a message with that text has arrived, whatever comes before it."""
        await self._wait_until_met(lambda: any(one.text == text for one in self.messages))

    async def wait_for_call(self) -> None:
        """Wait until a message is being handed over, or was."""
        await self._wait_until_met(lambda: self.calls > 0)

    async def wait_for_rest(self) -> None:
        """Wait until no message is being handed over."""
        await self._wait_until_met(lambda: self.under_way == 0)

    async def _wait_until_met(self, met: Callable[[], bool]) -> None:
        async with self._changed:
            with anyio.fail_after(PATIENCE_SECONDS):
                await self._changed.wait_for(met)

    async def _wake_waiting(self) -> None:
        async with self._changed:
            self._changed.notify_all()


@asynccontextmanager
async def nothing_left() -> AsyncGenerator[None]:
    """Check that no task of the block lives on after it, given a moment."""
    before = asyncio.all_tasks()
    yield
    if left := asyncio.all_tasks() - before:
        await asyncio.wait(left, timeout=PATIENCE_SECONDS)
    assert asyncio.all_tasks() - before == set()


__all__ = ["Ability", "AdapterBench", "AdapterContract", "Inbox", "SendFailure"]

LONG: Final = 20_000
"""A text with so many characters is sent whole where there is no limit."""
MIXED: Final = "Grüße\n\n漢字 😀 “quoted” <b>&amp;</b> %s {0} \\n"


def said(text: str) -> OutboundMessage:
    """Return a message with that text."""
    return OutboundMessage(text=text)


class AdapterContract:
    """All contract tests of an adapter. If a platform lacks an ability, its absence is tested instead."""

    pytestmark: ClassVar[pytest.MarkDecorator] = pytest.mark.asyncio
    abilities: ClassVar[frozenset[Ability]] = frozenset()
    failures: ClassVar[frozenset[SendFailure]] = frozenset()
    """The ways in which the bench can let a send fail."""

    @pytest.fixture
    def bench(self) -> AdapterBench:
        """Override this fixture: a platform without messages, and an adapter that is not connected."""
        raise NotImplementedError

    @pytest.fixture
    def inbox(self) -> Inbox:
        """Return the inbox to which the adapter hands messages."""
        return Inbox()

    @asynccontextmanager
    async def talking(self, bench: AdapterBench, inbox: Inbox) -> AsyncGenerator[ReplyTarget]:
        """Connect an adapter, let the person write, and yield the target of a reply."""
        async with bench.adapter.connect(inbox):
            await bench.says("hello")
            (message,) = await inbox.wait_for(1)
            yield ReplyTarget.answering(message)

    # Who it is

    async def test_it_says_who_it_is_and_what_it_can_do(self, bench: AdapterBench, inbox: Inbox) -> None:
        adapter = bench.adapter
        assert isinstance(adapter.name, str)
        assert adapter.platform == adapter.platform.strip().lower() != ""
        before = adapter.capabilities
        assert isinstance(before, AdapterCapabilities)
        async with adapter.connect(inbox):
            assert adapter.capabilities == before

    # Messages on their way in

    async def test_what_somebody_says_is_handed_over(self, bench: AdapterBench, inbox: Inbox) -> None:
        async with bench.adapter.connect(inbox):
            await bench.says("hello")
            (message,) = await inbox.wait_for(1)
        assert (message.text, message.kind, message.internal) == ("hello", MessageKind.NEW, False)
        assert (message.source.platform, message.account) == (bench.adapter.platform, bench.adapter.name)
        assert message.source.has_identifier

    async def test_a_message_can_be_stored(self, bench: AdapterBench, inbox: Inbox) -> None:
        async with self.talking(bench, inbox) as target:
            metadata = dict(inbox.messages[0].metadata)
        assert msgspec.json.decode(msgspec.json.encode(metadata)) == metadata
        assert msgspec.json.decode(msgspec.json.encode(target), type=ReplyTarget) == target

    async def test_what_a_person_says_stays_on_one_lane_in_its_order(
        self, bench: AdapterBench, inbox: Inbox
    ) -> None:
        texts = [f"message {number}" for number in range(5)]
        async with bench.adapter.connect(inbox):
            for text in texts:
                await bench.says(text)
            messages = await inbox.wait_for(len(texts))
        assert [one.text for one in messages] == texts
        assert len({build_session_key(one.source) for one in messages}) == 1

    async def test_words_arrive_as_they_were_written(self, bench: AdapterBench, inbox: Inbox) -> None:
        text = MIXED.replace("\n", " ")
        async with bench.adapter.connect(inbox):
            await bench.says(text)
            (message,) = await inbox.wait_for(1)
        assert message.text == text

    async def test_messages_of_the_same_words_are_told_apart(self, bench: AdapterBench, inbox: Inbox) -> None:
        async with bench.adapter.connect(inbox):
            await bench.says("again")
            await bench.says("again")
            first, second = await inbox.wait_for(2)
        expected = 2 if Ability.REDELIVERS in self.abilities else 1
        assert len({first.idempotency_key, second.idempotency_key}) == expected

    async def test_what_is_delivered_again_is_known_again(self, bench: AdapterBench, inbox: Inbox) -> None:
        async with bench.adapter.connect(inbox):
            await bench.says("once")
            if Ability.REDELIVERS in self.abilities:
                await bench.delivers_again()
                await bench.says("afterwards")
                await inbox.wait_for_text("afterwards")
                # An adapter may also notice by itself that it has handed this one over.
                keys = {one.idempotency_key for one in inbox.messages if one.text == "once"}
                assert len(keys) == 1
                assert None not in keys
            else:
                (message,) = await inbox.wait_for(1)
                assert message.idempotency_key is None

    async def test_nothing_is_acknowledged_before_it_was_taken(
        self, bench: AdapterBench, inbox: Inbox
    ) -> None:
        inbox.open.clear()
        async with bench.adapter.connect(inbox), asyncio.TaskGroup() as tasks:
            sending = tasks.create_task(bench.says("hello"))
            await inbox.wait_for_call()
            for _ in range(20):
                await asyncio.sleep(0)
            assert not sending.done() or Ability.ACKNOWLEDGES not in self.abilities
            inbox.open.set()
            assert await sending
            await inbox.wait_for(1)

    async def test_what_was_not_taken_is_not_acknowledged_and_the_next_one_is_heard(
        self, bench: AdapterBench, inbox: Inbox
    ) -> None:
        inbox.failure = StorageUnavailableError("sessions.db", "is away")
        async with bench.adapter.connect(inbox):
            taken = await bench.says("lost")
            await inbox.wait_for_call()
            assert not taken or Ability.ACKNOWLEDGES not in self.abilities
            await inbox.wait_for_rest()
            inbox.failure = None
            assert await bench.says("next")
            await inbox.wait_for_text("next")
        # A platform that keeps refused messages may deliver this one again by then, before or after the next.
        texts = sorted(one.text for one in inbox.messages)
        assert texts in (["next"], ["lost", "next"])

    async def test_what_cannot_be_read_does_not_stop_what_comes_behind_it(
        self, bench: AdapterBench, inbox: Inbox
    ) -> None:
        async with bench.adapter.connect(inbox):
            for turn in ("first", "second"):
                assert await bench.garbles(), "the platform would bring it for ever"
                assert await bench.says(turn)
                await inbox.wait_for_text(turn)
                await inbox.wait_for_rest()

    async def test_what_was_written_while_nobody_listened_comes_later_if_that_is_claimed(
        self, bench: AdapterBench, inbox: Inbox
    ) -> None:
        async with bench.adapter.connect(inbox):
            await bench.says("before")
            await inbox.wait_for_text("before")
        keeps = bench.adapter.capabilities.receives in {ReceiveClass.CURSOR, ReceiveClass.BACKFILLED}
        if keeps:
            for text in ("missed", "missed too"):
                await bench.writes_unheard(text)
        async with bench.adapter.connect(inbox):
            await bench.says("after")
            await inbox.wait_for_text("after")
        texts = list(dict.fromkeys(one.text for one in inbox.messages))
        assert texts == ["before", *(["missed", "missed too"] if keeps else []), "after"]

    # Messages on their way out

    async def test_an_answer_is_shown_where_the_message_came_from(
        self, bench: AdapterBench, inbox: Inbox
    ) -> None:
        async with self.talking(bench, inbox) as target:
            await bench.adapter.send(target, said("an answer"), idempotency_key="k1")
            assert (await bench.shown()).count("an answer") == 1

    async def test_an_answer_finds_its_way_with_a_target_that_was_stored(
        self, bench: AdapterBench, inbox: Inbox
    ) -> None:
        async with self.talking(bench, inbox) as target:
            stored = msgspec.json.decode(msgspec.json.encode(target), type=ReplyTarget)
            await bench.adapter.send(stored, said("an answer"), idempotency_key="k1")
            assert "an answer" in await bench.shown()

    async def test_what_is_unasked_finds_its_way(self, bench: AdapterBench, inbox: Inbox) -> None:
        async with self.talking(bench, inbox):
            target = ReplyTarget.at(inbox.messages[0].source, account=bench.adapter.name)
            notice = OutboundMessage(text="by the way", is_notice=True)
            await bench.adapter.send(target, notice, idempotency_key="k1")
            assert "by the way" in await bench.shown()

    async def test_messages_have_ids_of_their_own_or_none(self, bench: AdapterBench, inbox: Inbox) -> None:
        async with self.talking(bench, inbox) as target:
            ids = [await bench.adapter.send(target, said(key), idempotency_key=key) for key in ("one", "two")]
        assert ids == [None, None] or (len(set(ids)) == len(ids) and all(ids))

    async def test_words_are_shown_as_they_were_said(self, bench: AdapterBench, inbox: Inbox) -> None:
        async with self.talking(bench, inbox) as target:
            await bench.adapter.send(target, said(MIXED), idempotency_key="k1")
            assert MIXED in await bench.shown()

    async def test_the_longest_text_is_shown_whole_and_a_longer_one_not_at_all(
        self, bench: AdapterBench, inbox: Inbox
    ) -> None:
        limit = bench.adapter.capabilities.max_length
        async with self.talking(bench, inbox) as target:
            longest = "x" * (limit or LONG)
            await bench.adapter.send(target, said(longest), idempotency_key="k1")
            assert (await bench.shown()).count("x") == len(longest)
            if limit is not None:
                with pytest.raises(DeliveryRefusedError):
                    await bench.adapter.send(target, said("y" * (limit + 1)), idempotency_key="k2")
                assert "y" not in await bench.shown()

    async def test_a_long_text_arrives_in_its_parts(self, bench: AdapterBench, inbox: Inbox) -> None:
        words = [f"word{number:05}" for number in range(2000)]
        parts = split_message(said(" ".join(words)), bench.adapter.capabilities)
        async with self.talking(bench, inbox) as target:
            for number, part in enumerate(parts):
                await bench.adapter.send(target, part, idempotency_key=f"k{number}")
            shown = await bench.shown()
        places = [shown.find(word) for word in words]
        assert -1 not in places
        assert places == sorted(places)

    @pytest.mark.parametrize("kind", AttachmentKind)
    async def test_an_attachment_is_shown_told_in_words_or_refused(
        self, bench: AdapterBench, inbox: Inbox, kind: AttachmentKind
    ) -> None:
        attachment = Attachment(kind=kind, url="https://e.org/1", name="it.bin")
        message = OutboundMessage(text="look", attachments=(attachment,))
        able = bench.adapter.capabilities
        async with self.talking(bench, inbox) as target:
            try:
                for number, part in enumerate(split_message(able.in_words(message), able)):
                    await bench.adapter.send(target, part, idempotency_key=f"k{number}")
            except DeliveryRefusedError:
                assert "look" not in await bench.shown()
            else:
                assert "https://e.org/1" in await bench.shown()

    async def test_what_is_sent_with_one_key_is_shown_once_if_that_is_claimed(
        self, bench: AdapterBench, inbox: Inbox
    ) -> None:
        async with self.talking(bench, inbox) as target:
            for key in ("k1", "k1", "k2"):
                await bench.adapter.send(target, said("a reply"), idempotency_key=key)
            count = (await bench.shown()).count("a reply")
        assert count == (2 if bench.adapter.capabilities.idempotent_for else 3)

    async def test_what_was_sent_is_found_again_if_that_is_claimed(
        self, bench: AdapterBench, inbox: Inbox
    ) -> None:
        adapter = bench.adapter
        if not adapter.capabilities.finds:
            return
        assert isinstance(adapter, FindingAdapter)
        async with self.talking(bench, inbox) as target:
            sent = await adapter.send(target, said("a reply"), idempotency_key="k1")
            await adapter.send(target, said("another"), idempotency_key="k2")
            assert await adapter.find(target, idempotency_key="k1") == sent is not None
            assert await adapter.find(target, idempotency_key="k3") is None

    async def test_buttons_are_shown_and_a_press_is_handed_over_if_that_is_claimed(
        self, bench: AdapterBench, inbox: Inbox
    ) -> None:
        if not bench.adapter.capabilities.buttons:
            return
        message = OutboundMessage(text="Sure?", buttons=(Button("Yes", "confirm:1"), Button("No", "deny:1")))
        async with self.talking(bench, inbox) as target:
            await bench.adapter.send(target, message, idempotency_key="k1")
            shown = await bench.shown()
            assert [word for word in ("Sure?", "Yes", "No") if word not in shown] == []
            await bench.presses("Yes")
            (hello, pressed) = await inbox.wait_for(2)
        assert (pressed.action, pressed.kind) == ("confirm:1", MessageKind.NEW)
        assert pressed.text
        assert pressed.idempotency_key not in {None, hello.idempotency_key}
        assert build_session_key(pressed.source) == build_session_key(hello.source)

    @pytest.mark.parametrize("key", ["a b\r\nx: y", "ключ", "k" * 5000, "reply:7\x1f1"])
    async def test_any_key_will_do(self, bench: AdapterBench, inbox: Inbox, key: str) -> None:
        async with self.talking(bench, inbox) as target:
            await bench.adapter.send(target, said("a reply"), idempotency_key=key)
            assert "a reply" in await bench.shown()

    async def test_an_edit_replaces_what_was_said_if_that_is_claimed(
        self, bench: AdapterBench, inbox: Inbox
    ) -> None:
        can_edit = bench.adapter.capabilities.edit
        async with self.talking(bench, inbox) as target:
            message_id = await bench.adapter.send(target, said("a draft"), idempotency_key="k1")
            assert message_id or not can_edit
            if message_id and can_edit:
                await bench.adapter.edit(target, message_id, said("the result"))
                shown = await bench.shown()
                assert ("a draft" in shown, "the result" in shown) == (False, True)
            else:
                with pytest.raises(DeliveryRefusedError):
                    await bench.adapter.edit(target, message_id or "1", said("the result"))

    async def test_typing_says_nothing(self, bench: AdapterBench, inbox: Inbox) -> None:
        async with self.talking(bench, inbox) as target:
            before = await bench.shown()
            await bench.adapter.typing(target)
            await bench.adapter.typing(target)
            assert await bench.shown() == before

    # What goes wrong

    @pytest.mark.parametrize("how", SendFailure)
    async def test_a_failure_is_told_as_what_it_is_and_leaves_no_trace(
        self, bench: AdapterBench, inbox: Inbox, how: SendFailure
    ) -> None:
        async with self.talking(bench, inbox) as target:
            if how in self.failures:
                async with bench.failing(how):
                    with pytest.raises(Exception) as failure:  # noqa: PT011 -- which one is the question
                        await bench.adapter.send(target, said("a try"), idempotency_key="k1")
                assert classify_failure(failure.value).how is how, repr(failure.value)
                if isinstance(failure.value, RateLimitedError):
                    assert failure.value.retry_after is None or failure.value.retry_after >= 0
                assert how is SendFailure.UNKNOWN or "a try" not in await bench.shown()
            await bench.adapter.send(target, said("it works"), idempotency_key="k2")
            assert "it works" in await bench.shown()

    async def test_a_send_that_is_cancelled_anywhere_leaves_nothing_behind(
        self, bench: AdapterBench, inbox: Inbox
    ) -> None:
        async with self.talking(bench, inbox) as target:
            async with nothing_left(), bench.hanging():
                for turns in (0, 1, 2, 3, 5, 8, 13, 200):
                    sending = asyncio.create_task(
                        bench.adapter.send(target, said("never mind"), idempotency_key=f"k{turns}")
                    )
                    for _ in range(turns):
                        await asyncio.sleep(0)
                    sending.cancel()
                    await asyncio.wait({sending}, timeout=PATIENCE_SECONDS)
                    assert sending.cancelled()
            await bench.adapter.send(target, said("it works"), idempotency_key="k")
            assert "it works" in await bench.shown()

    # Coming and going

    async def test_it_connects_again_and_again_and_leaves_nothing_behind(
        self, bench: AdapterBench, inbox: Inbox
    ) -> None:
        for turn in range(1, 4):
            async with nothing_left(), bench.adapter.connect(inbox):
                await bench.says(f"hello {turn}")
                await inbox.wait_for_text(f"hello {turn}")
        # What the platform did not hear of as taken may come again: a store knows it by its key.
        taken = {one.idempotency_key or one.text: one.text for one in inbox.messages}
        assert list(taken.values()) == ["hello 1", "hello 2", "hello 3"]

    async def test_an_error_in_the_block_comes_out_of_it(self, bench: AdapterBench, inbox: Inbox) -> None:
        error = LookupError("mine")
        with pytest.raises(LookupError) as caught:
            async with nothing_left(), bench.adapter.connect(inbox):
                raise error
        assert caught.value is error

    async def test_nothing_is_handed_over_any_more_when_the_block_has_ended(
        self, bench: AdapterBench, inbox: Inbox
    ) -> None:
        inbox.open.clear()
        async with nothing_left():
            async with bench.adapter.connect(inbox):
                sending = asyncio.create_task(bench.says("too late"))
                await inbox.wait_for_call()
            with anyio.fail_after(PATIENCE_SECONDS):
                assert not await sending or Ability.ACKNOWLEDGES not in self.abilities
        assert (inbox.under_way, inbox.messages) == (0, [])

    async def test_a_send_without_a_connection_works_or_is_certain_to_have_failed(
        self, bench: AdapterBench, inbox: Inbox
    ) -> None:
        async with self.talking(bench, inbox) as target:
            pass
        try:
            await bench.adapter.send(target, said("afterwards"), idempotency_key="k1")
        except AdapterUnavailableError:
            assert "afterwards" not in await bench.shown()
        else:
            assert "afterwards" in await bench.shown()
