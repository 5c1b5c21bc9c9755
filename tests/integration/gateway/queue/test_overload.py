"""Ten times more is asked of a gateway than it can do: it does what it can, and tells everybody else at once.

Time is the test's own, so what is measured is who has to wait for whom, and not how busy the machine is.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import count
from pathlib import Path

import pytest

from gateway_sessions import Command, CommandCall, Config
from gateway_sessions.core.queue.busy_modes import BusyRules
from gateway_sessions.core.queue.inbound import (
    Accepted,
    Duplicate,
    InboundMessage,
    Receipt,
    Rejected,
    RejectReason,
)
from gateway_sessions.runtime.agents.turn_context import TurnContext
from gateway_sessions.runtime.gateway.commands import executor
from gateway_sessions.testing.agents import Gate
from gateway_sessions.testing.inside import queue_of
from tests.integration.gateway.gateway_harness import QUICK, GatewayHarness, open_harness

TURN_SECONDS = 0.1
MAX_TURNS, MAX_TURNS_PER_OWNER, MAX_QUEUED, MAX_WAITING = 4, 2, 8, 100
CAPACITY = MAX_TURNS / TURN_SECONDS
"""Turns a second."""
FLOODERS, THREADS, POLITE = 10, 10, 4
"""People who write as fast as they can, lanes that one of them has, and people who wait for their answer."""
LANES = FLOODERS // 2 + THREADS // 2 + POLITE
MOST_GROWTH = 8 << 20
"""From the first third of an overload to its end."""
SOAK_SECONDS = 3600

CONFIG: Config = replace(
    QUICK,
    busy=BusyRules(debounce=timedelta(0), max_queued=MAX_QUEUED, acknowledge=False),
    gateway=replace(
        QUICK.gateway, max_turns=MAX_TURNS, max_turns_per_owner=MAX_TURNS_PER_OWNER, max_waiting=MAX_WAITING
    ),
)


def resident() -> int:
    """Bytes of memory that this process uses; 0 where nobody tells."""
    pages = Path("/proc/self/statm")
    return int(pages.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if pages.exists() else 0


async def takes_its_time(turn: TurnContext) -> str:
    await turn.clock.sleep(TURN_SECONDS)
    return turn.text


@dataclass
class Load:
    """What is asked of a gateway, and what came of it."""

    harness: GatewayHarness
    latencies: list[float] = field(default_factory=list[float])
    accepted: int = 0
    rejected: int = 0
    most_waiting: int = 0
    answered: int = 0
    growth: int = 0
    """Bytes of memory."""
    seen: Counter[str] = field(default_factory=Counter[str])
    numbers: count[int] = field(default_factory=count)

    async def offer(self, person: str, thread: str | None = None) -> Receipt:
        text = f"{next(self.numbers)}"
        source = self.harness.platform.source(person, thread=thread)
        receipt = await self.harness.gateway.submit(InboundMessage(source=source, text=text))
        match receipt:
            case Accepted():
                self.accepted += 1
            case Rejected():
                self.rejected += 1
                assert receipt.reason in {RejectReason.QUEUE_FULL, RejectReason.OVERLOADED}
                assert receipt.text
                assert receipt.retry_after
                assert receipt.retry_after > 0
            case _:
                raise AssertionError(receipt)
        self.most_waiting = max(self.most_waiting, queue_of(self.harness.store).total_waiting)
        return receipt

    async def flood(self, seconds: float, times: float) -> None:
        """Write that many times more than can be answered: half of it one person, on lanes of theirs."""
        pause = 0.1
        each = round(times * CAPACITY * pause)
        for _ in range(round(seconds / pause)):
            for number in range(each):
                one = number % FLOODERS
                await (self.offer(f"f{one}") if number % 2 else self.offer("g", f"t{one % THREADS}"))
            await self.harness.clock.sleep(pause)

    async def be_polite(self, person: str, seconds: float) -> None:
        """Write, wait for the answer, think, and write again; or come back when told to."""
        clock = self.harness.clock
        end = clock.now() + timedelta(seconds=seconds)
        answers = 0
        while clock.now() < end:
            before = clock.now()
            receipt = await self.offer(person)
            if isinstance(receipt, Rejected):
                assert receipt.reason is RejectReason.OVERLOADED
                await clock.sleep(0.3)
                continue
            answers += 1
            while self.answers(person) < answers:
                await clock.sleep(TURN_SECONDS / 4)
            self.latencies.append((clock.now() - before).total_seconds())
            await clock.sleep(0.2)

    def answers(self, person: str) -> int:
        """How many answers somebody has got."""
        self.count_answers()
        return self.seen[person]

    def count_answers(self) -> None:
        """Count what people were shown, and forget it: it is the gateway's memory that is measured."""
        platform = self.harness.platform
        self.seen.update(one.target.chat_id for one in platform.sent)
        self.answered += sum(not one.message.is_notice for one in platform.sent)
        for shown in (platform.sent, platform.attempts, platform.typing_shown):
            shown.clear()

    @property
    def p99(self) -> float:
        ordered = sorted(self.latencies)
        return ordered[math.ceil(0.99 * len(ordered)) - 1]


