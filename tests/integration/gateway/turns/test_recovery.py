"""Whatever ends a gateway: exactly what it had under way goes on after the next start, and once."""

from __future__ import annotations

import asyncio
import itertools
import json
import signal
import subprocess
import sys
import textwrap
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest

from gateway_sessions import (
    EndReason,
    InboundMessage,
    ResetMode,
    SessionResetPolicy,
    SessionSource,
    SessionState,
    SessionStore,
)
from gateway_sessions.config import AgentConfig
from gateway_sessions.core.delivery.message_parts import REPEATED
from gateway_sessions.core.notices.notice_texts import GIVEN_UP, cut_off_notice
from gateway_sessions.core.queue.inbound import Accepted, Disposition, Duplicate
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.core.sessions.recovery import ResumeReason
from gateway_sessions.core.transcript.model_history import INTERRUPTED
from gateway_sessions.runtime.agents.turn_context import TurnContext
from gateway_sessions.runtime.duties.restart_recovery import RestartRecords
from gateway_sessions.storage.transactions.queue.recover import TOO_OLD
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.agents import (
    Gate,
    ScriptedAgent,
    answers,
    calls_tool,
    hangs,
    says,
    takes,
    waits_at,
)
from gateway_sessions.testing.inside import queue_of
from tests.integration.gateway.gateway_harness import QUICK, GatewayHarness, busy_config, quote_message
from tests.integration.gateway.restartable_gateway import AT_ONCE, RestartableGateway, home_after_kill


async def users(harness: GatewayHarness, person: str) -> list[object]:
    return [content for role, content in await harness.transcript(person) if role == "user"]


# Starts


async def test_a_start_after_an_orderly_end_takes_nothing_up(restartable: RestartableGateway):
    async with restartable.run(agent=quote_message) as harness:
        await harness.platform.says("ann", "hello")
        await harness.wait_until_idle()
    agent = ScriptedAgent()
    async with restartable.run(agent=agent) as harness:
        assert harness.store.started.clean
        assert harness.store.started.resumed == ()
        await harness.wait_until_idle()
    assert agent.turns == []
    assert restartable.platform.shown() == ["you said: hello"]


async def test_exactly_the_turns_that_ran_are_taken_up_again(restartable: RestartableGateway):
    async with restartable.run(killed=True, agent=quote_message) as harness:
        for person in ("ann", "bob"):
            await harness.platform.says(person, "hello")
            await harness.wait_until_idle()
    gate = Gate()
    first = ScriptedAgent(*[[waits_at(gate)]] * 2)
    async with restartable.run(killed=True, agent=first) as harness:
        await harness.platform.says("bob", "long work")
        await harness.platform.says("cid", "long work")
        await harness.wait_until_idle()
        await harness.platform.says("cid", "and that", chat=None)
    second = ScriptedAgent()
    async with restartable.run(agent=second) as harness:
        started = harness.store.started
        assert not started.clean
        assert started.resumed == tuple(sorted([harness.key("bob"), harness.key("cid")]))
        await harness.clock.advance(seconds=2)
        await harness.wait_until_idle()
        told = [(turn.source.user_id, turn.text, turn.attempt) for turn in second.turns]
        assert sorted(told) == [("bob", "long work", 2), ("cid", "and that", 1), ("cid", "long work", 2)]
        assert told.index(("cid", "long work", 2)) < told.index(("cid", "and that", 1))
        assert "attempt 2" in (second.turns[0].recovered or "")
        assert await harness.outcomes("ann") == {"turned": 1}
        assert await harness.outcomes("bob") == {"turned": 2}
        assert await harness.outcomes("cid") == {"turned": 2}


async def test_what_was_taken_up_and_answered_is_over(restartable: RestartableGateway):
    async with restartable.run(killed=True, agent=ScriptedAgent([hangs()])) as harness:
        await harness.platform.says("ann", "hello", message_id="m1")
    agent = ScriptedAgent()
    async with restartable.run(killed=True, agent=agent) as harness:
        await harness.wait_until_idle()
        assert len(agent.turns) == 1
    async with restartable.run(agent=agent) as harness:
        assert harness.store.started.resumed == ()
        await harness.platform.says("ann", "hello", message_id="m1")  # the platform delivers it once more
        await harness.wait_until_idle()
        assert len(agent.turns) == 1
        assert await users(harness, "ann") == ["hello"]
        entry = await harness.store.get_session(harness.key("ann"))
        assert entry is not None
        assert entry.state is SessionState.ACTIVE
    assert restartable.platform.shown() == ["you said: hello"]


