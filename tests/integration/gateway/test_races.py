"""What comes in the moment in which a turn ends does nothing to the wrong one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from gateway_sessions.core.busy import BusyMode
from gateway_sessions.core.inbound import InboundMessage
from gateway_sessions.testing.crash import crash_at
from gateway_sessions.testing.scripted_agent import (
    Gate,
    ScriptedAgent,
    SteerableScriptedAgent,
    answers,
    hangs,
    waits_at,
)
from tests.integration.gateway.house import House, busy, open_house

ROUNDS = 50
"""Turns of the loop in which whatever does not wait for the database comes to rest."""


@asynccontextmanager
async def same_batch(house: House) -> AsyncGenerator[Callable[[], Awaitable[None]]]:
    """What is written within the block is one commit, in the order of the calls; call to let others go first."""
    released = threading.Event()

    async def spin() -> None:
        for _ in range(ROUNDS):
            await asyncio.sleep(0)

    with crash_at("before_commit", action=released.wait) as stop:
        other = asyncio.create_task(house.store.get_or_create_session(house.platform.source("nobody")))
        try:
            while not stop.fired:
                await asyncio.sleep(0.001)
            yield spin
            await spin()
        finally:
            released.set()
    await other


async def test_a_message_is_not_given_to_a_turn_that_is_over_and_heard_twice(tmp_path: Path):
    gate = Gate()
    agent = SteerableScriptedAgent([waits_at(gate), answers("1")], "2")
    async with open_house(tmp_path, busy(BusyMode.STEER), agent=agent) as house:
        await house.platform.says("ann", "one")
        await gate.reached()
        async with same_batch(house) as spin:
            saying = asyncio.create_task(house.platform.says("ann", "two"))
            await spin()
            gate.open()
        await saying
        await house.settles()
        assert [turn.text for turn in agent.turns] == ["one", "two"]
        assert agent.steered == []
        assert await house.outcomes("ann") == {"turned": 2}


async def test_a_message_interrupts_the_turn_that_it_met_and_no_other(tmp_path: Path):
    gate, second = Gate(), Gate()
    agent = ScriptedAgent([waits_at(gate), answers("1")], [waits_at(second), answers("2")])
    async with open_house(tmp_path, busy(BusyMode.INTERRUPT), agent=agent) as house:
        await house.platform.says("ann", "one")
        await gate.reached()
        waiting = InboundMessage(source=house.platform.source("ann"), text="two")
        await house.gateway.admit(waiting, solo=True)
        async with same_batch(house) as spin:
            saying = asyncio.create_task(house.platform.says("ann", "stop that"))
            await spin()
            gate.open()
        await saying
        await second.reached()
        await house.settles()
        second.open()
        await house.clock.advance(seconds=1)
        assert [turn.text for turn in agent.finished] == ["one", "two", "stop that"]
        assert await house.outcomes("ann") == {"turned": 3}
