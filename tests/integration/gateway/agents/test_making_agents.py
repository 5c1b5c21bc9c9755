"""Whoever makes an agent is stopped like the agent itself, and its failures are those of the turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextvars import ContextVar
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import anyio
import pytest

from gateway_sessions._process.failpoints import arm_failpoints
from gateway_sessions.config import AgentConfig
from gateway_sessions.core.notices.notice_texts import FAILED, NO_SIGN_OF_LIFE, TOOK_TOO_LONG
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.runtime.agents.protocol import AgentFunction
from gateway_sessions.runtime.agents.turn_context import TurnContext
from gateway_sessions.runtime.gateway.running_turn import StopReason
from gateway_sessions.runtime.user_code import GRACE, PATIENCE
from gateway_sessions.testing.agents import ScriptedAgent, ScriptedAgents
from tests.integration.gateway.gateway_harness import QUICK, busy_config, open_harness

LIMITED = replace(QUICK, agent=AgentConfig(gateway_timeout=timedelta(seconds=5)))
WATCHED = replace(QUICK, gateway=replace(QUICK.gateway, inactivity_timeout=timedelta(seconds=5)))


async def awaits_what_was_cancelled() -> None:
    """What clients of tool servers do when the server has gone."""
    gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    gone.cancel()
    await gone


class Factory:
    """Makes an agent as soon as it may, and notes what became of it."""

    def __init__(self) -> None:
        self.free = asyncio.Event()
        self.calls = self.cancelled = 0
        self.made: list[ScriptedAgent] = []

    async def __call__(self, *_: object) -> ScriptedAgent:
        self.calls += 1
        try:
            await self.free.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        self.made.append(ScriptedAgent("done"))
        return self.made[-1]


class Stubborn(Factory):
    """Swallows each cancellation until it is released."""

    async def __call__(self, *_: object) -> ScriptedAgent:
        self.calls += 1
        while not self.free.is_set():
            try:
                await self.free.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
        self.made.append(ScriptedAgent("done"))
        return self.made[-1]


@pytest.fixture
async def stubborn() -> AsyncGenerator[Stubborn]:
    factory = Stubborn()
    yield factory
    factory.free.set()  # or it would outlive a test that failed


class TestFailures:
    async def test_a_factory_that_awaits_what_was_cancelled_is_not_called_again_and_again(
        self, tmp_path: Path
    ):
        calls = 0

        async def factory(*_: object) -> ScriptedAgent:
            nonlocal calls
            calls += 1
            await awaits_what_was_cancelled()
            raise AssertionError

        with anyio.fail_after(15):
            async with open_harness(tmp_path, agent_factory=factory) as harness:
                await harness.platform.says("ann", "one")
                await harness.wait_until_idle()
                assert (calls, harness.platform.shown()) == (1, [FAILED])
                assert [one.problem for one in await harness.store.dead_letters()] == [
                    "CancelledItselfError: the making of an agent cancelled itself"
                ]

    async def test_settings_out_of_what_was_cancelled_fail_their_turn(self, tmp_path: Path):
        def settings(_: object) -> dict[str, object]:
            gone: asyncio.Future[dict[str, object]] = asyncio.get_running_loop().create_future()
            gone.cancel()
            return gone.result()

        with anyio.fail_after(15):
            async with open_harness(
                tmp_path, agent_factory=lambda *_: ScriptedAgent(), agent_settings=settings
            ) as harness:
                await harness.platform.says("ann", "one")
                await harness.wait_until_idle()
                assert harness.platform.shown() == [FAILED]
                assert await harness.outcomes("ann") == {"dead": 1}

    async def test_a_turn_of_ones_own_that_awaits_what_was_cancelled_is_not_given_out_again(
        self, tmp_path: Path
    ):
        async with open_harness(tmp_path, agent=ScriptedAgent(), lanes=()) as harness:
            await harness.platform.says("ann", "one")
            turn = await harness.store.claim()
            assert turn is not None
            with pytest.raises(asyncio.CancelledError):
                async with turn:
                    await awaits_what_was_cancelled()
            assert await harness.store.claim() is None
            assert await harness.outcomes("ann") == {"dead": 1}

    async def test_a_factory_sees_no_context_variable_of_its_caller(self, tmp_path: Path):
        seen: ContextVar[str] = ContextVar("seen")
        found: list[str | None] = []

        async def agent(_: TurnContext) -> str:
            found.append(seen.get(None))
            return "done"

        def factory(*_: object) -> AgentFunction:
            found.append(seen.get(None))
            seen.set("the factory's")
            return agent

        seen.set("the caller's")
        async with open_harness(tmp_path, agent_factory=factory) as harness:
            await harness.platform.says("ann", "one")
            await harness.wait_until_idle()
        assert found == [None, None]


class TestStopping:
    async def test_one_that_takes_too_long_is_stopped_and_the_person_is_told(self, tmp_path: Path):
        factory = Factory()
        async with open_harness(tmp_path, LIMITED, agent_factory=factory) as harness:
            await harness.platform.says("ann", "one")
            await harness.wait_until_idle()
            await harness.clock.advance(seconds=5)
            await harness.wait_until_idle()
            assert (factory.cancelled, harness.platform.shown()) == (1, [TOOK_TOO_LONG])
            assert await harness.outcomes("ann") == {"dead": 1}

    async def test_the_time_for_an_agent_is_part_of_the_time_for_its_turn(self, tmp_path: Path):
        factory, deadlines = Factory(), list[object]()

        async def answers(turn: TurnContext) -> str:
            deadlines.append(turn.deadline)
            await turn.clock.sleep(10)
            return "late"

        async def made(*given: object) -> object:
            await factory(*given)
            return answers

        async with open_harness(tmp_path, LIMITED, agent_factory=made) as harness:
            began = harness.clock.now()
            await harness.platform.says("ann", "one")
            await harness.clock.advance(seconds=3)
            factory.free.set()
            await harness.wait_until_idle()
            await harness.clock.advance(seconds=2)
            await harness.wait_until_idle()
            assert deadlines == [began + timedelta(seconds=5)]
            assert harness.platform.shown() == [TOOK_TOO_LONG]

    async def test_one_that_shows_no_sign_of_life_is_stopped_and_the_person_is_told(self, tmp_path: Path):
        factory = Factory()
        async with open_harness(tmp_path, WATCHED, agent_factory=factory) as harness:
            await harness.platform.says("ann", "one")
            await harness.clock.advance(seconds=5)
            await harness.wait_until_idle()
            assert (factory.cancelled, harness.platform.shown()) == (1, [NO_SIGN_OF_LIFE])

    async def test_an_agent_that_was_made_is_a_sign_of_life(self, tmp_path: Path):
        factory = Factory()

        async def answers(turn: TurnContext) -> str:
            await turn.clock.sleep(4)
            return "done"

        async def made(*given: object) -> object:
            await factory(*given)
            return answers

        async with open_harness(tmp_path, WATCHED, agent_factory=made) as harness:
            await harness.platform.says("ann", "one")
            await harness.clock.advance(seconds=4)
            factory.free.set()
            await harness.wait_until_idle()
            await harness.clock.advance(seconds=4)
            await harness.wait_until_idle()
            assert harness.platform.shown() == ["done"]

    async def test_another_message_interrupts_it(self, tmp_path: Path):
        factory = Factory()
        async with open_harness(tmp_path, busy_config(BusyMode.INTERRUPT), agent_factory=factory) as harness:
            await harness.platform.says("ann", "one")
            await harness.wait_until_idle()
            await harness.platform.says("ann", "two")
            factory.free.set()
            await harness.clock.advance(seconds=1)
            await harness.wait_until_idle()
            assert factory.cancelled == 1
            assert await harness.outcomes("ann") == {"interrupted": 1, "turned": 1}
            assert "done" in harness.platform.shown()

    async def test_stop_ends_it_at_once(self, tmp_path: Path):
        factory = Factory()
        async with open_harness(tmp_path, agent_factory=factory) as harness:
            await harness.platform.says("ann", "one")
            await harness.wait_until_idle()
            await harness.platform.says("ann", "/stop")
            await harness.wait_until_idle()
            assert factory.cancelled == 1
            assert harness.gateway.running_turn(harness.key("ann")) is None
            assert harness.platform.shown() == ["Stopped."]

    async def test_people_see_that_something_is_done_for_them(self, tmp_path: Path):
        factory = Factory()
        async with open_harness(tmp_path, agent_factory=factory) as harness:
            await harness.platform.says("ann", "one")
            await harness.wait_until_idle()
            assert harness.platform.typing_shown == [], "a quick answer needs none"
            await harness.clock.advance(seconds=0.3)
            await harness.wait_until_idle()
            assert len(harness.platform.typing_shown) == 1
            await harness.clock.advance(seconds=4)
            await harness.wait_until_idle()
            assert len(harness.platform.typing_shown) == 2
            factory.free.set()
            await harness.wait_until_idle()

    async def test_one_that_does_not_let_itself_be_stopped_holds_nobody_up_and_its_agent_is_closed(
        self, tmp_path: Path, stubborn: Stubborn
    ):
        async with open_harness(tmp_path, LIMITED, agent_factory=stubborn) as harness:
            await harness.platform.says("ann", "one")
            await harness.wait_until_idle()
            await harness.clock.advance(timedelta(seconds=5) + GRACE + PATIENCE)
            await harness.wait_until_idle()
            assert harness.platform.shown() == [TOOK_TOO_LONG]
            stubborn.free.set()
            await harness.platform.says("ann", "two")
            await harness.wait_until_idle()
            assert harness.platform.shown()[1:] == ["done"]
            late, used = stubborn.made
            assert (late.closes, used.closes) == (1, 0)
        assert (late.closes, used.closes) == (1, 1)

    async def test_an_agent_that_comes_while_its_factory_is_stopped_is_closed(self, tmp_path: Path):
        made = ScriptedAgent("never")

        async def factory(*_: object) -> ScriptedAgent:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return made
            raise AssertionError

        async with open_harness(tmp_path, LIMITED, agent_factory=factory) as harness:
            await harness.platform.says("ann", "one")
            await harness.clock.advance(seconds=5)
            await harness.wait_until_idle()
            assert (made.turns, made.closes) == ([], 1)


class TestStoppedBefore:
    """A turn that was stopped before its agent begins does not begin it."""

    async def test_not_where_the_agent_was_being_made(self, tmp_path: Path):
        factory = Factory()
        async with open_harness(tmp_path, agent_factory=factory) as harness:
            await harness.platform.says("ann", "transfer the money")
            await harness.wait_until_idle()
            await harness.platform.says("ann", "/stop")
            factory.free.set()
            await harness.wait_until_idle()
            assert all(one.turns == [] for one in factory.made)

    @pytest.mark.parametrize("own", [True, False])
    async def test_not_where_somebody_was_asked_whether_the_turn_may_run(self, tmp_path: Path, *, own: bool):
        agent, free, made = ScriptedAgent("done"), asyncio.Event(), list[object]()

        async def on_turn(_: object) -> None:
            await free.wait()

        def factory(*_: object) -> ScriptedAgent:
            made.append(agent)
            return agent

        given = {"agent_factory": factory} if own else {"agent": agent}
        async with open_harness(tmp_path, on_turn=on_turn, **given) as harness:
            await harness.platform.says("ann", "transfer the money")
            await harness.wait_until_idle()
            await harness.platform.says("ann", "/stop")
            free.set()
            await harness.wait_until_idle()
            assert (agent.turns, made) == ([], [])
            assert harness.platform.shown() == ["Stopped."]

    async def test_not_even_where_it_was_stopped_in_the_last_moment(self, tmp_path: Path):
        agent = ScriptedAgent("done")
        async with open_harness(tmp_path, agent=agent) as harness:

            def stop(point: str) -> None:
                running = harness.gateway.running_turn(harness.key("ann"))
                if point == "turn_working" and running is not None:
                    asyncio.get_running_loop().call_soon(running.stop, StopReason.MESSAGE)

            arm_failpoints(stop)
            try:
                await harness.platform.says("ann", "transfer the money")
                await harness.wait_until_idle()
            finally:
                arm_failpoints(None)
            assert agent.turns == []
            assert await harness.outcomes("ann") == {"interrupted": 1}


async def test_an_agent_that_all_sessions_share_is_closed_by_whoever_made_it(tmp_path: Path):
    agent = ScriptedAgent("one", "two")
    async with open_harness(tmp_path, agent=agent) as harness:
        for person in ("ann", "bob"):
            await harness.platform.says(person, "hi")
            await harness.wait_until_idle()
        assert sorted(harness.platform.shown()) == ["one", "two"]
        assert harness.gateway.agents.counts.idle == 0
    assert agent.closes == 0


async def test_no_warm_agent_remembers_who_was_erased(tmp_path: Path):
    agents = ScriptedAgents()
    async with open_harness(tmp_path, agent_factory=agents) as harness:
        for person in ("ann", "bob"):
            await harness.platform.says(person, "my secret")
            await harness.wait_until_idle()
        assert len(agents.open) == 2
        await harness.clock.advance(minutes=1)
        await harness.store.erase(harness.platform.source("ann"))
        await harness.wait_until_idle()
        assert agents.open == [], "also bob's: he may have heard of ann in a room"
        await harness.platform.says("bob", "what did I say?")
        await harness.wait_until_idle()
        assert agents.made[-1][1].histories[0][0]["content"] == "my secret"