async def test_new_messages_wait_behind_the_turn_that_is_taken_up_and_other_lanes_do_not(
    restartable: RestartableGateway,
):
    async with restartable.run(killed=True, agent=ScriptedAgent([hangs()])) as harness:
        await harness.platform.says("ann", "one")
    gate = Gate()

    async def agent(turn: TurnContext) -> str:
        if turn.text == "one":
            await gate.passage()
        return turn.text

    async with restartable.run(agent=agent) as harness:
        await gate.reached()
        receipt = await harness.platform.says("ann", "two")
        assert isinstance(receipt, Accepted)
        assert receipt.disposition is Disposition.QUEUED
        await harness.platform.says("bob", "other")
        assert (await harness.platform.wait_for_reply("bob")).text == "other"
        gate.open()
        await harness.wait_until_idle()
        answered = [one.text for one in harness.platform.sent if not one.message.is_notice]
        assert answered == ["other", "one", "two"]
        assert await harness.transcript("ann") == [
            ("user", "one"), ("assistant", "one"), ("user", "two"), ("assistant", "two"),
        ]  # fmt: skip


async def test_what_waited_is_answered_in_order_and_not_taken_for_cut_off(restartable: RestartableGateway):
    async with restartable.run(killed=True, agent=ScriptedAgent([hangs()])) as harness:
        for number in range(5):
            await harness.platform.says("ann", f"{number}")
            await harness.clock.advance(seconds=2)
    agent = ScriptedAgent()
    async with restartable.run(agent=agent) as harness:
        await harness.wait_until_idle()
        assert [(turn.text, turn.attempt) for turn in agent.turns] == [
            ("0", 2), ("1", 1), ("2", 1), ("3", 1), ("4", 1),
        ]  # fmt: skip
        assert await harness.outcomes("ann") == {"turned": 5}


async def test_a_burst_that_nobody_had_begun_to_answer_keeps_its_place_and_its_pause(
    restartable: RestartableGateway,
):
    agent = ScriptedAgent()
    async with restartable.run(killed=True, agent=ScriptedAgent([hangs()])) as harness:
        await harness.platform.says("ann", "one")
        await harness.wait_until_idle()
        await harness.platform.says("ann", "two")
        await harness.platform.says("ann", "three")
    async with restartable.run(agent=agent) as harness:
        await harness.clock.advance(seconds=2)
        await harness.wait_until_idle()
        assert [turn.text for turn in agent.turns] == ["one", "two\nthree"]


# What was done before the end


async def test_a_call_without_a_result_is_shown_as_interrupted_with_unknown_effect(
    restartable: RestartableGateway,
):
    first = ScriptedAgent([calls_tool("pay", result=None, amount=5), hangs()])
    async with restartable.run(killed=True, agent=first) as harness:
        await harness.platform.says("ann", "pay the bill")
    second = ScriptedAgent([calls_tool("look"), answers("paid")])
    async with restartable.run(agent=second) as harness:
        await harness.wait_until_idle()
        (turn,) = second.turns
        assert turn.recovered is not None
        assert "may have had its effect" in turn.recovered
        ((user, call, result),) = second.histories
        assert user["content"] == "pay the bill"
        assert [one["function"]["name"] for one in call["tool_calls"]] == ["pay"]
        assert (result["role"], result["content"]) == ("tool", INTERRUPTED)
        assert result["tool_call_id"] == call["tool_calls"][0]["id"]
        assert await users(harness, "ann") == ["pay the bill"]
        assert [role for role, _ in await harness.transcript("ann")] == [
            "user", "assistant", "tool", "assistant", "tool", "assistant",
        ]  # fmt: skip


async def test_what_was_said_on_the_way_is_not_said_again_by_the_gateway(restartable: RestartableGateway):
    async with restartable.run(killed=True, agent=ScriptedAgent([says("a moment"), hangs()])) as harness:
        await harness.platform.says("ann", "look")
        await harness.wait_until_idle()
        assert restartable.platform.shown() == ["a moment"]
    async with restartable.run(agent=ScriptedAgent("done")) as harness:
        await harness.clock.advance(minutes=1)
        await harness.wait_until_idle()
    assert restartable.platform.shown() == ["a moment", "done"]


