"""The contract of adapters finds what is wrong: each of these adapters breaks one promise, and is caught."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any, ClassVar

import msgspec
import pytest

from gateway_sessions.adapters.protocol import Submit
from gateway_sessions.core.delivery.adapter_capabilities import AdapterCapabilities, ReceiveClass
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.core.queue.inbound import AttachmentKind, Duplicate, InboundMessage, Receipt
from gateway_sessions.errors import AdapterError, GatewaySessionsError
from gateway_sessions.testing import FakePlatform
from gateway_sessions.testing.contract import adapter
from gateway_sessions.testing.contract.adapter import Ability, AdapterContract, Inbox, SendFailure
from tests.contract.adapter_benches import FakeBench

CLAIMS = AdapterCapabilities(
    receives=ReceiveClass.BACKFILLED,
    edit=True,
    idempotent_for=timedelta.max,
    finds=True,
    buttons=True,
    max_length=64,
)
FAILURES = (AssertionError, pytest.fail.Exception, TimeoutError, TypeError, ExceptionGroup)


class Contract(AdapterContract):
    """What the adapters below claim to keep."""

    abilities = frozenset(Ability)
    failures = frozenset(SendFailure)


class Changing(FakePlatform):
    """Hands over something else than what was said."""

    changes: ClassVar[dict[str, Any]]

    async def delivers(self, message: InboundMessage) -> Receipt:
        return await super().delivers(msgspec.structs.replace(message, **self.changes))


class Nameless(Changing):
    changes: ClassVar = {"account": "other"}


class Idless(Changing):
    changes: ClassVar = {"message_id": None}


class Forgetful(FakePlatform):
    """Gives a message another id whenever it comes."""

    async def redelivers(self, message_id: str) -> Receipt:
        return await self.says("ann", "once", message_id=f"{message_id} again")


class Mumbling(Changing):
    changes: ClassVar = {"text": "?"}


class Hoarding(Changing):
    changes: ClassVar = {"metadata": {"client": object()}}


class Hasty(FakePlatform):
    """Tells the platform that all is well, before it is."""

    async def delivers(self, message: InboundMessage) -> Receipt:
        self.later = asyncio.create_task(super().delivers(message))
        self.later.add_done_callback(lambda task: task.cancelled() or task.exception())
        return Duplicate(seq=1, session_key="k")


class Deaf(FakePlatform):
    """Takes errors for success."""

    async def delivers(self, message: InboundMessage) -> Receipt:
        try:
            return await super().delivers(message)
        except GatewaySessionsError:
            return Duplicate(seq=1, session_key="k")


class Offended(FakePlatform):
    """Hears nothing any more once something was not taken."""

    offended = False

    async def delivers(self, message: InboundMessage) -> Receipt:
        if self.offended:
            return Duplicate(seq=1, session_key="k")
        try:
            return await super().delivers(message)
        except GatewaySessionsError:
            self.offended = True
            raise


class Insisting(FakePlatform):
    """Brings again what was not taken, before it brings anything else: as it should."""

    def __init__(self, *, capabilities: AdapterCapabilities) -> None:
        super().__init__(capabilities=capabilities)
        self.kept: list[InboundMessage] = []

    async def delivers(self, message: InboundMessage) -> Receipt:
        self.kept.append(message)
        while True:
            receipt = await super().delivers(self.kept[0])
            if self.kept.pop(0) is message:
                return receipt


class Stuck(Insisting):
    """Brings nothing but what was not taken, even when it was."""

    async def delivers(self, message: InboundMessage) -> Receipt:
        self.kept.append(message)
        return await FakePlatform.delivers(self, self.kept[0])


class Repeating(Insisting):
    """Brings what was not taken twice."""

    async def delivers(self, message: InboundMessage) -> Receipt:
        self.kept = self.kept * 2
        return await super().delivers(message)


class Boasting(FakePlatform):
    """Claims to know a repeat, and does not."""

    async def send(
        self, target: ReplyTarget, message: OutboundMessage, *, idempotency_key: str
    ) -> str | None:
        return await super().send(target, message, idempotency_key=f"{idempotency_key} {len(self.attempts)}")


class Losing(FakePlatform):
    """Claims to read what it missed, and does not."""

    def writes_unheard(self, person: str, text: str, *, message_id: str | None = None) -> None:
        pass


class Inventing(FakePlatform):
    """Finds what was never sent."""

    async def find(self, target: ReplyTarget, *, idempotency_key: str) -> str | None:
        return "1"


class Blind(FakePlatform):
    """Claims to find what was sent, and does not."""

    async def find(self, target: ReplyTarget, *, idempotency_key: str) -> str | None:
        return None


class Buttonless(FakePlatform):
    """Leaves buttons out without a word."""

    async def send(
        self, target: ReplyTarget, message: OutboundMessage, *, idempotency_key: str
    ) -> str | None:
        bare = msgspec.structs.replace(message, buttons=())
        return await super().send(target, bare, idempotency_key=idempotency_key)


class Tongueless(Changing):
    """Hands a press over as if it were a word."""

    changes: ClassVar = {"action": None}


class Cutting(FakePlatform):
    """Cuts off what is too long."""

    async def send(
        self, target: ReplyTarget, message: OutboundMessage, *, idempotency_key: str
    ) -> str | None:
        return await super().send(
            target, message.with_text(message.text[:64]), idempotency_key=idempotency_key
        )


class Dropping(FakePlatform):
    """Leaves attachments out without a word."""

    async def send(
        self, target: ReplyTarget, message: OutboundMessage, *, idempotency_key: str
    ) -> str | None:
        bare = msgspec.structs.replace(message, attachments=())
        return await super().send(target, bare, idempotency_key=idempotency_key)


class Clogged(FakeBench):
    """A platform that brings what cannot be read until it is acknowledged, and an adapter that never does."""

    async def garbles(self) -> bool:
        return False


class Vague(FakePlatform):
    """Says of each failure that it does not know."""

    async def send(
        self, target: ReplyTarget, message: OutboundMessage, *, idempotency_key: str
    ) -> str | None:
        try:
            return await super().send(target, message, idempotency_key=idempotency_key)
        except AdapterError as error:
            raise OSError from error


class Silent(FakePlatform):
    """Swallows failures."""

    async def send(
        self, target: ReplyTarget, message: OutboundMessage, *, idempotency_key: str
    ) -> str | None:
        try:
            return await super().send(target, message, idempotency_key=idempotency_key)
        except AdapterError:
            return None


class Stubborn(FakePlatform):
    """Goes on with a send that was cancelled."""

    async def send(
        self, target: ReplyTarget, message: OutboundMessage, *, idempotency_key: str
    ) -> str | None:
        self.task = asyncio.create_task(self._for_ever())
        return await super().send(target, message, idempotency_key=idempotency_key)

    async def _for_ever(self) -> None:
        await asyncio.sleep(60)


class Chatty(FakePlatform):
    """Sends a message that it is typing."""

    async def typing(self, target: ReplyTarget) -> None:
        await self.send(target, OutboundMessage(text="..."), idempotency_key="typing")


class Rigid(FakePlatform):
    """Claims to edit, and does not."""

    async def edit(self, target: ReplyTarget, message_id: str, message: OutboundMessage) -> None:
        pass


class Lingering(FakePlatform):
    """Leaves a task behind."""

    @asynccontextmanager
    async def connect(self, submit: Submit) -> AsyncIterator[None]:
        self.task = asyncio.create_task(asyncio.sleep(60))
        async with super().connect(submit):
            yield


class Bundling(FakePlatform):
    """Wraps what happens in the block."""

    @asynccontextmanager
    async def connect(self, submit: Submit) -> AsyncIterator[None]:
        async with asyncio.TaskGroup(), super().connect(submit):
            yield


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a broken adapter never does need not be waited for."""
    monkeypatch.setattr(adapter, "PATIENCE_SECONDS", 0.05)