async def run(home: Path, seconds: float, times: float) -> Load:
    """Polite people, and if *times* is more than nothing, others."""
    async with open_harness(home, CONFIG, agent=takes_its_time) as harness:
        load = Load(harness)
        steps = round((seconds + 4) / 0.05)
        early = 0
        people = [f"p{number}" for number in range(POLITE)]
        async with asyncio.TaskGroup() as tasks:
            for person in people:
                tasks.create_task(load.be_polite(person, seconds))
            if times:
                tasks.create_task(load.flood(seconds, times))
            for step in range(steps):
                await harness.clock.advance(seconds=0.05)
                load.count_answers()
                if step == steps // 3:
                    early = resident()
            load.growth = resident() - early
        await harness.clock.advance(seconds=MAX_WAITING / CAPACITY * MAX_TURNS)
        assert queue_of(harness.store).total_waiting == 0
        load.count_answers()
        assert load.answered == load.accepted, "a message was lost"
        return load


@pytest.mark.parametrize(
    "seconds", [3, pytest.param(120, marks=[pytest.mark.soak, pytest.mark.timeout(SOAK_SECONDS)])]
)
async def test_ten_times_too_much_keeps_nobody_waiting_who_waits_for_their_answers(
    tmp_path: Path, seconds: float, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.CRITICAL, "gateway_sessions")  # what is logged would be kept, with all it holds
    calm = await run(tmp_path / "calm", seconds, times=0)
    load = await run(tmp_path / "load", seconds, times=10)
    assert not calm.rejected
    assert calm.p99 <= 2 * TURN_SECONDS
    # At worst, each lane that was ready before has a turn first, and a place becomes free.
    assert load.p99 <= (LANES / MAX_TURNS + 1) * TURN_SECONDS + calm.p99
    assert load.accepted >= 0.8 * CAPACITY * seconds
    assert load.most_waiting <= LANES * MAX_QUEUED
    assert load.rejected > 2 * load.accepted
    assert load.growth < MOST_GROWTH


async def test_who_comes_in_the_moment_in_which_a_place_is_free_waits_behind_those_who_wait(tmp_path: Path):
    begun: list[str] = []
    gates = {person: Gate() for person in ("ann", "bob", "cid")}

    async def agent(turn: TurnContext) -> str:
        begun.append(turn.text)
        await gates[turn.text].passage()
        return turn.text

    config = replace(CONFIG, gateway=replace(CONFIG.gateway, max_turns=1))
    async with open_harness(tmp_path, config, agent=agent) as harness:
        await harness.platform.says("ann", "ann")
        await harness.platform.says("bob", "bob")
        gates["ann"].open()
        while harness.gateway.running_turn(harness.key("ann")) is not None:  # noqa: ASYNC110 -- the very moment
            await asyncio.sleep(0)
        await harness.platform.says("cid", "cid")
        gates["bob"].open()
        gates["cid"].open()
        await harness.wait_until_idle()
        assert begun == ["ann", "bob", "cid"]


async def test_a_lane_that_has_had_its_turn_goes_behind_those_that_wait(tmp_path: Path):
    begun: list[str] = []

    async def agent(turn: TurnContext) -> str:
        begun.append(turn.text)
        await turn.clock.sleep(1)
        return turn.text

    config = replace(CONFIG, gateway=replace(CONFIG.gateway, max_turns=1))
    async with open_harness(tmp_path, config, agent=agent) as harness:
        for number in range(4):
            await harness.platform.says("ann", f"ann {number}")
        await harness.clock.advance(seconds=0.5)
        await harness.platform.says("bob", "bob")
        await harness.clock.advance(seconds=10)
        assert begun == ["ann 0", "bob", "ann 1", "ann 2", "ann 3"]


async def test_when_too_much_waits_everybody_is_told_and_what_was_taken_is_still_known(tmp_path: Path):
    gate = Gate()

    async def agent(turn: TurnContext) -> str:
        await gate.passage()
        return turn.text

    config = replace(CONFIG, gateway=replace(CONFIG.gateway, max_turns=1, max_waiting=5))
    async with open_harness(tmp_path, config, agent=agent) as harness:
        for number in range(6):
            assert isinstance(await harness.platform.says(f"p{number}", "hello", message_id="m"), Accepted)
        refused = await harness.platform.says("late", "hello", message_id="m")
        assert isinstance(refused, Rejected)
        assert (refused.reason, refused.retry_after) == (RejectReason.OVERLOADED, 30)
        assert isinstance(await harness.platform.says("p3", "hello", message_id="m"), Duplicate)
        await harness.wait_until_idle()
        assert harness.platform.shown("late") == [refused.text]
        gate.open()
        await harness.clock.advance(seconds=refused.retry_after)
        assert isinstance(await harness.platform.says("late", "hello", message_id="m"), Accepted)
        await harness.wait_until_idle()
        answered = [one.target.chat_id for one in harness.platform.sent if not one.message.is_notice]
        assert answered == ["p0", "p1", "p2", "p3", "p4", "p5", "late"]


# Commands