# Limits


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("away", [timedelta(minutes=61), timedelta(hours=3)])
async def test_a_turn_cut_off_too_long_ago_waits_to_be_asked_for_and_its_session_goes_on(
    restartable: RestartableGateway, killed: bool, away: timedelta
):
    async with restartable.run(killed=killed, agent=ScriptedAgent("first", [hangs()])) as harness:
        await harness.platform.says("ann", "one")
        await harness.wait_until_idle()
        await harness.platform.says("ann", "two")
        await harness.wait_until_idle()
        old = await harness.store.peek_session_id(harness.key("ann"))
        if not killed:
            assert not await harness.gateway.drain(AT_ONCE)
    restartable.clock.step(away)
    agent = ScriptedAgent("I am here", "and this is two")
    async with restartable.run(agent=agent) as harness:
        await harness.wait_until_idle()
        assert agent.turns == []
        assert queue_of(harness.store).total_waiting == 0
        assert counts(restartable.home) == {}
        notice = cut_off_notice(restartable.clock.now() - away, restartable.clock.now())
        assert restartable.platform.shown() == ["first", notice]
        (dead,) = await harness.store.dead_letters()
        assert (dead.message.text, dead.problem) == ("two", TOO_OLD)
        await harness.platform.says("ann", "still there?")
        await harness.wait_until_idle()
        entry = await harness.store.get_session(harness.key("ann"))
        assert entry is not None
        assert (entry.session_id, entry.state) == (old, SessionState.ACTIVE)
        assert [row["content"] for row in agent.histories[0] if row["role"] == "user"] == [
            "one", "two", "still there?",
        ]  # fmt: skip
        await harness.store.requeue(dead.item_id)
        await harness.wait_until_idle()
        assert agent.turns[-1].text == "two"
        assert await users(harness, "ann") == ["one", "still there?", "two"]
    assert restartable.platform.shown()[-1] == "and this is two"


async def test_people_can_have_a_turn_tried_again_that_was_cut_off_too_long_ago(
    restartable: RestartableGateway,
):
    async with restartable.run(killed=True, agent=ScriptedAgent([hangs()])) as harness:
        await harness.platform.says("ann", "one")
    restartable.clock.step(minutes=70)
    async with restartable.run(agent=ScriptedAgent("tried again")) as harness:
        await harness.wait_until_idle()
        await harness.platform.says("ann", "/retry")
        await harness.wait_until_idle()
        assert await users(harness, "ann") == ["one"]
    notice, *_, answer = restartable.platform.shown()
    assert "1 h 10 min ago" in notice
    assert answer == "tried again"


async def test_a_turn_cut_off_too_long_ago_keeps_nobody_from_an_answer_and_no_policy_from_its_reset(
    restartable: RestartableGateway,
):
    policy = SessionResetPolicy(mode=ResetMode.IDLE, idle_minutes=600)
    restartable.config = replace(QUICK, session_reset=policy)
    async with restartable.run(killed=True, agent=ScriptedAgent([hangs()])) as harness:
        await harness.platform.says("ann", "one")
        await harness.wait_until_idle()
        await harness.platform.says("ann", "two")
        await harness.clock.advance(seconds=2)
        old = await harness.store.peek_session_id(harness.key("ann"))
    restartable.clock.step(hours=2)
    agent = ScriptedAgent()
    async with restartable.run(agent=agent) as harness:
        await harness.wait_until_idle()
        assert [(turn.text, turn.attempt, turn.session_id) for turn in agent.turns] == [("two", 1, old)]
        restartable.clock.step(hours=11)
        await harness.platform.says("ann", "three")
        await harness.wait_until_idle()
        entry = await harness.store.get_session(harness.key("ann"))
        assert entry is not None
        assert entry.previous_session_id == old
        session = await harness.store.db.get_session(str(old))
        assert session is not None
        assert session.end_reason == EndReason.IDLE


async def test_a_gateway_on_some_lanes_puts_nothing_aside_that_is_other_peoples(
    restartable: RestartableGateway,
):
    async with restartable.run(killed=True, agent=ScriptedAgent(*[[hangs()]] * 2)) as harness:
        for person in ("ann", "bob"):
            await harness.platform.says(person, "one")
        await harness.wait_until_idle()
    restartable.clock.step(hours=2)
    async with restartable.run(agent=ScriptedAgent(), lanes=[harness.key("ann")]) as harness:
        await harness.wait_until_idle()
        assert await harness.outcomes("ann") == {"dead": 1}
        assert await harness.outcomes("bob") == {"open": 1}


