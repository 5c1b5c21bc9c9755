"""What comes in the moment in which a turn ends does nothing to the wrong one, and is not forgotten."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from gateway_sessions.core.queue.inbound import Accepted, InboundMessage
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.runtime.agents.turn_context import TurnContext
from gateway_sessions.testing.agents import (
    Gate,
    ScriptedAgent,
    ScriptedAgents,
    SteerableScriptedAgent,
    answers,
    waits_at,
)
from gateway_sessions.testing.faults import crash_at
from tests.integration.gateway.gateway_harness import (
    QUICK,
    GatewayHarness,
    busy_config,
    open_harness,
    wait_until,
)

ROUNDS = 50
"""Turns of the loop in which whatever does not wait for the database comes to rest."""


@asynccontextmanager
async def same_batch(harness: GatewayHarness) -> AsyncGenerator[Callable[[], Awaitable[None]]]:
    """One commit for all that is written within the block, in order; what it gets lets everything go on."""
    released = threading.Event()

    async def spin() -> None:
        for _ in range(ROUNDS):
            await asyncio.sleep(0)

    with crash_at("before_commit", action=released.wait) as stop:
        other = asyncio.create_task(harness.store.get_or_create_session(harness.platform.source("nobody")))
        try:
            await wait_until(lambda: stop.fired)
            yield spin
            await spin()
        finally:
            released.set()
    await other


async def test_a_message_is_not_given_to_a_turn_that_is_over_and_heard_twice(tmp_path: Path):
    gate = Gate()
    agent = SteerableScriptedAgent([waits_at(gate), answers("1")], "2")
    async with open_harness(tmp_path, busy_config(BusyMode.STEER), agent=agent) as harness:
        await harness.platform.says("ann", "one")
        await gate.reached()
        async with same_batch(harness) as spin:
            with_text = asyncio.create_task(harness.platform.says("ann", "two"))
            await spin()
            gate.open()
        await with_text
        await harness.wait_until_idle()
        # On a busy machine the message may still be in time for the turn; then it gets none of its own.
        heard = [turn.text for turn in agent.turns] + [message.text for message in agent.steered]
        assert heard == ["one", "two"]
        assert await harness.outcomes("ann") == {"turned": 2}


async def test_a_message_interrupts_the_turn_that_it_met_and_no_other(tmp_path: Path):
    gate, second = Gate(), Gate()
    agent = ScriptedAgent([waits_at(gate), answers("1")], [waits_at(second), answers("2")])
    async with open_harness(tmp_path, busy_config(BusyMode.INTERRUPT), agent=agent) as harness:
        await harness.platform.says("ann", "one")
        await gate.reached()
        waiting = InboundMessage(source=harness.platform.source("ann"), text="two")
        await harness.gateway.admit(waiting, solo=True)
        async with same_batch(harness) as spin:
            with_text = asyncio.create_task(harness.platform.says("ann", "stop that"))
            await spin()
            gate.open()
        await with_text
        await second.reached()
        await harness.wait_until_idle()
        second.open()
        await harness.clock.advance(seconds=1)
        assert [turn.text for turn in agent.finished] == ["one", "two", "stop that"]
        assert await harness.outcomes("ann") == {"turned": 3}


@pytest.mark.parametrize("reset_first", [True, False])
async def test_a_reset_in_the_moment_of_an_answer_lets_it_stand_whole_or_not_at_all(
    tmp_path: Path, reset_first: bool
):
    gate = Gate()
    agents = ScriptedAgents([waits_at(gate), answers("1")])
    async with open_harness(tmp_path, agent_factory=agents) as harness:
        await harness.platform.says("ann", "one")
        await gate.reached()
        key = harness.key("ann")
        old = await harness.store.peek_session_id(key)
        async with same_batch(harness) as spin:
            if not reset_first:
                gate.open()
                await spin()
            resetting = asyncio.create_task(harness.store.reset_session(key))
            await spin()
            gate.open()
        new = await resetting
        await harness.wait_until_idle()
        assert new is not None
        assert harness.platform.shown("ann") == ([] if reset_first else ["1"])
        rows = [row.content for row in await harness.store.db.get_messages(str(old))]
        assert rows == (["one", "[This turn was stopped.]"] if reset_first else ["one", "1"])
        assert await harness.transcript("ann") == []
        assert await harness.outcomes("ann") == {"interrupted" if reset_first else "turned": 1}
        assert harness.gateway.running_turn(key) is None
    assert agents.open == agents.closed_twice == []


async def test_many_who_write_at_once_to_an_idle_room_make_one_turn_at_a_time(tmp_path: Path):
    running = most = 0

    async def agent(turn: TurnContext) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return turn.text

    config = replace(QUICK, group_sessions_per_user=False)
    async with open_harness(tmp_path, config, agent=agent) as harness:
        people = [f"p{number}" for number in range(20)]
        receipts = await asyncio.gather(*(harness.platform.says(who, who, chat="room") for who in people))
        await harness.wait_until_idle()
        assert most == 1
        assert sorted(one.seq for one in receipts if isinstance(one, Accepted)) == list(range(1, 21))
        order = [who for _, who in sorted(zip((one.seq for one in receipts), people, strict=True))]  # type: ignore[union-attr]
        assert [one.text for one in harness.platform.sent if not one.message.is_notice] == order


async def test_what_waits_for_a_turn_to_end_does_not_wait_for_a_clock_that_was_set_back(tmp_path: Path):
    gate = Gate()
    agent = ScriptedAgent([waits_at(gate), answers("1")], "2")
    async with open_harness(tmp_path, agent=agent) as harness:
        await harness.platform.says("ann", "one")
        await gate.reached()
        await harness.platform.says("ann", "two")
        await harness.wait_until_idle()
        harness.clock.step(hours=-1)
        gate.open()
        await harness.wait_until_idle()
        assert [turn.text for turn in agent.turns] == ["one", "two"]
