"""Agents that do not let themselves be stopped hold up neither their lane nor the end of the gateway."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import anyio
import pytest

from gateway_sessions.config import AgentConfig
from gateway_sessions.core.notices.notice_texts import TOOK_TOO_LONG
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.errors import FencedError
from gateway_sessions.runtime.agents.turn_context import TurnContext
from gateway_sessions.runtime.gateway.gateway import TO_STOP
from gateway_sessions.runtime.user_code import GRACE, PATIENCE
from tests.integration.gateway.gateway_harness import QUICK, busy_config, open_harness

LIMITED = replace(QUICK, agent=AgentConfig(gateway_timeout=timedelta(seconds=5)))
AT_MOST = GRACE + PATIENCE
"""How long a lane waits for an agent that was stopped."""


class Stubborn:
    """Swallows each cancellation of its first turn until it is released, and then wants to go on."""

    def __init__(self) -> None:
        self.released, self.over = asyncio.Event(), asyncio.Event()
        self.refused = 0
        self.turns: list[str] = []

    async def __call__(self, turn: TurnContext) -> str:
        self.turns.append(turn.text)
        if len(self.turns) > 1:
            return f"you said: {turn.text}"
        while not self.released.is_set():
            try:
                await self.released.wait()
            except asyncio.CancelledError:
                continue
        writes: tuple[Callable[[], object], ...] = (
            lambda: turn.append({"role": "assistant", "content": "late"}),
            lambda: turn.say("late"),
            lambda: turn.show("late"),
        )
        for write in writes:
            with pytest.raises(FencedError):
                await write()  # type: ignore[misc]
            self.refused += 1
        self.over.set()
        return "late"

    async def ends(self) -> None:
        """Let it go on, and wait until it has tried all that it may not do."""
        self.released.set()
        with anyio.fail_after(15):
            await self.over.wait()
        assert self.refused == 3


@pytest.fixture
async def agent() -> AsyncGenerator[Stubborn]:
    agent = Stubborn()
    yield agent
    agent.released.set()  # or it would outlive a test that failed


async def test_one_that_takes_too_long_loses_its_lane_and_the_person_is_told(tmp_path: Path, agent: Stubborn):
    async with open_harness(tmp_path, LIMITED, agent=agent) as harness:
        await harness.platform.says("ann", "one")
        await harness.wait_until_idle()
        await harness.platform.says("ann", "two")
        await harness.clock.advance(seconds=5)
        assert harness.gateway.running_turn(harness.key("ann")) is not None
        await harness.clock.advance(AT_MOST)
        await harness.wait_until_idle()
        assert harness.platform.shown()[1:] == [TOOK_TOO_LONG, "you said: two"]
        assert await harness.outcomes("ann") == {"dead": 1, "turned": 1}
        before = await harness.transcript("ann")
        await agent.ends()
        await harness.wait_until_idle()
        assert await harness.transcript("ann") == before
        assert harness.platform.shown()[1:] == [TOOK_TOO_LONG, "you said: two"]


async def test_one_that_is_interrupted_gives_way_to_the_next_message(tmp_path: Path, agent: Stubborn):
    async with open_harness(tmp_path, busy_config(BusyMode.INTERRUPT), agent=agent) as harness:
        await harness.platform.says("ann", "one")
        await harness.wait_until_idle()
        await harness.platform.says("ann", "two")
        await harness.clock.advance(AT_MOST)
        await harness.wait_until_idle()
        assert harness.platform.shown()[-1] == "you said: two"
        assert await harness.outcomes("ann") == {"interrupted": 1, "turned": 1}
        await agent.ends()


async def test_a_drain_comes_back_and_the_turn_goes_on_after_the_next_start(tmp_path: Path, agent: Stubborn):
    async with open_harness(tmp_path, agent=agent) as harness:
        await harness.platform.says("ann", "one")
        await harness.wait_until_idle()
        ended: list[bool] = []

        async def drain() -> None:
            ended.append(await harness.gateway.drain(timedelta(seconds=0.5)))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(drain)
            await harness.clock.advance(timedelta(seconds=0.5) + AT_MOST)
        assert ended == [False]
        assert harness.gateway.running_turn(harness.key("ann")) is None
    await agent.ends()
    async with open_harness(tmp_path, agent=agent, clock=harness.clock) as harness:
        await harness.wait_until_idle()
        assert agent.turns == ["one", "one"]
        assert [text for _, text in await harness.transcript("ann")] == ["one", "you said: one"]


async def test_a_drain_waits_no_longer_for_a_factory_that_hangs(tmp_path: Path):
    async def factory(*_: object) -> Stubborn:
        await asyncio.Event().wait()
        raise AssertionError

    async with open_harness(tmp_path, agent_factory=factory) as harness:
        await harness.platform.says("ann", "one")
        await harness.wait_until_idle()
        ended: list[bool] = []

        async def drain() -> None:
            ended.append(await harness.gateway.drain(timedelta(0)))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(drain)
            await harness.clock.advance(TO_STOP)
        assert ended == [False]