async def test_a_turn_that_is_cut_off_again_and_again_is_put_aside_and_its_lane_stopped(
    restartable: RestartableGateway,
):
    tried = ScriptedAgent(*[[hangs()]] * 5)
    async with restartable.run(killed=True, agent=tried) as harness:
        await harness.platform.says("ann", "deadly")
        await harness.wait_until_idle()
        await harness.platform.says("ann", "and then?")
        await harness.clock.advance(seconds=1)
    for _ in range(2):
        restartable.clock.step(minutes=10)  # no loop of crashes: each life is long
        async with restartable.run(killed=True, agent=tried) as harness:
            await harness.wait_until_idle()
    restartable.clock.step(minutes=10)
    agent = ScriptedAgent()
    async with restartable.run(agent=agent) as harness:
        key = harness.key("ann")
        assert harness.store.started.suspended == (key,)
        (given_up,) = harness.store.started.given_up
        assert [message.text for message in given_up.buried] == ["deadly"]
        (dead,) = await harness.store.dead_letters()
        assert (dead.message.text, dead.problem) == ("deadly", "its turn was cut off 3 times")
        await harness.wait_until_idle()
        # What waited behind it is answered, in a session without the deadly message.
        assert [(turn.text, turn.attempt) for turn in agent.turns] == [("and then?", 1)]
        assert [row["content"] for row in agent.histories[0]] == ["and then?"]
        assert await harness.outcomes("ann") == {"dead": 1, "turned": 1}
        # Nothing is lost: somebody may try it again.
        await harness.store.requeue(dead.item_id)
        await harness.wait_until_idle()
        assert await harness.outcomes("ann") == {"turned": 2}
    assert [turn.attempt for turn in tried.turns] == [1, 2, 3]
    shown = restartable.platform.shown()
    assert shown.count(GIVEN_UP) == 1
    assert "you said: deadly" in shown


async def test_what_waited_behind_a_turn_that_is_put_aside_does_not_wait_for_a_clock_that_was_set_back(
    restartable: RestartableGateway,
):
    restartable.config = replace(QUICK, agent=replace(QUICK.agent, max_restart_attempts=1))
    async with restartable.run(killed=True, agent=ScriptedAgent([hangs()])) as harness:
        await harness.platform.says("ann", "deadly")
        await harness.wait_until_idle()
        await harness.platform.says("ann", "and then?")
        await harness.clock.advance(seconds=1)
    restartable.clock.step(hours=-1)
    agent = ScriptedAgent()
    async with restartable.run(agent=agent) as harness:
        await harness.wait_until_idle()
        assert [turn.text for turn in agent.turns] == ["and then?"]


async def test_a_lane_whose_turn_was_put_aside_stays_behind_those_that_waited_for_it(tmp_path: Path):
    ann, bob = (SessionSource(platform="telegram", chat_id=name, user_id=name) for name in ("ann", "bob"))
    config, clock = replace(QUICK, agent=replace(QUICK.agent, max_restart_attempts=1)), FakeClock()
    async with SessionStore.open(tmp_path, config, clock=clock) as store:
        for text in ("deadly", "second", "third"):
            await store.enqueue(InboundMessage(source=ann, text=text), solo=True)
        assert await store.claim() is not None
        clock.step(minutes=1)
        await store.enqueue(InboundMessage(source=bob, text="hello"))
    (tmp_path / ".clean_shutdown").unlink()
    clock.step(minutes=1)
    async with SessionStore.open(tmp_path, config, clock=clock) as store:
        assert await store.cancel_queued(store.key_for(ann), 3) == 1
        begun = [await store.claim(), await store.claim()]
    assert [one.text for turn in begun if turn for one in turn.messages] == ["hello", "second"]


@asynccontextmanager
async def overtaken(home: Path) -> AsyncGenerator[SessionStore]:
    """A store in which a turn about "one" was cut off, and in which "two" was moved before it since."""
    ann, clock = SessionSource(platform="telegram", chat_id="ann", user_id="ann"), FakeClock()
    async with SessionStore.open(home, QUICK, clock=clock) as store:
        await store.enqueue(InboundMessage(source=ann, text="one"), solo=True)
        turn = await store.claim()
        assert turn is not None
        await turn.append({"role": "assistant", "content": "let me see"})
        await store.enqueue(InboundMessage(source=ann, text="two"), solo=True)
    (home / ".clean_shutdown").unlink()
    async with SessionStore.open(home, QUICK, clock=clock) as store:
        await store.move_queued(store.key_for(ann), 2, 1)
        yield store


