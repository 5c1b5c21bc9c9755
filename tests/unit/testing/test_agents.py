"""A scripted agent does what a test says, turn by turn, and nothing else."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from gateway_sessions.core.delivery.outbound_messages import Reply
from gateway_sessions.core.usage.usage_events import make_usage
from gateway_sessions.runtime.agents.protocol import Closable, Farewelling, SessionEnding, Steerable, run_turn
from gateway_sessions.runtime.agents.turn_context import control_of
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.agents import (
    Gate,
    ScriptedAgent,
    ScriptedAgents,
    SteerableScriptedAgent,
    answers,
    calls_tool,
    fails,
    hangs,
    says,
    streams,
    takes,
    uses,
    waits_at,
)
from tests.unit.runtime.turn_contexts import (
    RecordedTurn,
    entry_of,
    make_turn_context,
    message_saying,
    wait_until,
)


@pytest.fixture
def noted() -> RecordedTurn:
    return RecordedTurn()


async def play(*steps, noted: RecordedTurn, clock: FakeClock | None = None) -> Reply:
    """One turn of an agent with this script."""
    return await run_turn(ScriptedAgent(steps), make_turn_context(noted=noted, clock=clock))


class TestScripts:
    async def test_each_turn_has_its_own_and_then_it_echoes(self):
        agent = ScriptedAgent("one", Reply("two", reasoning="because"), [answers("three"), answers("never")])
        replies = [await run_turn(agent, make_turn_context(message_saying("hi"))) for _ in range(4)]
        assert [one.text for one in replies] == ["one", "two", "three", "you said: hi"]
        assert replies[1].reasoning == "because"
        assert len(agent.turns) == len(agent.finished) == 4

    async def test_a_script_without_an_answer_is_silence(self, noted):
        assert await play(noted=noted) == Reply(silent=True)

    async def test_a_failing_turn_is_not_finished(self):
        agent = ScriptedAgent([fails(LookupError("model"))], "again")
        with pytest.raises(LookupError, match="model"):
            await run_turn(agent, make_turn_context())
        assert (len(agent.turns), agent.finished) == (1, [])
        assert await run_turn(agent, make_turn_context()) == Reply("again")


class TestSteps:
    async def test_something_is_said_before_the_answer(self, noted):
        assert await play(says("a moment"), answers("done"), noted=noted) == Reply("done")
        assert noted.said == [Reply("a moment")]

    async def test_a_reply_grows(self, noted):
        assert await play(streams("a", "b"), noted=noted) == Reply("ab")
        assert noted.shown == ["a", "ab"]

    async def test_tools_are_called_under_ids_of_their_own(self, noted):
        await play(calls_tool("search", "42", q="x"), calls_tool("send", None), answers("ok"), noted=noted)
        first, result, second = noted.rows
        assert (result.content, result.tool_call_id) == ("42", first.tool_calls[0]["id"])
        assert first.tool_calls[0]["function"] == {"name": "search", "arguments": '{"q":"x"}'}
        assert second.tool_calls[0]["id"] != result.tool_call_id

    async def test_the_use_of_a_model_is_reported(self, noted):
        clock = FakeClock()
        await play(uses(model="m", input_tokens=5), noted=noted, clock=clock)
        assert noted.used == [make_usage("s1:3:7:1", clock.now(), model="m", input_tokens=5)]

    @pytest.mark.parametrize("sub_work", [False, True])
    async def test_it_waits_at_a_gate(self, sub_work):
        gate = Gate()
        agent, turn = ScriptedAgent([waits_at(gate, sub_work=sub_work), answers("on")]), make_turn_context()
        task = asyncio.create_task(run_turn(agent, turn))
        await gate.reached()
        assert bool(control_of(turn).side_work) is sub_work
        gate.open()
        assert await task == Reply("on")
        assert not control_of(turn).side_work

    async def test_it_hangs_until_it_is_stopped(self):
        agent = ScriptedAgent([hangs(), answers("never")])
        task = asyncio.create_task(run_turn(agent, make_turn_context()))
        await wait_until(lambda: agent.turns)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert agent.finished == []

    async def test_it_takes_its_time_on_the_clock_of_the_turn(self, noted):
        clock = FakeClock()
        task = asyncio.create_task(play(takes(60), answers("late"), noted=noted, clock=clock))
        await clock.advance(seconds=59)
        assert not task.done()
        await clock.advance(seconds=1)
        assert await task == Reply("late")


class TestWhatIsDoneWithIt:
    async def test_each_close_is_counted_however_it_ends(self):
        async def fail() -> None:
            raise OSError

        agent = ScriptedAgent(closing=fail)
        assert isinstance(agent, Closable)
        for _ in range(2):
            with pytest.raises(OSError):  # noqa: PT011 -- the one above
                await agent.aclose()
        assert agent.closes == 2

    async def test_the_end_of_its_session_is_noted(self):
        agent, entry = ScriptedAgent(), entry_of()
        facts = {"reason": "idle", "history": [], "idempotency_key": "s:1"}
        ending = SessionEnding(entry=entry, deadline=entry.updated_at, **facts)
        assert isinstance(agent, Farewelling)
        await agent.on_session_ending(ending)
        assert agent.endings == [ending]

    @pytest.mark.parametrize("takes_it", [True, False])
    async def test_one_kind_can_be_steered(self, takes_it):
        agent, message = SteerableScriptedAgent("hi", takes_it=takes_it), message_saying("left")
        assert isinstance(agent, Steerable)
        assert not isinstance(ScriptedAgent(), Steerable)
        assert await agent.steer(message) is takes_it
        assert agent.steered == [message]


class TestFactory:
    async def test_a_lane_plays_on_where_its_last_agent_stopped(self):
        agents = ScriptedAgents("one", "two")
        texts = [(await run_turn(agents(entry_of("a"), []), make_turn_context())).text for _ in range(2)]
        other = await run_turn(agents(entry_of("b"), []), make_turn_context())
        assert (texts, other.text) == (["one", "two"], "one")
        assert [key for key, _ in agents.made] == ["a", "a", "b"]

    async def test_it_knows_which_are_open_and_which_were_closed_twice(self):
        agents = ScriptedAgents(kind=partial(SteerableScriptedAgent, takes_it=False))
        first, second, third = (agents(entry_of(key), []) for key in "abc")
        for agent in (first, second, second):
            await agent.aclose()
        assert (agents.open, agents.closed_twice) == ([third], [second])
        assert isinstance(third, Steerable)
