"""Giving messages to agents that run, whatever they do with them: nobody else is kept waiting."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextvars import ContextVar
from pathlib import Path

import anyio
import pytest

from gateway_sessions.core.queue.inbound import Accepted, Disposition, InboundMessage
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.runtime.agents.turn_context import TurnContext
from gateway_sessions.runtime.gateway.running_turn import TO_TAKE
from tests.integration.gateway.gateway_harness import GatewayHarness, busy_config, open_harness

STEERED = busy_config(BusyMode.STEER)
canary: ContextVar[str] = ContextVar("canary", default="none")


class Agent:
    """Works on its first turn until it is let go; how it takes messages is another matter."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.turns: list[str] = []
        self.taken: list[str] = []

    async def run_turn(self, turn: TurnContext) -> str:
        self.turns.append(turn.text)
        if len(self.turns) == 1:
            await self.go_on.wait()
        return f"you said: {turn.text}"

    async def steer(self, message: InboundMessage) -> bool:
        self.taken.append(message.text)
        return True


class Hanging(Agent):
    async def steer(self, message: InboundMessage) -> bool:
        await asyncio.Event().wait()
        return True


class Obstinate(Agent):
    """Takes a message although it was told to leave it."""

    async def steer(self, message: InboundMessage) -> bool:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.taken.append(message.text)
        return True


class Cancelling(Agent):
    async def steer(self, message: InboundMessage) -> bool:
        raise asyncio.CancelledError


class Failing(Agent):
    async def steer(self, message: InboundMessage) -> bool:
        raise LookupError(message.text)


class Finishing(Agent):
    """Is done the moment it hears a message."""

    async def steer(self, message: InboundMessage) -> bool:
        self.go_on.set()
        return await super().steer(message)


class Thoughtful(Agent):
    """Takes a message once it has thought about it."""

    def __init__(self) -> None:
        super().__init__()
        self.thought = asyncio.Event()

    async def steer(self, message: InboundMessage) -> bool:
        await self.thought.wait()
        return await super().steer(message)


class Looking(Agent):
    async def steer(self, message: InboundMessage) -> bool:
        self.taken.append(canary.get())
        return True


@pytest.fixture
async def tasks() -> AsyncGenerator[asyncio.TaskGroup]:
    async with asyncio.TaskGroup() as tasks:
        yield tasks


async def goes(harness: GatewayHarness, agent: Agent) -> None:
    """The agent ends its first turn, and works on all the others."""
    agent.go_on.set()
    await harness.wait_until_idle()


@pytest.mark.parametrize("kind", [Hanging, Obstinate, Cancelling, Failing])
async def test_an_agent_that_hangs_over_a_message_lets_it_wait_for_a_turn_of_its_own(
    tmp_path: Path, tasks: asyncio.TaskGroup, kind: type[Agent]
):
    """Whoever brought it was kept for ever, and so was all that came behind it on that platform."""
    agent = kind()
    async with open_harness(tmp_path, STEERED, agent=agent) as harness:
        await harness.platform.says("ann", "one")
        await harness.wait_until_idle()
        bringing = tasks.create_task(harness.platform.says("ann", "two"))
        await harness.clock.advance(TO_TAKE)
        receipt = await asyncio.wait_for(bringing, 15)
        assert isinstance(receipt, Accepted)
        assert receipt.disposition is Disposition.STEERS
        assert await harness.platform.says("bob", "hello")
        await goes(harness, agent)
        assert agent.turns == ["one", "hello", "two"]
        assert harness.platform.shown("ann")[-1] == "you said: two"
        assert await harness.outcomes("ann") == {"turned": 2}


async def test_an_edit_that_comes_while_its_message_is_taken_is_told_to_the_agent(
    tmp_path: Path, tasks: asyncio.TaskGroup
):
    """The transcript had the edit, and the agent went on with what had been said before it."""
    agent = Thoughtful()
    async with open_harness(tmp_path, STEERED, agent=agent) as harness:
        await harness.platform.says("ann", "one")
        await harness.wait_until_idle()
        bringing = tasks.create_task(harness.platform.says("ann", "pay 100", message_id="m"))
        await harness.wait_until_idle()
        assert isinstance(await harness.platform.edits("m", "pay 200"), Accepted)
        agent.thought.set()
        await bringing
        await goes(harness, agent)
        assert agent.taken == ["pay 100", "pay 200"]
        assert (await harness.transcript("ann"))[0] == ("user", "one\n\npay 200")