async def test_what_a_cut_off_turn_has_written_down_is_not_said_twice_when_another_one_takes_it(
    tmp_path: Path,
):
    async with overtaken(tmp_path) as store:
        turn = await store.claim()
        assert turn is not None
        assert await turn.steer(1)
        said = [row["content"] for row in await store.load_transcript(turn.entry.session_id)]
        await turn.commit()
    assert " ".join(str(text) for text in said).count("one") == 1


async def test_what_is_taken_back_takes_no_other_turn_along_that_came_in_between(tmp_path: Path):
    async with overtaken(tmp_path) as store:
        first = await store.claim()
        assert first is not None
        await first.commit([{"role": "assistant", "content": "yes"}])
        second = await store.claim()
        assert second is not None
        assert (second.seqs, second.recorded) == ((1,), True)
        await second.append({"role": "assistant", "content": "so"})
        await second.roll_back("ann")
        said = [row.text for row in await store.db.get_messages(first.entry.session_id)]
    assert said == ["let me see", "two", "yes"]


async def test_how_often_a_turn_was_tried_is_known_until_that_turn_leaves_the_queue(
    restartable: RestartableGateway,
):
    tried = ScriptedAgent(*[[hangs()]] * 3)
    for name in ("first", "second", "third"):
        async with restartable.run(killed=True, agent=tried) as harness:
            if name == "first":
                await harness.platform.says("ann", "deadly")
                await harness.wait_until_idle()
            await harness.platform.says("ann", name)
            await harness.clock.advance(seconds=1)
        restartable.config = replace(QUICK, gateway=replace(QUICK.gateway, crash_loop_starts=2))
    agent = ScriptedAgent()
    async with restartable.run(agent=agent) as harness:
        await harness.store.cancel_queued(harness.key("ann"), 3)
        await harness.clock.advance(minutes=2)
        assert [(turn.text, turn.attempt) for turn in agent.turns] == [
            ("deadly", 3), ("first", 1), ("third", 1),
        ]  # fmt: skip


async def test_what_comes_after_a_cut_off_turn_that_somebody_took_out_is_new(restartable: RestartableGateway):
    async with restartable.run(killed=True, agent=ScriptedAgent([hangs()])) as harness:
        await harness.platform.says("ann", "deadly")
        await harness.wait_until_idle()
        await harness.platform.says("ann", "other")
        await harness.clock.advance(seconds=1)
    restartable.config = replace(QUICK, gateway=replace(QUICK.gateway, crash_loop_starts=1))
    agent = ScriptedAgent()
    async with restartable.run(agent=agent) as harness:
        await harness.store.cancel_queued(harness.key("ann"), 1)
        await harness.wait_until_idle()
        assert [(turn.text, turn.attempt) for turn in agent.turns] == [("other", 1)]
        assert agent.turns[0].recovered is None


@pytest.mark.parametrize("mode", [BusyMode.QUEUE, BusyMode.COLLECT])
async def test_a_loop_of_crashes_holds_the_cut_off_turns_and_nothing_else(
    restartable: RestartableGateway, mode: BusyMode
):
    restartable.config = replace(busy_config(mode), agent=AgentConfig(max_restart_attempts=10))
    tried = ScriptedAgent(*[[hangs()]] * 9)
    async with restartable.run(killed=True, agent=tried) as harness:
        await harness.platform.says("ann", "deadly")
        await harness.clock.advance(seconds=1)
    for _ in range(2):
        async with restartable.run(killed=True, agent=tried) as harness:
            assert harness.store.started.held_until is None
            await harness.wait_until_idle()
    agent = ScriptedAgent()
    async with restartable.run(agent=agent) as harness:
        held_until = harness.store.started.held_until
        assert held_until == harness.clock.now() + timedelta(minutes=1)
        await harness.platform.says("bob", "hello")
        receipt = await harness.platform.says("ann", "anybody there?")
        assert isinstance(receipt, Accepted)
        assert receipt.disposition is Disposition.QUEUED
        await harness.clock.advance(seconds=59)
        assert [turn.text for turn in agent.turns] == ["hello"]
        await harness.clock.advance(seconds=1)
        await harness.wait_until_idle()
        assert [turn.text for turn in agent.turns][1:] == ["deadly", "anybody there?"]
        assert agent.turns[1].attempt == 4


# Ends


