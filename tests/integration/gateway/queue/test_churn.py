"""Thousands of conversations come and go, and a gateway is afterwards what it was before."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import threading
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from gateway_sessions.config import AgentCacheConfig, CacheConfig
from gateway_sessions.core.queue.inbound import Accepted, InboundMessage
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.transcript.model_history import Chat
from gateway_sessions.runtime.agents.turn_context import TurnContext
from tests.integration.gateway.gateway_harness import GatewayHarness, busy_config, open_harness

SIZE = 16
"""Agents that are kept warm."""
WAVE = 20
"""Conversations at the same time."""
FEW, MANY = 300, 10_000
SOAK_SECONDS = 3600
DUTIES = 4
"""Duties that have a task more while they rest until a certain time."""
POOL = (os.cpu_count() or 1) + 4
"""Threads that the loop starts for blocking calls as it needs them, and keeps."""
LEFTOVER = 600
"""Objects by which two counts may differ although nothing grows: lists of free ones, compiled statements."""


MOST_GROWTH = 8 << 20
OF_OTHERS = 20
"""A process that has run other tests before gives back, and takes, a twentieth of what it holds for them."""


class Visitor:
    """An agent that answers, fails, or works until it is stopped, as its message says. It is closed once."""

    def __init__(self, churn: Churn) -> None:
        self._churn = churn
        self.closes = 0
        churn.live.add(self)

    async def run_turn(self, turn: TurnContext) -> str:
        await asyncio.sleep(0)
        match turn.text:
            case "fail":
                raise ConnectionError
            case "hang":
                await asyncio.Event().wait()
        return turn.text

    async def aclose(self) -> None:
        await asyncio.sleep(0)
        self.closes += 1
        assert self.closes == 1
        self._churn.live.remove(self)


@dataclass(frozen=True)
class Holdings:
    """What a process holds."""

    tasks: int
    threads: int
    descriptors: int
    objects: int
    resident: int
    """Bytes."""

    @classmethod
    def now(cls) -> Holdings:
        for _ in range(3):
            gc.collect()
        process = Path("/proc/self")
        descriptors = len(list((process / "fd").iterdir())) if process.exists() else 0
        pages = int((process / "statm").read_text().split()[1]) if process.exists() else 0
        return cls(
            tasks=len(asyncio.all_tasks()),
            threads=threading.active_count(),
            descriptors=descriptors,
            objects=len(gc.get_objects()),
            resident=pages * os.sysconf("SC_PAGE_SIZE"),
        )


class Churn:
    """Lets conversations come and go, a wave at a time."""

    def __init__(self) -> None:
        self.live: set[Visitor] = set()
        self.most = self.made = 0
        self.harness: GatewayHarness | None = None

    def make(self, entry: SessionEntry, history: list[Chat]) -> Visitor:
        self.made += 1
        visitor = Visitor(self)
        self.most = max(self.most, len(self.live))
        assert self.harness is not None
        counts = self.harness.gateway.agents.counts
        assert counts.idle <= SIZE
        assert len(self.live) <= counts.idle + counts.lent + counts.closing + 1  # this one is not lent yet
        return visitor

    async def wave(self, harness: GatewayHarness, first: int) -> None:
        """Some conversations from their beginning to their end, each in another way."""
        numbers = range(first, first + WAVE)
        await asyncio.gather(*(self._converse(harness, number) for number in numbers))
        await harness.wait_until_idle()
        for number in numbers:
            if number % 5 == 3:
                await harness.store.reset_session(harness.key(f"p{number}"))
        await harness.clock.advance(seconds=2)  # whoever was interrupted is answered
        harness.platform.sent.clear()
        harness.platform.attempts.clear()
        harness.platform.typing_shown.clear()
        running = sum(1 for number in numbers if harness.gateway.running_turn(harness.key(f"p{number}")))
        assert running == 0
        assert len(self.live) <= SIZE

    async def _converse(self, harness: GatewayHarness, number: int) -> None:
        person = f"p{number}"
        texts: dict[int, tuple[str, ...]] = {1: ("fail",), 2: ("hang", "again"), 3: ("hang",)}
        for text in texts.get(number % 5, ("hello",)):
            message = InboundMessage(source=harness.platform.source(person), text=text)
            assert isinstance(await harness.gateway.submit(message), Accepted)
            for _ in range(10):
                await asyncio.sleep(0.001)


@pytest.mark.parametrize(
    "conversations",
    [FEW, pytest.param(MANY, marks=[pytest.mark.soak, pytest.mark.timeout(SOAK_SECONDS)])],
)
async def test_conversations_that_come_and_go_leave_nothing_behind(
    tmp_path: Path, conversations: int, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.CRITICAL, "gateway_sessions")  # what is logged would be kept, with all it holds
    churn = Churn()
    config = replace(
        busy_config(BusyMode.INTERRUPT),
        agent_cache=AgentCacheConfig(size=SIZE),
        cache=CacheConfig(entries=SIZE),
    )
    await asyncio.to_thread(str)  # the loop's own threads are not what is counted
    before = Holdings.now()
    async with open_harness(tmp_path, config, agent_factory=churn.make) as harness:
        churn.harness = harness
        third = conversations // 3 // WAVE * WAVE
        counts: list[Holdings] = []
        for first in range(0, conversations, WAVE):
            await churn.wave(harness, first)
            if first in {third, conversations - WAVE}:
                counts.append(Holdings.now())
        early, late = counts
        assert (late.threads, late.descriptors) == (early.threads, early.descriptors)
        assert late.tasks <= early.tasks + DUTIES
        assert late.objects <= early.objects + LEFTOVER
        assert late.resident <= early.resident + MOST_GROWTH + early.resident // OF_OTHERS
        assert churn.made >= conversations
        assert churn.most <= SIZE + 2 * WAVE  # those that work, and those that are being closed
    assert churn.live == set()
    churn.harness = None
    del harness
    after = Holdings.now()
    assert (after.tasks, after.descriptors) == (before.tasks, before.descriptors)
    assert after.threads <= before.threads + POOL