async def test_an_agent_that_hangs_over_an_edit_keeps_nobody_waiting(
    tmp_path: Path, tasks: asyncio.TaskGroup
):
    agent = Hanging()
    async with open_harness(tmp_path, agent=agent) as harness:
        await harness.platform.says("ann", "one", message_id="m")
        await harness.wait_until_idle()
        changing = tasks.create_task(harness.platform.edits("m", "won"))
        await harness.clock.advance(TO_TAKE)
        receipt = await asyncio.wait_for(changing, 15)
        assert isinstance(receipt, Accepted)
        await goes(harness, agent)
        assert agent.turns == ["one"]


@pytest.mark.parametrize("kind", [Failing, Cancelling])
async def test_an_agent_that_fails_over_an_edit_does_not_fail_whoever_brings_it(
    tmp_path: Path, kind: type[Agent]
):
    """The failure came out of `submit`, and the edit was left half done."""
    agent = kind()
    async with open_harness(tmp_path, agent=agent) as harness:
        await harness.platform.says("ann", "one", message_id="m")
        await harness.wait_until_idle()
        receipt = await harness.platform.edits("m", "won")
        assert isinstance(receipt, Accepted)
        await goes(harness, agent)
        assert await harness.outcomes("ann") == {"applied": 1, "turned": 1}


async def test_a_stop_is_answered_while_the_agent_hangs_over_a_message(
    tmp_path: Path, tasks: asyncio.TaskGroup
):
    agent = Hanging()
    async with open_harness(tmp_path, STEERED, agent=agent) as harness:
        await harness.platform.says("ann", "one")
        await harness.wait_until_idle()
        bringing = tasks.create_task(harness.platform.says("ann", "two"))
        await harness.wait_until_idle()
        await harness.platform.says("ann", "/stop")
        with anyio.fail_after(15):
            await bringing  # no time passes: the turn is over, so nobody is to hear the message
            await harness.wait_until_idle()
        assert any("top" in text for text in harness.platform.shown("ann")), harness.platform.shown("ann")


async def test_an_agent_that_is_done_meanwhile_hears_the_message_in_its_own_turn_only(
    tmp_path: Path, tasks: asyncio.TaskGroup
):
    """It had taken it in the end, for a turn that was over, and then it had a turn of its own as well."""
    agent = Thoughtful()
    async with open_harness(tmp_path, STEERED, agent=agent) as harness:
        await harness.platform.says("ann", "one")
        await harness.wait_until_idle()
        bringing = tasks.create_task(harness.platform.says("ann", "two"))
        await harness.wait_until_idle()
        await goes(harness, agent)
        assert bringing.done()
        agent.thought.set()
        await harness.wait_until_idle()
        assert agent.turns == ["one", "two"]
        assert agent.taken == []


async def test_what_ends_a_turn_is_part_of_it_and_is_not_answered_again(tmp_path: Path):
    """An agent that is done once it was told something ends its turn before that could be written down."""
    agent = Finishing()
    async with open_harness(tmp_path, STEERED, agent=agent) as harness:
        await harness.platform.says("ann", "one")
        await harness.wait_until_idle()
        await harness.platform.says("ann", "two")
        await harness.wait_until_idle()
        assert agent.taken == ["two"]
        assert agent.turns == ["one"]
        assert await harness.transcript("ann") == [("user", "one\n\ntwo"), ("assistant", "you said: one")]


async def test_an_agent_sees_nothing_of_whoever_brings_a_message(tmp_path: Path):
    agent = Looking()
    async with open_harness(tmp_path, STEERED, agent=agent) as harness:
        await harness.platform.says("ann", "one")
        await harness.wait_until_idle()
        canary.set("the adapter's")
        await harness.platform.says("ann", "two")
        assert agent.taken == ["none"]
        await goes(harness, agent)