async def test_a_drain_lets_running_turns_end_and_begins_none(restartable: RestartableGateway):
    agent = ScriptedAgent([takes(20), answers("in time")])
    async with restartable.run(agent=agent) as harness:
        await harness.platform.says("ann", "one")
        await harness.wait_until_idle()
        await harness.platform.says("ann", "two")
        outcome: list[bool] = []

        async def drain() -> None:
            outcome.append(await harness.gateway.drain(timedelta(seconds=30)))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(drain)
            await harness.clock.advance(seconds=5)
            late = await harness.platform.says("bob", "late")
            assert isinstance(late, Accepted)
            await harness.clock.advance(seconds=15)
        assert outcome == [True]
        assert [turn.text for turn in agent.turns] == ["one"]
        shown = [one.text for one in harness.platform.sent if not one.message.is_notice]
        assert shown == ["in time"]
        assert await harness.store.queue_depth(harness.key("ann")) == 1
    async with restartable.run(agent=agent) as harness:
        assert harness.store.started.clean
        assert harness.store.started.resumed == ()
        await harness.wait_until_idle()
        assert sorted((turn.text, turn.attempt) for turn in agent.turns[1:]) == [("late", 1), ("two", 1)]


async def test_a_drain_that_takes_too_long_puts_turns_off_with_what_they_have_done(
    restartable: RestartableGateway,
):
    first = ScriptedAgent([calls_tool("search", "found"), takes(3600)])
    async with restartable.run(agent=first) as harness:
        await harness.platform.says("ann", "one")
        await harness.wait_until_idle()
        before = harness.clock.now()
        ended: list[bool] = []

        async def drain() -> None:
            ended.append(await harness.gateway.drain())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(drain)
            await harness.clock.advance(seconds=29)
            assert harness.gateway.running_turn(harness.key("ann")) is not None
            await harness.clock.advance(seconds=1)
        assert ended == [False]
        assert harness.clock.now() - before == timedelta(seconds=30)
        entry = await harness.store.get_session(harness.key("ann"))
        assert entry is not None
        assert (entry.state, entry.state_reason) == (
            SessionState.RESUME_PENDING, ResumeReason.SHUTDOWN_TIMEOUT,
        )  # fmt: skip
        assert harness.platform.shown() == []
    assert (restartable.home / ".clean_shutdown").exists()
    second = ScriptedAgent("done")
    async with restartable.run(agent=second) as harness:
        assert harness.store.started.clean
        await harness.wait_until_idle()
        (history,) = second.histories
        assert [row["role"] for row in history] == ["user", "assistant", "tool"]
        assert history[-1]["content"] == "found"
        assert await users(harness, "ann") == ["one"]
        entry = await harness.store.get_session(harness.key("ann"))
        assert entry is not None
        assert entry.state is SessionState.ACTIVE
    assert restartable.platform.shown() == ["done"]


def counts(home: Path) -> object:
    """What an operator reads of turns that were cut off."""
    path = home / "restart_counts.json"
    return json.loads(path.read_bytes()) if path.exists() else {}


@pytest.mark.parametrize("ends", [["drain"], ["drain"] * 4, ["kill", "drain", "drain"], ["drain", "kill"]])
async def test_each_drain_that_runs_out_of_time_counts_as_a_try_like_a_kill(
    restartable: RestartableGateway, ends: list[str]
):
    restartable.config = replace(QUICK, agent=AgentConfig(max_restart_attempts=len(ends)))
    tried = ScriptedAgent(*[[hangs()]] * len(ends))
    for number, end in enumerate(ends, 1):
        restartable.clock.step(minutes=10)  # no loop of crashes: each life is long
        async with restartable.run(killed=end == "kill", agent=tried) as harness:
            key = harness.key("ann")
            if number == 1:
                await harness.platform.says("ann", "stuck")
                await harness.wait_until_idle()
                await harness.platform.says("ann", "and then?")
                await harness.clock.advance(seconds=1)
            await harness.wait_until_idle()
            if end == "drain":
                assert not await harness.gateway.drain(AT_ONCE)
                assert counts(restartable.home) == {key: number}
    agent = ScriptedAgent()
    async with restartable.run(agent=agent) as harness:
        await harness.wait_until_idle()
        assert [(turn.text, turn.attempt) for turn in agent.turns] == [("and then?", 1)]
        assert [row["content"] for row in agent.histories[0]] == ["and then?"]
        (dead,) = await harness.store.dead_letters()
        assert dead.problem == f"its turn was cut off {len(ends)} times"
        assert counts(restartable.home) == {}
    assert [turn.attempt for turn in tried.turns] == [*range(1, len(ends) + 1)]
    assert restartable.platform.shown().count(GIVEN_UP) == 1


