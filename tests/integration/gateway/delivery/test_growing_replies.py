"""Replies that grow before people's eyes: in the end everything stands once, and in the order it was said."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from gateway_sessions import SessionResetPolicy
from gateway_sessions.core.delivery.adapter_capabilities import AdapterCapabilities
from gateway_sessions.core.delivery.message_parts import REPEATED
from gateway_sessions.core.delivery.outbound_messages import (
    Growing,
    OutboundMessage,
    Reply,
    ReplyTarget,
    TextFormat,
)
from gateway_sessions.core.markdown.dialects import TELEGRAM
from gateway_sessions.core.queue.inbound import Attachment, AttachmentKind
from gateway_sessions.core.sessions.reset_policy import ResetMode
from gateway_sessions.errors import (
    DeliveryRefusedError,
    InvalidInputError,
    RateLimitedError,
    StorageUnavailableError,
)
from gateway_sessions.runtime.agents.turn_context import TurnContext
from gateway_sessions.runtime.queue.turn import Turn
from gateway_sessions.storage.transactions.queue.outbox import Owed
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.fake_platform import ABLE, FakePlatform
from tests.integration.gateway.gateway_harness import QUICK, open_harness, wait_until

SHORT = replace(ABLE, max_length=100)
PHOTO = Attachment(kind=AttachmentKind.PHOTO, url="file:a.jpg")
LONG = " ".join(f"word{number}" for number in range(40))


async def long(turn: TurnContext) -> Reply:
    await turn.show(LONG[:50])
    return Reply(LONG, attachments=(PHOTO,))


async def telling(turn: TurnContext) -> str:
    """Says something while a reply grows, which goes on growing after that."""
    await turn.show("Thinking")
    await turn.say("Found a file.")
    await turn.clock.sleep(2)
    await turn.show("The ans")
    await turn.clock.sleep(2)
    return "The answer."


class Forgetful(FakePlatform):
    """People have taken away what was shown so far."""

    async def edit(self, target: ReplyTarget, message_id: str, message: OutboundMessage) -> None:
        self.sent = [one for one in self.sent if one.message_id != message_id]
        raise DeliveryRefusedError(self.platform, "there is no such message")


class Torn(FakePlatform):
    """The connection breaks once when the whole reply is put in its place, which happens all the same."""

    def __init__(self, clock: FakeClock, capabilities: AdapterCapabilities) -> None:
        super().__init__(clock=clock, capabilities=capabilities)
        self.breaks = True

    async def edit(self, target: ReplyTarget, message_id: str, message: OutboundMessage) -> None:
        await super().edit(target, message_id, message)
        if message.replaces is not None and self.breaks:
            self.breaks = False
            raise ConnectionResetError


async def test_a_reply_that_outgrew_one_message_is_read_from_its_beginning(tmp_path: Path):
    """Its end stood at the top, where it had grown, and its beginning below."""
    clock = FakeClock()
    platform = FakePlatform(clock=clock, capabilities=SHORT)
    async with open_harness(tmp_path, platform=platform, clock=clock, agent=long) as harness:
        await platform.says("ann", "tell me")
        await harness.wait_until_idle()
        assert " ".join(one.strip() for one in platform.shown("ann")) == LONG
        first, *others = platform.sent
        assert [one.text for one in first.before] == [LONG[:50]]
        assert [one.message.attachments for one in (first, *others)][-2:] == [(), (PHOTO,)]
        assert not any(one.before for one in others)


async def test_a_long_reply_of_which_people_took_the_beginning_away_is_sent_anew_in_order(tmp_path: Path):
    clock = FakeClock()
    platform = Forgetful(clock=clock, capabilities=SHORT)
    async with open_harness(tmp_path, platform=platform, clock=clock, agent=long) as harness:
        await platform.says("ann", "tell me")
        await harness.wait_until_idle()
        assert " ".join(one.strip() for one in platform.shown("ann")) == LONG


async def test_a_long_reply_that_may_stand_there_already_stands_there_once_and_without_a_mark(
    tmp_path: Path,
):
    """To put it in its place again changes nothing that people see, so nothing repeats."""
    clock = FakeClock()
    platform = Torn(clock, SHORT)
    async with open_harness(tmp_path, platform=platform, clock=clock, agent=long) as harness:
        await platform.says("ann", "tell me")
        await harness.wait_until_idle()
        await clock.advance(minutes=1)
        await harness.wait_until_idle()
        assert REPEATED not in "".join(platform.shown("ann"))
        assert " ".join(one.strip() for one in platform.shown("ann")) == LONG


async def test_what_is_said_on_the_way_stands_above_the_answer(tmp_path: Path):
    """The answer took the place of what had grown, above what was said after that had begun."""
    async with open_harness(tmp_path, agent=telling) as harness:
        await harness.platform.says("ann", "look")
        await harness.clock.advance(seconds=5)
        assert harness.platform.shown("ann") == ["Found a file.", "The answer."]
        first, second = harness.platform.sent
        assert [one.text for one in first.before] == ["Thinking"]
        assert [one.text for one in second.before] == ["The ans"]
        assert len({one.idempotency_key for one in harness.platform.attempts}) == 2


async def test_the_notice_of_a_new_conversation_stands_above_the_answer_that_grew(tmp_path: Path):
    async def growing(turn: TurnContext) -> str:
        await turn.show("He")
        return "Hello."

    daily = replace(QUICK, session_reset=SessionResetPolicy(mode=ResetMode.IDLE, idle_minutes=60))
    async with open_harness(tmp_path, daily, agent=growing) as harness:
        await harness.platform.says("ann", "one")
        await harness.wait_until_idle()
        await harness.clock.advance(hours=5)
        before = len(harness.platform.sent)
        await harness.platform.says("ann", "two")
        await harness.wait_until_idle()
        notice, answer = harness.platform.sent[before:]
        assert notice.message.is_notice
        assert (answer.text, answer.message.is_notice) == ("Hello.", False)


async def test_nothing_grows_above_what_is_still_owed(tmp_path: Path):
    """What was said before could not be sent yet, and the answer grew where it was to stand."""

    async def slow(turn: TurnContext) -> str:
        await turn.say("One moment.")
        for so_far in ("The", "The ans"):
            await turn.clock.sleep(5)
            await turn.show(so_far)
        return "The answer."

    async with open_harness(tmp_path, agent=slow) as harness:
        harness.platform.rate_limit(30)
        await harness.platform.says("ann", "look")
        await harness.clock.advance(minutes=2)
        await harness.wait_until_idle()
        assert harness.platform.shown("ann") == ["One moment.", "The answer."]


async def test_an_answer_grows_not_more_often_than_the_platform_likes_also_behind_what_is_said(
    tmp_path: Path,
):
    async def hasty(turn: TurnContext) -> str:
        for number in range(5):
            await turn.show(f"so far {number}")
            await turn.say(f"said {number}")
        return "done"

    clock = FakeClock()
    platform = FakePlatform(clock=clock, capabilities=replace(ABLE, min_edit_interval=timedelta(seconds=1)))
    async with open_harness(tmp_path, platform=platform, clock=clock, agent=hasty) as harness:
        await platform.says("ann", "look")
        await harness.wait_until_idle()
        assert platform.shown("ann") == [*(f"said {number}" for number in range(5)), "done"]
        assert sum(one.idempotency_key.startswith("stream:") for one in platform.attempts) == 1


class Late(FakePlatform):
    """What is shown on the way takes a while to get there, longer than whatever comes after it."""

    async def edit(self, target: ReplyTarget, message_id: str, message: OutboundMessage) -> None:
        await self._underway(is_shown=message.replaces is None)
        await super().edit(target, message_id, message)

    async def send(
        self, target: ReplyTarget, message: OutboundMessage, *, idempotency_key: str
    ) -> str | None:
        await self._underway(is_shown=idempotency_key.startswith("stream:"))
        return await super().send(target, message, idempotency_key=idempotency_key)

    async def _underway(self, *, is_shown: bool) -> None:
        if is_shown:
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("before", [(), ("The ans",)])
async def test_what_is_shown_while_the_agent_ends_is_not_what_people_see_for_good(
    tmp_path: Path, before: tuple[str, ...]
):
    """What a task of the agent was still showing came last, over the answer or below it."""
    showing: list[asyncio.Task[None]] = []

    async def leaving(turn: TurnContext) -> str:
        for so_far in before:
            await turn.show(so_far)
        showing.append(asyncio.create_task(turn.show("The answ")))
        await asyncio.sleep(0)
        return "The answer."

    clock = FakeClock()
    platform = Late(clock=clock)
    async with open_harness(tmp_path, platform=platform, clock=clock, agent=leaving) as harness:
        await platform.says("ann", "look")
        await wait_until(lambda: showing and showing[0].done())
        await harness.wait_until_idle()
        assert platform.shown("ann") == ["The answer."]


async def test_a_turn_does_not_wait_for_ever_for_what_is_being_shown(tmp_path: Path):
    class Stuck(FakePlatform):
        async def send(
            self, target: ReplyTarget, message: OutboundMessage, *, idempotency_key: str
        ) -> str | None:
            if idempotency_key.startswith("stream:"):
                await asyncio.Event().wait()
            return await super().send(target, message, idempotency_key=idempotency_key)

    showing: list[asyncio.Task[None]] = []

    async def leaving(turn: TurnContext) -> str:
        showing.append(asyncio.create_task(turn.show("The answ")))
        await asyncio.sleep(0)
        return "The answer."

    clock = FakeClock()
    platform = Stuck(clock=clock)
    async with open_harness(tmp_path, platform=platform, clock=clock, agent=leaving) as harness:
        await platform.says("ann", "look")
        await wait_until(lambda: showing)
        await clock.advance(seconds=5)
        await harness.wait_until_idle()
        assert platform.shown("ann") == ["The answer."]


async def test_nothing_grows_above_what_is_said_beside_it(tmp_path: Path):
    """It was shown as soon as what was said had stopped waiting for it, and that could not be sent yet."""
    grown: list[str] = []

    async def beside(turn: TurnContext) -> str:
        async def grow() -> None:
            await turn.show("The")
            await turn.show("The ans")
            grown.append("The ans")

        growing = asyncio.create_task(grow())
        await asyncio.sleep(0)
        await turn.say("Found a file.")
        await growing
        return "The answer."

    clock = FakeClock()
    platform = Late(clock=clock)
    platform.rate_limit(30, times=2)
    async with open_harness(tmp_path, platform=platform, clock=clock, agent=beside) as harness:
        await platform.says("ann", "look")
        await wait_until(lambda: grown)
        await clock.advance(minutes=2)
        await harness.wait_until_idle()
        assert platform.shown("ann") == ["Found a file.", "The answer."]


@pytest.mark.parametrize(
    ("in_doubt", "seen"), [(False, ["The answer."]), (True, ["Found a file.", "The answer."])]
)
async def test_what_could_not_be_said_leaves_its_place_to_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, in_doubt: bool, seen: list[str]
):
    """The part that was shown stood there for good, above the answer. What may be said keeps its place."""
    owe, failures = Turn.owe, [StorageUnavailableError("a store", "it is away", in_doubt=in_doubt)]

    async def owe_badly(turn: Turn, *replies: Owed, growing: Growing | None = None) -> tuple[int, ...]:
        ids = await owe(turn, *replies, growing=growing) if in_doubt or not failures else ()
        if failures:
            raise failures.pop()
        return ids

    async def telling_in_vain(turn: TurnContext) -> str:
        await turn.show("The ans")
        with pytest.raises(StorageUnavailableError):
            await turn.say("Found a file.")
        return "The answer."

    monkeypatch.setattr(Turn, "owe", owe_badly)
    async with open_harness(tmp_path, agent=telling_in_vain) as harness:
        await harness.platform.says("ann", "look")
        await harness.wait_until_idle()
        harness.gateway.look_again()
        await harness.wait_until_idle()
        assert harness.platform.shown("ann") == seen


# Pauses that the platform asks for


class Strict(FakePlatform):
    """Wants a pause after the second change of a message, and notes what is asked for within it."""

    def __init__(self, clock: FakeClock, pause: float) -> None:
        super().__init__(clock=clock, capabilities=replace(ABLE, typing=True))
        self.pause = timedelta(seconds=pause)
        self.asked: list[tuple[str, float]] = []
        self.until = clock.now()
        self.edits = 0

    def _ask(self, what: str) -> None:
        assert self._clock is not None
        now = self._clock.now()
        self.asked.append((what, (self.until - now).total_seconds()))
        self.edits += what == "edit"
        if what == "edit" and self.edits == 2:
            self.until = now + self.pause
            raise RateLimitedError(self.platform, self.pause.total_seconds())

    async def edit(self, target: ReplyTarget, message_id: str, message: OutboundMessage) -> None:
        self._ask("edit")
        await super().edit(target, message_id, message)

    async def send(
        self, target: ReplyTarget, message: OutboundMessage, *, idempotency_key: str
    ) -> str | None:
        self._ask("send")
        return await super().send(target, message, idempotency_key=idempotency_key)

    async def typing(self, target: ReplyTarget) -> None:
        self._ask("typing")
        await super().typing(target)


@pytest.mark.parametrize("pause", [7.0, 30.0])
async def test_within_a_pause_nothing_is_asked_and_the_answer_comes_after_it(tmp_path: Path, pause: float):
    async def grows(turn: TurnContext) -> str:
        for number in range(12):
            await turn.show("word " * (number + 1))
            await turn.clock.sleep(1)
        return "The whole answer."

    clock = FakeClock()
    platform = Strict(clock, pause)
    async with open_harness(tmp_path, platform=platform, clock=clock, agent=grows) as harness:
        await platform.says("ann", "hello")
        await harness.clock.advance(seconds=60)
        await harness.wait_until_idle()
        assert [what for what, left in platform.asked if left > 0] == []
        assert {what for what, _ in platform.asked} == {"edit", "send", "typing"}
        assert platform.shown("ann") == ["The whole answer."]


async def test_a_pause_holds_for_its_chat_and_no_other(tmp_path: Path):
    async def grows(turn: TurnContext) -> str:
        await turn.show("One")
        await turn.clock.sleep(2)
        await turn.show("One two")
        await turn.clock.sleep(2)
        await turn.show("One two three")
        await turn.clock.sleep(2)
        return "Done."

    clock = FakeClock()
    platform = Strict(clock, 30)
    async with open_harness(tmp_path, platform=platform, clock=clock, agent=grows) as harness:
        await platform.says("ann", "hello")
        await harness.clock.advance(seconds=8)
        assert platform.shown("ann") == ["One two"]
        platform.until = clock.now()
        await platform.says("bob", "hello")
        await harness.clock.advance(seconds=8)
        assert platform.shown("bob") == ["Done."]
        assert platform.shown("ann") == ["One two"]
        await harness.clock.advance(seconds=30)
        assert platform.shown("ann") == ["Done."]


MARKED = replace(ABLE, dialect=TELEGRAM, max_length=128)


async def test_a_reply_in_markdown_grows_in_the_markup_of_the_platform(tmp_path: Path):
    async def writing(turn: TurnContext) -> Reply:
        stream = turn.stream(format=TextFormat.MARKDOWN)
        await stream.write("**One")
        await stream.write("** & two")
        await stream.write("\n\n" + "more " * 40)  # too long for one message: what was shown stays
        with pytest.raises(InvalidInputError, match="format must be one of plain, markdown"):
            await turn.show("<b>", format="html")  # type: ignore[arg-type]
        return Reply(stream.text, format=TextFormat.MARKDOWN)

    clock = FakeClock()
    platform = FakePlatform(clock=clock, capabilities=MARKED)
    async with open_harness(tmp_path, platform=platform, clock=clock, agent=writing) as harness:
        await platform.says("ann", "tell me")
        await harness.wait_until_idle()
        first, *others = platform.sent
        assert [(one.markup, one.text) for one in first.before] == [
            ("**One", "**One"),
            ("<b>One</b> &amp; two", "One & two"),
        ]
        assert (first.message.markup or "").startswith("<b>One</b> &amp; two\n\nmore")
        assert len(others) > 0


async def test_what_grew_in_markdown_and_was_not_finished_says_so_in_markup(tmp_path: Path):
    async def failing(turn: TurnContext) -> str:
        await turn.show("**One**", format=TextFormat.MARKDOWN)
        raise LookupError

    clock = FakeClock()
    platform = FakePlatform(clock=clock, capabilities=MARKED)
    async with open_harness(tmp_path, platform=platform, clock=clock, agent=failing) as harness:
        await platform.says("ann", "tell me")
        await harness.wait_until_idle()
        assert platform.sent[0].message.markup == "<b>One</b>\n\n[This answer was not finished.]"
