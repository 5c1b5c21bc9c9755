"""The embedding program's own word on messages and turns: heard, but never in anybody else's way."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from gateway_sessions.core.queue.inbound import Accepted, Duplicate, InboundMessage, Rejected, RejectReason
from gateway_sessions.runtime.gateway.observers import AT_ONCE, ObservedTurn, Observer
from gateway_sessions.runtime.observability.event_stream import EventKind
from gateway_sessions.testing.agents import Gate, ScriptedAgent, answers, fails, waits_at
from tests.integration.gateway.documented_events import take_events
from tests.integration.gateway.gateway_harness import QUICK, GatewayHarness, echo, open_harness, wait_until

REFUSED = "I may not take this message."


async def hang(_: object) -> None:
    await asyncio.Event().wait()


async def breaks(_: object) -> None:
    raise ConnectionError("the filter is away")


def problems(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """What was logged of observers that failed."""
    found = [vars(record) for record in caplog.records if vars(record).get("action") == "observer_failed"]
    return [(record["observer"], record["problem"]) for record in found]


async def said(harness: GatewayHarness, person: str) -> list[str]:
    """What the transcript has of a person."""
    return [str(content) for role, content in await harness.transcript(person) if role == "user"]


class TestMessages:
    @pytest.mark.parametrize("verdict", [None, True])
    async def test_one_that_nobody_minds_is_taken(self, tmp_path: Path, verdict: bool | None):
        async def look(message: InboundMessage) -> bool | None:
            return verdict

        async with open_harness(tmp_path, agent=echo, on_message=look) as harness:
            assert isinstance(await harness.platform.says("ann", "hello"), Accepted)
            assert (await harness.platform.wait_for_reply("ann")).text == "hello"

    @pytest.mark.parametrize(
        ("verdict", "text"), [("Not here.", "Not here."), (False, REFUSED), ("", REFUSED)]
    )
    async def test_a_refused_one_leaves_nothing_and_its_sender_is_told(self, tmp_path, verdict, text):
        async def look(message: InboundMessage) -> bool | str:
            return verdict

        async with (
            open_harness(tmp_path, agent=echo, on_message=look) as harness,
            harness.store.events.listen() as listener,
        ):
            receipt = await harness.platform.says("ann", "hello")
            assert isinstance(receipt, Rejected)
            assert (receipt.reason, receipt.text) == (RejectReason.NOT_ALLOWED, text)
            assert receipt.session_key == harness.key("ann")
            await harness.wait_until_idle()
            assert harness.platform.shown("ann") == [text]
            assert not await harness.store.has_any_sessions()
            (event,) = take_events(listener, EventKind.MESSAGE_REJECTED)
            assert event.facts == {"reason": "not_allowed"}

    async def test_one_can_be_reworded(self, tmp_path: Path):
        async def censor(message: InboundMessage) -> InboundMessage:
            return msgspec.structs.replace(message, text=message.text.replace("secret", "***"))

        async with open_harness(tmp_path, agent=echo, on_message=censor) as harness:
            await harness.platform.says("ann", "a secret")
            await harness.wait_until_idle()
            assert await harness.transcript("ann") == [("user", "a ***"), ("assistant", "a ***")]

    async def test_it_stays_the_word_of_who_said_it_where_they_said_it(self, tmp_path, caplog):
        async def elsewhere(message: InboundMessage) -> InboundMessage:
            return msgspec.structs.replace(message, source=replace_chat(message, "bob"), text="moved")

        async with open_harness(tmp_path, agent=echo, on_message=elsewhere) as harness:
            await harness.platform.says("ann", "hello")
            await harness.wait_until_idle()
            assert await said(harness, "ann") == ["hello"]
        assert [what for what, _ in problems(caplog)] == ["on_message"]

    @pytest.mark.parametrize("answer", [5, ["no"]])
    async def test_an_answer_that_is_none_counts_as_a_failure(self, tmp_path, caplog, answer):
        async def look(message: InboundMessage) -> object:
            return answer

        async with open_harness(tmp_path, agent=echo, on_message=look) as harness:
            assert isinstance(await harness.platform.says("ann", "hello"), Accepted)
        ((what, problem),) = problems(caplog)
        assert (what, type(answer).__name__ in problem) == ("on_message", True)

    async def test_an_observer_that_fails_lets_everything_pass_and_is_logged(self, tmp_path, caplog):
        async with open_harness(tmp_path, agent=echo, on_message=breaks) as harness:
            assert isinstance(await harness.platform.says("ann", "hello"), Accepted)
        assert problems(caplog) == [("on_message", "ConnectionError: the filter is away")]

    async def test_one_that_fails_closed_lets_nothing_pass(self, tmp_path, caplog):
        guard = Observer(breaks, fails_closed=True)
        async with open_harness(tmp_path, agent=echo, on_message=guard) as harness:
            receipt = await harness.platform.says("ann", "hello")
            assert isinstance(receipt, Rejected)
            assert receipt.text == REFUSED
        assert len(problems(caplog)) == 1

    async def test_one_that_takes_too_long_is_not_waited_for(self, tmp_path: Path, caplog):
        async with open_harness(tmp_path, agent=echo, on_message=hang) as harness:
            with_text = asyncio.ensure_future(harness.platform.says("ann", "hello"))
            await harness.clock.advance(seconds=4.9)
            assert not with_text.done()
            await harness.clock.advance(seconds=0.1)
            assert isinstance(await with_text, Accepted)
        assert problems(caplog) == [("on_message", "took longer than 5 s")]

    async def test_it_may_have_another_patience(self, tmp_path: Path):
        guard = Observer(hang, timeout=timedelta(minutes=1), fails_closed=True)
        async with open_harness(tmp_path, agent=echo, on_message=guard) as harness:
            with_text = asyncio.ensure_future(harness.platform.says("ann", "hello"))
            await harness.clock.advance(seconds=60)
            assert isinstance(await with_text, Rejected)

    async def test_who_waits_for_it_holds_nobody_else_up(self, tmp_path: Path):
        gate = Gate()

        async def look(message: InboundMessage) -> None:
            if message.sender == "ann":
                await gate.passage()

        async with open_harness(tmp_path, agent=echo, on_message=look) as harness:
            with_text = asyncio.ensure_future(harness.platform.says("ann", "slow"))
            await gate.reached()
            assert isinstance(await harness.platform.says("bob", "quick"), Accepted)
            gate.open()
            assert isinstance(await with_text, Accepted)

    async def test_messages_of_one_lane_keep_their_order_and_commands_wait_for_none(self, tmp_path: Path):
        gate = Gate()

        async def look(message: InboundMessage) -> None:
            if message.text == "one":
                await gate.passage()

        async with open_harness(tmp_path, agent=echo, on_message=look) as harness:
            first = asyncio.ensure_future(harness.platform.says("ann", "one"))
            await gate.reached()
            second = asyncio.ensure_future(harness.platform.says("ann", "two"))
            assert isinstance(await harness.platform.says("ann", "/status"), Accepted)
            assert not second.done()
            gate.open()
            assert [(await one).seq for one in (first, second)] == [2, 3]

    async def test_what_was_taken_before_is_not_refused_because_it_comes_again(self, tmp_path: Path):
        async def look(message: InboundMessage) -> bool:
            return message.text != "hello" or not seen

        seen: list[str] = []
        async with open_harness(tmp_path, agent=echo, on_message=look) as harness:
            await harness.platform.says("ann", "hello", message_id="m1")
            await harness.wait_until_idle()
            seen.append("hello")
            assert await harness.platform.redelivers("m1") == Duplicate(seq=1, session_key=harness.key("ann"))
            assert harness.platform.shown("ann") == ["hello"]

    async def test_edits_are_looked_at_as_well(self, tmp_path: Path):
        async def look(message: InboundMessage) -> str | None:
            return "No." if "bad" in message.text else None

        async with open_harness(tmp_path, agent=echo, on_message=look) as harness:
            await harness.platform.says("ann", "good", message_id="m1")
            await harness.wait_until_idle()
            assert isinstance(await harness.platform.edits("m1", "bad"), Rejected)
            assert isinstance(await harness.platform.edits("m1", "better"), Accepted)
            assert await said(harness, "ann") == ["better"]


def replace_chat(message: InboundMessage, chat_id: str):
    return replace(message.source, chat_id=chat_id, user_id=chat_id)


class TestTurns:
    async def test_a_refused_one_does_not_run_and_is_answered(self, tmp_path: Path):
        async def look(turn: ObservedTurn) -> str | None:
            assert turn.outcome is None
            return "Closed on Sundays." if turn.messages[0].text == "work" else None

        agent = ScriptedAgent()
        async with (
            open_harness(tmp_path, agent=agent, on_turn=look) as harness,
            harness.store.events.listen(kinds=[EventKind.TURN_ENDED]) as listener,
        ):
            for text in ("work", "play"):
                await harness.platform.says("ann", text)
                await harness.wait_until_idle()
            assert harness.platform.shown("ann") == ["Closed on Sundays.", "you said: play"]
            assert [event.facts["outcome"] for event in take_events(listener)] == ["refused", "turned"]
        assert [turn.text for turn in agent.turns] == ["play"]

    @pytest.mark.parametrize(("closed", "shown"), [(False, "hello"), (True, REFUSED)])
    async def test_an_observer_that_fails_is_open_or_closed(self, tmp_path, caplog, closed, shown):
        guard = Observer(breaks, fails_closed=closed)
        async with open_harness(tmp_path, agent=echo, on_turn=guard) as harness:
            await harness.platform.says("ann", "hello")
            await harness.wait_until_idle()
            assert harness.platform.shown("ann") == [shown]
        assert problems(caplog) == [("on_turn", "ConnectionError: the filter is away")]

    async def test_its_end_is_told_with_what_became_of_it(self, tmp_path: Path):
        told: list[ObservedTurn] = []

        async def note(turn: ObservedTurn) -> None:
            told.append(turn)

        agent = ScriptedAgent("one", [fails(ValueError("no"))])
        async with open_harness(tmp_path, agent=agent, after_turn=note) as harness:
            for text in ("a", "b"):
                await harness.platform.says("ann", text)
                await harness.wait_until_idle()
        assert [(turn.seq, turn.attempt, turn.outcome) for turn in told] == [(1, 1, "turned"), (2, 1, "dead")]
        assert [turn.messages[0].text for turn in told] == ["a", "b"]
        assert {turn.entry.session_key for turn in told} == {harness.key("ann")}

    async def test_who_hears_of_the_end_holds_up_no_turn(self, tmp_path: Path, caplog):
        async with open_harness(tmp_path, agent=echo, after_turn=hang) as harness:
            for text in ("a", "b"):
                await harness.platform.says("ann", text)
                await harness.wait_until_idle()
            assert harness.platform.shown("ann") == ["a", "b"]
            await harness.clock.advance(seconds=5)
        assert problems(caplog) == [("after_turn", "took longer than 5 s")] * 2

    async def test_what_is_being_told_is_told_before_the_gateway_ends(self, tmp_path: Path):
        gate, told = Gate(), list[str | None]()

        async def note(turn: ObservedTurn) -> None:
            await gate.passage()
            told.append(turn.outcome)

        async with open_harness(tmp_path, agent=echo, after_turn=note) as harness:
            await harness.platform.says("ann", "a")
            await gate.reached()
            asyncio.get_running_loop().call_later(0.01, gate.open)
        assert told == ["turned"]

    async def test_no_more_are_told_of_at_once_than_there_is_room_for(self, tmp_path, caplog):
        caplog.set_level(logging.WARNING)
        gate, told = Gate(), list[int]()

        async def note(turn: ObservedTurn) -> None:
            await gate.passage()
            told.append(turn.seq)

        config = replace(QUICK, gateway=replace(QUICK.gateway, max_turns=200))
        async with open_harness(tmp_path, config, agent=echo, after_turn=note) as harness:
            for number in range(AT_ONCE + 2):
                await harness.platform.says(f"p{number}", "hello")
            await wait_until(lambda: len(harness.platform.shown()) == AT_ONCE + 2)
            await harness.wait_until_idle()
            gate.open()
        assert len(told) == AT_ONCE
        assert len(problems(caplog)) == 2

    async def test_a_turn_that_is_put_off_is_told_as_such(self, tmp_path: Path):
        told: list[str | None] = []

        async def note(turn: ObservedTurn) -> None:
            told.append(turn.outcome)

        gate = Gate()
        agent = ScriptedAgent([waits_at(gate), answers("late")])
        async with open_harness(tmp_path, agent=agent, after_turn=note) as harness:
            await harness.platform.says("ann", "hello")
            await gate.reached()
            await harness.gateway.drain(within=timedelta(0))
        assert told == ["put_off"]
