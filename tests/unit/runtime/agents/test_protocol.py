"""Agents: what can be one, where they come from, and what each turn sees of others."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable
from contextvars import ContextVar
from functools import partial

import pytest

from gateway_sessions.core.delivery.outbound_messages import Reply, TextFormat
from gateway_sessions.errors import CancelledItselfError, FencedError, InvalidInputError, NoTurnError
from gateway_sessions.runtime.agents.protocol import (
    Agent,
    AgentSource,
    Closable,
    Farewelling,
    FunctionAgent,
    SessionEnding,
    Steerable,
    current_turn,
    run_turn,
)
from gateway_sessions.runtime.agents.turn_context import TurnContext
from tests.unit.runtime.turn_contexts import RecordedTurn, entry_of, make_turn_context, message_saying

canary: ContextVar[str] = ContextVar("canary", default="none")


class Echo:
    """An agent as a class."""

    def __init__(self, *made_of: object) -> None:
        self.made_of = made_of

    async def run_turn(self, turn: TurnContext) -> str:
        return f"echo {turn.text}"


async def echo(turn: TurnContext) -> str:
    return f"echo {turn.text}"


async def answer_of(agent, turn: TurnContext | None = None) -> Reply:
    return await run_turn(await built(agent=agent), turn or make_turn_context(message_saying("hi")))


async def built(**source) -> Agent:
    return await AgentSource(**source).make_agent(entry_of(), [])


class CallableAgent:
    async def __call__(self, turn: TurnContext) -> str:
        return f"echo {turn.text}"


async def echo_with(prefix: str, turn: TurnContext) -> str:
    return f"{prefix} {turn.text}"


def wrapped(turn: TurnContext) -> Awaitable[str]:
    return echo(turn)


class TestOneForAll:
    @pytest.mark.parametrize(
        "agent",
        [echo, Echo(), CallableAgent(), partial(echo_with, "echo"), wrapped, Echo().run_turn],
        ids=["function", "object", "callable", "partial", "wrapped", "method"],
    )
    async def test_whatever_answers_a_turn_is_an_agent(self, agent):
        assert await answer_of(agent) == Reply("echo hi")

    async def test_it_is_the_same_for_every_session(self):
        agent = Echo()
        source = AgentSource(agent=agent)
        assert source.shared is agent
        assert await source.make_agent(entry_of(), []) is agent

    @pytest.mark.parametrize(
        ("agent", "shown"), [(Echo, "agent is the class Echo"), ("hello", "agent is a value of str")]
    )
    def test_anything_else_is_refused_by_name(self, agent, shown):
        with pytest.raises(InvalidInputError, match=shown):
            AgentSource(agent=agent)

    @pytest.mark.parametrize("both", [{}, {"agent": echo, "agent_factory": Echo}])
    def test_there_is_one_source_of_agents_and_not_two(self, both):
        with pytest.raises(InvalidInputError, match="agent_factory"):
            AgentSource(**both)


class TestOneForEach:
    async def test_a_factory_is_given_the_entry_and_the_conversation(self):
        entry, history = entry_of(), [{"role": "user", "content": "hi"}]
        agent = await AgentSource(agent_factory=Echo).make_agent(entry, history)
        assert isinstance(agent, Echo)
        assert agent.made_of == (entry, history)

    async def test_a_factory_may_be_async(self):
        async def make(entry, history):
            await asyncio.sleep(0)
            return Echo(entry, history)

        assert isinstance(await built(agent_factory=make), Echo)

    @pytest.mark.parametrize("is_async", [False, True])
    async def test_a_factory_may_make_functions(self, is_async):
        async def make_async(entry, history):
            return echo

        agent = await built(agent_factory=make_async if is_async else lambda entry, history: echo)
        assert isinstance(agent, FunctionAgent)
        assert await run_turn(agent, make_turn_context(message_saying("hi"))) == Reply("echo hi")

    def test_there_is_no_shared_one(self):
        assert AgentSource(agent_factory=Echo).shared is None

    @pytest.mark.parametrize(
        ("made", "shown"),
        [
            (None, "None"),
            (Echo, "the class Echo"),
            ("sk-secret", "a value of str"),
            ({"api_key": "sk-secret"}, "a value of dict"),
        ],
    )
    @pytest.mark.parametrize("is_async", [False, True])
    async def test_a_factory_that_makes_no_agent_is_told_what_it_made(self, made, shown, is_async):
        def make(entry, history):
            return made

        async def make_async(entry, history):
            return made

        with pytest.raises(
            InvalidInputError, match=rf"make(_async)? returned {shown}; an agent is"
        ) as caught:
            await built(agent_factory=make_async if is_async else make)
        assert "sk-secret" not in str(caught.value)

    async def test_a_factory_that_answers_in_place_of_making_an_agent_is_told(self):
        async def make(entry, history):
            return echo(make_turn_context())  # a coroutine that nobody would await

        with pytest.raises(InvalidInputError, match="make returned a value of coroutine"):
            await built(agent_factory=make)

    async def test_a_factory_s_own_failure_is_raised_as_it_is(self):
        def make(entry, history):
            raise LookupError("no model")

        with pytest.raises(LookupError, match="no model"):
            await built(agent_factory=make)


class TestAnswers:
    async def test_a_reply_is_passed_on_as_it_is(self):
        reply = Reply("hi", finish_reason="stop")

        async def agent(turn):
            return reply

        assert await answer_of(agent) is reply

    async def test_none_is_silence(self):
        async def agent(turn):
            return None

        assert await answer_of(agent) == Reply(silent=True)

    async def test_none_after_something_was_shown_makes_that_the_reply(self):
        async def agent(turn):
            stream = turn.stream()
            await stream.write("so ")
            await stream.write("far")

        assert await answer_of(agent) == Reply("so far")

    async def test_what_was_shown_in_markdown_is_a_reply_in_markdown(self):
        async def agent(turn):
            await turn.show("**so**", format=TextFormat.MARKDOWN)

        assert await answer_of(agent) == Reply("**so**", format=TextFormat.MARKDOWN)

    async def test_none_after_something_was_said_keeps_that_and_sends_it_only_once(self):
        async def agent(turn):
            await turn.say("one")
            await turn.say("two")

        noted = RecordedTurn()
        reply = await answer_of(agent, make_turn_context(noted=noted))
        assert reply == Reply("one\n\ntwo", silent=True)
        assert len(noted.said) == 2

    @pytest.mark.parametrize(
        ("answer", "shown"), [(3, "int"), ({"text": "secret"}, "dict"), (b"hi", "bytes"), (["hi"], "list")]
    )
    async def test_any_other_answer_is_refused_by_its_type(self, answer, shown):
        async def agent(turn):
            return answer

        with pytest.raises(InvalidInputError, match=rf"agent.* answered a value of {shown}") as caught:
            await answer_of(agent)
        assert "secret" not in str(caught.value)

    async def test_a_function_that_is_not_async_is_told_so(self):
        def agent(turn):
            return "hi"

        with pytest.raises(
            InvalidInputError, match=r"agent returned a value of str at once: write `async def`"
        ):
            await answer_of(agent)

    async def test_a_method_that_is_not_async_is_told_so(self):
        class Blocking:
            def run_turn(self, turn):
                return "hi"

        with pytest.raises(InvalidInputError, match="Blocking returned a value of str"):
            await answer_of(Blocking())

    async def test_a_failure_is_raised_as_it_is_and_ends_the_turn(self):
        async def agent(turn):
            raise LookupError("model")

        turn = make_turn_context()
        with pytest.raises(LookupError, match="model"):
            await answer_of(agent, turn)
        assert turn.is_over

    async def test_an_agent_that_cancels_itself_has_failed_and_stops_nobody(self):
        async def agent(turn):
            raise asyncio.CancelledError

        with pytest.raises(CancelledItselfError, match="agent's turn"):
            await answer_of(agent)

    async def test_a_task_that_an_agent_leaves_behind_can_add_nothing_to_the_turn(self):
        left_behind: list[asyncio.Task[None]] = []

        async def agent(turn):
            async def later() -> None:
                await asyncio.sleep(0.001)
                await turn.say("I am still here")

            left_behind.append(asyncio.create_task(later()))
            return "done"

        noted = RecordedTurn()
        assert await answer_of(agent, make_turn_context(noted=noted)) == Reply("done")
        with pytest.raises(FencedError):
            await left_behind[0]
        assert noted.said == []


class TestCurrentTurn:
    def test_outside_of_a_turn_there_is_none(self):
        with pytest.raises(NoTurnError, match="no turn runs here"):
            current_turn()

    async def test_whatever_an_agent_calls_knows_its_turn(self):
        async def agent(turn):
            found = [current_turn(), await asyncio.to_thread(current_turn)]
            async with asyncio.TaskGroup() as tasks:
                found.append(await tasks.create_task(tool()))
            return str([one is turn for one in found])

        async def tool() -> TurnContext:
            return current_turn()

        assert await answer_of(agent) == Reply("[True, True, True]")
        with pytest.raises(NoTurnError):
            current_turn()

    async def test_a_hundred_turns_at_once_see_nothing_of_each_other(self):
        order = random.Random(5)
        left_over: list[str] = []

        async def agent(turn: TurnContext) -> str:
            left_over.append(canary.get())
            for step in range(order.randrange(1, 6)):
                canary.set(f"{turn.session_key} {step}")
                for _ in range(order.randrange(4)):
                    await asyncio.sleep(0)
                assert canary.get() == f"{turn.session_key} {step}"
                assert current_turn() is turn
                await turn.say(canary.get())
            return turn.session_key

        async def lane(number: int) -> None:
            canary.set(f"whoever submitted {number}")
            noted, key = RecordedTurn(), f"lane {number}"
            turn = make_turn_context(noted=noted, entry=entry_of(key))
            assert await answer_of(agent, turn) == Reply(key)
            assert {one.text.rpartition(" ")[0] for one in noted.said} == {key}
            assert canary.get() == f"whoever submitted {number}"

        async with asyncio.TaskGroup() as tasks:
            for number in range(100):
                tasks.create_task(lane(number))
        assert left_over == ["none"] * 100
        assert canary.get() == "none"


class TestWhatElseAnAgentCanDo:
    def test_is_seen_by_what_it_has(self):
        class Rich(Echo):
            async def steer(self, message):
                return True

            async def aclose(self):
                """Let go."""

            async def on_session_ending(self, ending):
                """Save."""

        for ability in (Steerable, Closable, Farewelling):
            assert isinstance(Rich(), ability)
            assert not isinstance(Echo(), ability)

    def test_what_is_used_at_the_end_of_a_session_can_be_told(self):
        entry, noted = entry_of(session_id="s7"), []
        facts = {"entry": entry, "reason": "idle", "history": [], "deadline": entry.updated_at}
        ending = SessionEnding(**facts, idempotency_key="s7:1", note_usage=noted.append)
        ending.report_usage(model="small", input_tokens=3)
        assert noted == [{"model": "small", "input_tokens": 3}]
        assert SessionEnding(**facts, idempotency_key="s7:1").report_usage() is None
