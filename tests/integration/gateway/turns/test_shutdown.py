"""Calls that come while a gateway ends: taken, or refused before anything is noted, or a typed error."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import anyio
import pytest

from gateway_sessions import Gateway, GatewaySessionsError, InboundMessage, SessionStore
from gateway_sessions.config import GatewayConfig
from gateway_sessions.core.queue.inbound import (
    Accepted,
    Duplicate,
    MessageKind,
    Receipt,
    Rejected,
    RejectReason,
)
from gateway_sessions.errors import StoreStoppedError
from gateway_sessions.ports import Rows, Statement, Transaction
from gateway_sessions.runtime.agents.turn_context import TurnContext
from gateway_sessions.storage.transactions.queue.admit import find_duplicate
from gateway_sessions.testing import FakeClock, FakePlatform
from gateway_sessions.testing.agents import Gate, ScriptedAgent, calls_tool, hangs, waits_at
from tests.integration.gateway.gateway_harness import QUICK, open_harness

HURRIED = replace(QUICK, gateway=GatewayConfig(drain_timeout=timedelta(seconds=0.05)))
TEXTS = ("hello", "/status", "/new", "/retry", "/queue x", "/stop", "/undo", "/branch", "/title x", "/help")


async def slow(turn: TurnContext) -> str:
    await asyncio.sleep(0.01)
    return "ok"


class Callers:
    """People who go on writing, whatever becomes of the gateway."""

    def __init__(self, gateway: Gateway, platform: FakePlatform) -> None:
        self.gateway = gateway
        self.platform = platform
        self.numbers = iter(range(1_000_000))
        self.accepted: dict[str, str] = {}
        """What was taken, by its id: the text."""
        self.refused: list[InboundMessage] = []
        self.foreign: Counter[str] = Counter()
        self.late = 0
        self.stopped = False

    async def go_on(self, person: str) -> None:
        while not self.stopped:
            await self.call(person, next(self.numbers))
            await asyncio.sleep(0)

    async def call(self, person: str, number: int) -> None:
        edit = number % 7 == 0
        message = InboundMessage(
            source=self.platform.source(person),
            text=TEXTS[number % len(TEXTS)],
            message_id=f"{person} {number - 1 if edit else number}",
            kind=MessageKind.EDIT if edit else MessageKind.NEW,
            revision=number if edit else 0,
        )
        try:
            if number % 11 == 0:
                await self.gateway.command(message.source, "/status")
                return
            self.heard(message, await self.gateway.submit(message))
        except GatewaySessionsError:
            self.late += 1
        except Exception as error:  # noqa: BLE001 -- what this test looks for
            self.foreign[f"{type(error).__name__}: {error} on {message.text}"] += 1

    def heard(self, message: InboundMessage, receipt: Receipt) -> None:
        if isinstance(receipt, Accepted) and message.kind is MessageKind.NEW:
            self.accepted[message.message_id or ""] = message.text
        if isinstance(receipt, Rejected) and receipt.reason is RejectReason.DRAINING:
            assert message.text.startswith("/"), "what can wait is not refused"
            assert receipt.retry_after is not None
            self.refused.append(message)


@pytest.mark.parametrize("wait", [0.02, 0.05, 0.08, 0.11, 0.15, 0.2])
async def test_no_foreign_error_and_nothing_lost_whenever_a_gateway_ends(tmp_path: Path, wait: float):
    platform = FakePlatform()
    async with SessionStore.open(tmp_path, HURRIED) as store:
        gateway = Gateway(store, agent=slow, adapters=[platform])
        await gateway.__aenter__()
        callers = Callers(gateway, platform)
        async with anyio.create_task_group() as tasks:
            for number in range(8):
                tasks.start_soon(callers.go_on, f"p{number}")
            await asyncio.sleep(wait)
            await gateway.__aexit__(None, None, None)
            await asyncio.sleep(0.02)
            callers.stopped = True
        assert callers.foreign == {}
        assert callers.late
        assert not await store.db.read(open_commands), "a command was noted, and nobody carries it out"
        for message in callers.refused:
            known = await store.db.read(partial(find_duplicate, message.idempotency_key))
            assert known is None, "what was refused was noted all the same"


def open_commands() -> Transaction[Rows]:
    """Commands that were noted and not settled."""
    return (yield Statement("open_commands"))


async def test_a_command_while_draining_is_refused_before_it_is_noted_and_a_known_one_is_known(
    tmp_path: Path,
):
    gate = Gate()
    async with open_harness(tmp_path, agent=ScriptedAgent([waits_at(gate)])) as harness:
        await harness.platform.says("ann", "/status", message_id="before")
        await harness.platform.says("ann", "hello")
        await gate.reached()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(harness.gateway.drain)
            await harness.clock.advance(seconds=1)
            receipt = await harness.platform.says("ann", "/new", message_id="m1")
            assert isinstance(receipt, Rejected)
            assert receipt.reason is RejectReason.DRAINING
            assert isinstance(await harness.platform.says("ann", "/status", message_id="before"), Duplicate)
            assert isinstance(await harness.platform.says("bob", "hello"), Accepted)
            answer = await harness.gateway.command(harness.platform.source("ann"), "/status")
            assert answer == receipt.text
            gate.open()
            await harness.clock.advance(seconds=1)
        assert await harness.outcomes("ann") == {"command": 1, "turned": 1}
    async with open_harness(tmp_path, agent=ScriptedAgent("x")) as harness:
        receipt = await harness.platform.says(
            "ann", "/new", message_id="m1"
        )  # the platform delivers it again
        assert isinstance(receipt, Accepted)


async def test_whoever_waits_for_calm_learns_that_the_gateway_has_ended(tmp_path: Path):
    async with open_harness(tmp_path, agent=ScriptedAgent([waits_at(Gate())])) as harness:
        await harness.platform.says("ann", "hello")
        waiting = asyncio.create_task(harness.gateway.settled())
        await harness.clock.advance()
        await harness.gateway.drain(timedelta(0))
        await harness.gateway.__aexit__(None, None, None)
        with pytest.raises(StoreStoppedError):
            await asyncio.wait_for(waiting, 15)


async def test_a_turn_that_an_orderly_end_put_off_is_told_that_it_has_begun_before(tmp_path: Path):
    clock = FakeClock()
    platform = FakePlatform(clock=clock)
    paying = ScriptedAgent([calls_tool("pay", None), hangs()])
    async with open_harness(tmp_path, platform=platform, clock=clock, agent=paying) as harness:
        await platform.says("ann", "pay the bill")
        await harness.wait_until_idle()
        await harness.gateway.drain(timedelta(0))
    agent = ScriptedAgent("looked first")
    async with open_harness(tmp_path, platform=platform, clock=clock, agent=agent) as harness:
        await harness.wait_until_idle()
        (turn,) = agent.turns
        assert (turn.attempt, agent.histories[0][-1]["role"]) == (2, "tool")
        assert "check first" in (turn.recovered or "")