@pytest.fixture
async def left_overs() -> AsyncIterator[None]:
    """End what a broken adapter has left behind."""
    before = asyncio.all_tasks()
    yield
    left = asyncio.all_tasks() - before - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


@pytest.mark.usefixtures("left_overs")
@pytest.mark.parametrize(
    ("broken", "test"),
    [
        (Nameless, "test_what_somebody_says_is_handed_over"),
        (Idless, "test_messages_of_the_same_words_are_told_apart"),
        (Forgetful, "test_what_is_delivered_again_is_known_again"),
        (Mumbling, "test_words_arrive_as_they_were_written"),
        (Hoarding, "test_a_message_can_be_stored"),
        (Hasty, "test_nothing_is_acknowledged_before_it_was_taken"),
        (Deaf, "test_what_was_not_taken_is_not_acknowledged_and_the_next_one_is_heard"),
        (Offended, "test_what_was_not_taken_is_not_acknowledged_and_the_next_one_is_heard"),
        (Stuck, "test_what_was_not_taken_is_not_acknowledged_and_the_next_one_is_heard"),
        (Repeating, "test_what_was_not_taken_is_not_acknowledged_and_the_next_one_is_heard"),
        (Boasting, "test_what_is_sent_with_one_key_is_shown_once_if_that_is_claimed"),
        (Losing, "test_what_was_written_while_nobody_listened_comes_later_if_that_is_claimed"),
        (Inventing, "test_what_was_sent_is_found_again_if_that_is_claimed"),
        (Blind, "test_what_was_sent_is_found_again_if_that_is_claimed"),
        (Buttonless, "test_buttons_are_shown_and_a_press_is_handed_over_if_that_is_claimed"),
        (Tongueless, "test_buttons_are_shown_and_a_press_is_handed_over_if_that_is_claimed"),
        (Cutting, "test_the_longest_text_is_shown_whole_and_a_longer_one_not_at_all"),
        (Stubborn, "test_a_send_that_is_cancelled_anywhere_leaves_nothing_behind"),
        (Chatty, "test_typing_says_nothing"),
        (Rigid, "test_an_edit_replaces_what_was_said_if_that_is_claimed"),
        (Lingering, "test_it_connects_again_and_again_and_leaves_nothing_behind"),
        (Bundling, "test_an_error_in_the_block_comes_out_of_it"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
async def test_a_broken_promise_is_found(broken: type[FakePlatform], test: str):
    with pytest.raises(FAILURES):
        await getattr(Contract(), test)(FakeBench(broken(capabilities=CLAIMS)), Inbox())


async def test_a_platform_that_brings_again_what_was_not_taken_is_in_order():
    bench, inbox = FakeBench(Insisting(capabilities=CLAIMS)), Inbox()
    await Contract().test_what_was_not_taken_is_not_acknowledged_and_the_next_one_is_heard(bench, inbox)
    assert [one.text for one in inbox.messages] == ["lost", "next"]


@pytest.mark.parametrize("broken", [Vague, Silent])
@pytest.mark.parametrize("how", [SendFailure.UNAVAILABLE, SendFailure.RATE_LIMITED, SendFailure.REFUSED])
async def test_a_failure_that_is_told_wrongly_is_found(broken: type[FakePlatform], how: SendFailure):
    test = Contract().test_a_failure_is_told_as_what_it_is_and_leaves_no_trace
    with pytest.raises(FAILURES):
        await test(FakeBench(broken(capabilities=CLAIMS)), Inbox(), how)


@pytest.mark.parametrize("kind", AttachmentKind)
async def test_an_attachment_that_is_dropped_is_found(kind: AttachmentKind):
    test = Contract().test_an_attachment_is_shown_told_in_words_or_refused
    with pytest.raises(FAILURES):
        await test(FakeBench(Dropping(capabilities=CLAIMS)), Inbox(), kind)
    nothing = replace(CLAIMS, attachments=frozenset())
    await test(FakeBench(Dropping(capabilities=nothing)), Inbox(), kind)


async def test_a_platform_that_is_clogged_is_found():
    test = Contract().test_what_cannot_be_read_does_not_stop_what_comes_behind_it
    with pytest.raises(FAILURES):
        await test(Clogged(FakePlatform(capabilities=CLAIMS)), Inbox())


def test_whoever_forgets_the_bench_is_told():
    with pytest.raises(NotImplementedError):
        AdapterContract.bench.__wrapped__(AdapterContract())  # type: ignore[attr-defined]