async def test_a_turn_that_its_last_drain_gives_up_is_told_and_its_session_suspended_at_once(
    restartable: RestartableGateway,
):
    restartable.config = replace(QUICK, agent=AgentConfig(max_restart_attempts=1))
    async with restartable.run(agent=ScriptedAgent([says("a moment"), hangs()])) as harness:
        await harness.platform.says("ann", "stuck", message_id="m1")
        await harness.wait_until_idle()
        assert not await harness.gateway.drain(AT_ONCE)
        entry = await harness.store.get_session(harness.key("ann"))
        assert entry is not None
        assert (entry.state, entry.state_reason) == (SessionState.SUSPENDED, "crash_loop")
        assert await harness.outcomes("ann") == {"dead": 1}
    async with restartable.run(agent=ScriptedAgent()) as harness:
        await harness.wait_until_idle()
        assert harness.platform.shown() == ["a moment", GIVEN_UP]
        receipt = await harness.platform.says("ann", "stuck", message_id="m1")  # delivered once more
        assert isinstance(receipt, Duplicate)


async def test_a_turn_that_had_too_little_time_and_then_answers_is_counted_no_more(
    restartable: RestartableGateway,
):
    async with restartable.run(agent=ScriptedAgent([hangs()])) as harness:
        await harness.platform.says("ann", "one")
        await harness.wait_until_idle()
        await harness.gateway.drain(AT_ONCE)
        assert counts(restartable.home) == {harness.key("ann"): 1}
    async with restartable.run(agent=ScriptedAgent()) as harness:
        await harness.wait_until_idle()
        assert counts(restartable.home) == {}
    assert restartable.platform.shown() == ["you said: one"]


async def test_a_gateway_is_busy_with_a_turn_that_is_about_to_run(
    restartable: RestartableGateway, monkeypatch: pytest.MonkeyPatch
):
    async with restartable.run(agent=ScriptedAgent([hangs()])) as harness:
        await harness.platform.says("ann", "one")
        await harness.wait_until_idle()
        await harness.gateway.drain(AT_ONCE)
    gate, refresh, calls = Gate(), RestartRecords.refresh, itertools.count()

    async def slowly(records: RestartRecords) -> None:
        if next(calls):  # the first one is that of the start
            await gate.passage()
        await refresh(records)

    monkeypatch.setattr(RestartRecords, "refresh", slowly)
    async with restartable.run(agent=ScriptedAgent("done")) as harness:
        await gate.reached()
        assert queue_of(harness.store).total_waiting == 0
        assert harness.gateway.running_turn(harness.key("ann")) is None
        assert harness.gateway.busy
        gate.open()
        await harness.wait_until_idle()
        assert harness.platform.shown() == ["done"]


async def test_a_turn_that_answers_within_the_drain_is_no_failed_try(restartable: RestartableGateway):
    restartable.config = replace(QUICK, agent=AgentConfig(max_restart_attempts=1))
    async with restartable.run(agent=ScriptedAgent([takes(5), answers("in time")])) as harness:
        await harness.platform.says("ann", "one")
        await harness.wait_until_idle()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(harness.gateway.drain)
            await harness.clock.advance(seconds=6)
        assert counts(restartable.home) == {}
        assert await harness.outcomes("ann") == {"turned": 1}


async def test_a_turn_that_is_cut_off_for_another_process_is_marked_for_that_reason(
    restartable: RestartableGateway,
):
    async with restartable.run(agent=ScriptedAgent([hangs()])) as harness:
        await harness.platform.says("ann", "one")
        await harness.wait_until_idle()
        await harness.store.control.drain()  # as whoever waits for the store asks
        await harness.gateway.drain(AT_ONCE)
        entry = await harness.store.get_session(harness.key("ann"))
        assert entry is not None
        assert (entry.state, entry.state_reason) == (
            SessionState.RESUME_PENDING, ResumeReason.RESTART_TIMEOUT,
        )  # fmt: skip