class Pings:
    """A command that takes as long as the test wants it to."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.heard: list[str] = []
        self.command = Command("ping", self.ping, summary="Say pong.")

    async def ping(self, call: CommandCall) -> str:
        self.heard.append(call.arguments)
        await self.gate.wait()
        return "pong"


def told(receipts: Iterable[Receipt]) -> Counter[str]:
    """What became of some messages."""
    return Counter(str(one.reason) if isinstance(one, Rejected) else type(one).__name__ for one in receipts)


async def test_a_flood_of_commands_is_refused_and_one_who_asks_beside_it_is_not(tmp_path: Path):
    pings = Pings()
    async with open_harness(tmp_path, CONFIG, agent=takes_its_time, commands=[pings.command]) as harness:
        says = harness.platform.says
        async with asyncio.TaskGroup() as tasks:
            flood = [tasks.create_task(says("eve", f"/ping {n}", message_id=f"e{n}")) for n in range(500)]
            asks = [tasks.create_task(says(one, f"/ping {one}")) for one in ("bob", "cid")]
            await harness.wait_until_idle()
            assert sorted(pings.heard) == [*"01234567", "bob", "cid"]
            again = await says("eve", "/ping 3", message_id="e3")
            pings.gate.set()
        assert told(one.result() for one in flood) == {"Accepted": MAX_QUEUED, "overloaded": 500 - MAX_QUEUED}
        assert told(one.result() for one in asks) == {"Accepted": 2}
        assert told([again]) == {"Duplicate": 1}
        await harness.wait_until_idle()
        refusals = [one for one in harness.platform.shown("eve") if one != "pong"]
        assert len(refusals) == 1
        assert harness.platform.shown("bob") == ["pong"]
        assert told([await says("eve", "/ping late")]) == {"Accepted": 1}


async def test_all_commands_together_have_a_bound_as_well(tmp_path: Path):
    pings = Pings()
    config = replace(CONFIG, gateway=replace(CONFIG.gateway, max_waiting=5))
    async with open_harness(tmp_path, config, agent=takes_its_time, commands=[pings.command]) as harness:
        async with asyncio.TaskGroup() as tasks:
            asks = [tasks.create_task(harness.platform.says(f"p{number}", "/ping")) for number in range(9)]
            await harness.wait_until_idle()
            pings.gate.set()
        assert told(one.result() for one in asks) == {"Accepted": 5, "overloaded": 4}


async def test_a_stop_gets_through_a_flood_of_commands(tmp_path: Path):
    pings = Pings()
    async with open_harness(tmp_path, CONFIG, agent=takes_its_time, commands=[pings.command]) as harness:
        says = harness.platform.says
        await says("eve", "work")
        async with asyncio.TaskGroup() as tasks:
            for number in range(50):
                tasks.create_task(says("eve", f"/ping {number}"))
            await harness.wait_until_idle()
            assert told([await says("eve", "/stop")]) == {"Accepted": 1}
            assert harness.gateway.running_turn(harness.key("eve")) is None
            pings.gate.set()


async def test_commands_leave_room_behind_them_however_they_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(executor, "LEAST_OF_ONE", 1)

    async def fails(_: CommandCall) -> str:
        raise LookupError

    async def compresses(chats: object) -> list[dict[str, str]]:
        await asyncio.Event().wait()
        return []

    pings = Pings()
    config = replace(CONFIG, busy=replace(CONFIG.busy, max_queued=1))
    commands = [pings.command, Command("fail", fails)]
    async with open_harness(
        tmp_path, config, agent=takes_its_time, commands=commands, compressor=compresses
    ) as harness:
        says = harness.platform.says
        await says("eve", "work")
        await harness.clock.advance(seconds=1)
        cut_off = asyncio.create_task(says("eve", "/ping"))
        await harness.wait_until_idle()
        cut_off.cancel()
        await harness.wait_until_idle()
        assert told([await says("eve", "/status")]) == {"overloaded": 1}  # it is still being carried out
        pings.gate.set()
        await harness.wait_until_idle()
        for text in ("/fail", "/queue more", "/compress", "/compress", "/queue list", "/ping"):
            assert told([await says("eve", text)]) == {"Accepted": 1}, text
            await harness.wait_until_idle()
        assert await harness.gateway.command(harness.platform.source("eve"), "/ping") == "pong"
        await harness.clock.advance(minutes=3)  # until the compression is cut off


async def test_commands_cannot_pile_up_while_the_platform_is_away(tmp_path: Path):
    async with open_harness(tmp_path, CONFIG, agent=takes_its_time) as harness:
        with harness.platform.outage():
            receipts = [
                one
                for _ in range(10)
                for one in await asyncio.gather(*(harness.platform.says("eve", "/help") for _ in range(100)))
            ]
            assert told(receipts) == {"Accepted": 10 * MAX_QUEUED, "overloaded": 1000 - 10 * MAX_QUEUED}
            assert told([await harness.platform.says("bob", "/help")]) == {"Accepted": 1}
        await harness.clock.advance(minutes=10)
        assert len(harness.platform.shown("bob")) == 1