async def test_a_reply_that_was_on_its_way_at_a_kill_is_sent_again_and_says_so(
    restartable: RestartableGateway,
):
    async with restartable.run(killed=True, agent=quote_message) as harness:
        with harness.platform.late_ack():
            await harness.platform.says("ann", "one")
            await harness.wait_until_idle()
            left = home_after_kill(restartable.home)
    restartable.home = left
    async with restartable.run(agent=quote_message) as harness:
        assert harness.store.started.doubted == 1
        await harness.wait_until_idle()
    first, second = restartable.platform.shown()
    assert first == "you said: one"
    assert second == f"{REPEATED}\nyou said: one"


async def test_a_reply_that_is_on_its_way_as_a_drain_runs_out_of_time_is_not_sent_again(
    restartable: RestartableGateway,
):
    """Nothing was stopped, so nobody waited for the platform: the next start said it once more."""
    async with asyncio.TaskGroup() as tasks, restartable.run(agent=quote_message) as harness:
        with harness.platform.late_ack():
            await harness.platform.says("ann", "one")
            await harness.wait_until_idle()
            draining = tasks.create_task(harness.gateway.drain(AT_ONCE))
            await harness.wait_until_idle()
        assert not await draining
    async with restartable.run(agent=quote_message) as harness:
        assert harness.store.started.doubted == 0
        await harness.wait_until_idle()
    assert restartable.platform.shown() == ["you said: one"]


async def test_a_reply_that_had_to_wait_at_a_kill_is_sent_once_and_without_a_mark(
    restartable: RestartableGateway,
):
    with restartable.platform.outage():
        async with restartable.run(killed=True, agent=quote_message) as harness:
            await harness.platform.says("ann", "one")
    async with restartable.run(agent=quote_message) as harness:
        await harness.clock.advance(minutes=1)
        await harness.wait_until_idle()
        assert harness.store.started.doubted == 0
    assert restartable.platform.shown() == ["you said: one"]


# A real process


BOT = """
    import asyncio, json, signal, sys
    from datetime import timedelta
    from gateway_sessions import SessionStore
    from gateway_sessions.config import Config, GatewayConfig
    from gateway_sessions.runtime.gateway.gateway import Gateway
    from gateway_sessions.testing.fake_platform import FakePlatform

    started = asyncio.Event()

    async def agent(turn):
        if turn.text == "long":
            await turn.append({"role": "assistant", "content": "half"})
            started.set()
            await asyncio.Event().wait()
        await asyncio.sleep(0.1)
        return turn.text

    async def ready():
        while signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            await asyncio.sleep(0.01)
        print("ready", flush=True)

    async def main():
        platform = FakePlatform(run="")
        config = Config(gateway=GatewayConfig(drain_timeout=timedelta(seconds=0.3)))
        async with SessionStore.open(sys.argv[1], config) as store:
            async with Gateway(store, agent=agent, adapters=[platform]) as gateway:
                await platform.says("ann", "long", message_id="m1")
                await started.wait()
                await platform.says("bob", "short", message_id="m2")
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(ready())
                    in_time = await gateway.run()
            print(json.dumps([in_time, platform.shown()]), flush=True)

    asyncio.run(main())
"""


AT_TERMINAL = """\
import os, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Begins a program that hears when its terminal is gone, also where the tests run without one."""


@pytest.mark.parametrize(
    ("before", "sent"),
    [
        ([], [signal.SIGTERM]),
        ([sys.executable, "-c", AT_TERMINAL], [signal.SIGHUP]),
        (["nohup"], [signal.SIGHUP, signal.SIGTERM]),
    ],
    ids=["asked to", "its terminal is gone", "it outlives its terminal"],
)
async def test_a_signal_ends_a_process_in_order(
    tmp_path: Path, before: list[str], sent: list[signal.Signals]
):
    home = tmp_path / "home"
    command = [*before, sys.executable, "-c", textwrap.dedent(BOT), str(home)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        for number in sent:
            assert process.poll() is None
            process.send_signal(number)
            await asyncio.sleep(0.1 * (len(sent) - 1))
        said, _ = process.communicate(timeout=15)
    assert process.returncode == 0
    assert json.loads(said) == [False, ["short"]]
    assert json.loads((home / ".clean_shutdown").read_bytes())["epoch"] == 1
    restartable = RestartableGateway(tmp_path)
    restartable.clock = FakeClock(datetime.now(UTC))
    agent = ScriptedAgent()
    async with restartable.run(agent=agent) as harness:
        assert harness.store.started.clean
        await harness.wait_until_idle()
        (history,) = agent.histories
        assert [row["content"] for row in history] == ["long", "half"]
        assert await harness.outcomes("ann") == await harness.outcomes("bob") == {"turned": 1}
