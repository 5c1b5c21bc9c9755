"""No sequence of turns, evictions and hours makes the cache lose an agent, or close one twice.

The model is one ordered dictionary of idle agents and one list of those that work.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import anyio
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gateway_sessions.config import AgentCacheConfig
from gateway_sessions.core.sessions.agent_validity import AgentValidity
from gateway_sessions.runtime.agents.cache import AgentCache, WeightLimit
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.agents import ScriptedAgent

TTL = timedelta(hours=1)
KEYS = st.sampled_from("abcde")
VALIDITIES = st.builds(AgentValidity, st.just("s"), st.tuples(st.integers(0, 1)), st.just("c"))
WEIGHTS = st.integers(0, 7)
MOST = 10
PATIENCE = 20
"""Turns of the loop in which an agent that does not hang is closed."""


async def fail() -> None:
    raise OSError


async def close_well() -> None:
    await asyncio.sleep(0)


async def hang() -> None:
    await asyncio.Event().wait()


CLOSINGS = st.sampled_from([close_well, close_well, fail, hang])


class Weighed(ScriptedAgent):
    weight = 0


@dataclass
class Idle:
    agent: Weighed
    validity: AgentValidity
    until: datetime


@dataclass
class Lent:
    key: str
    agent: Weighed
    evicted: bool = False


class CacheMachine(RuleBasedStateMachine):
    """Turns of five lanes, in any order, against a cache that has room for three agents."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.now = datetime.min.replace(tzinfo=UTC)
        """As the cache knows it: it looks when it must, and never back."""
        self.runner = asyncio.Runner()
        self.over = asyncio.Event()
        self.made: list[Weighed] = []
        self.idle: OrderedDict[str, Idle] = OrderedDict()
        self.lent: list[Lent] = []
        self.stopped = False

    @initialize(weighed=st.booleans())
    def open(self, weighed: bool) -> None:
        weight = WeightLimit(MOST, lambda agent: agent.weight) if weighed else None
        config = AgentCacheConfig(size=3, idle=TTL)
        self.most = MOST if weighed else None

        async def host() -> None:
            async with anyio.create_task_group() as tasks:
                self.cache = AgentCache(tasks, self.clock, config, weight=weight)
                await self.over.wait()

        async def start() -> asyncio.Task[None]:
            task = asyncio.create_task(host())
            await asyncio.sleep(0)
            return task

        self.host = self.runner.run(start())

    def do(self, call, *args):
        """Make a call on the loop, and let everything that it sets going come to rest."""

        async def work():
            outcome = call(*args)
            for _ in range(PATIENCE):
                await asyncio.sleep(0)
            return outcome

        return self.runner.run(work())

    # The rules, on both sides

    @rule(key=KEYS, validity=VALIDITIES, closing=CLOSINGS)
    def begin_a_turn(self, key, validity, closing):
        agent = self.do(self.cache.check_out, key, validity)
        self.expire()
        found = self.idle.pop(key, None)
        assert agent is (found.agent if found is not None and found.validity == validity else None)
        if agent is None:
            agent = Weighed(closing=closing)
            self.made.append(agent)
            self.cache.adopt(key, agent)
        self.lent.append(Lent(key, agent))

    @rule(number=st.integers(0, 9), validity=VALIDITIES, weight=WEIGHTS)
    def end_a_turn(self, number, validity, weight):
        if not self.lent:
            return
        one = self.lent.pop(number % len(self.lent))
        one.agent.weight = weight
        self.do(self.cache.check_in, one.agent, validity)
        if one.evicted or self.stopped:
            return
        self.expire()
        self.idle.pop(one.key, None)
        if len(self.idle) == 3:
            self.idle.popitem(last=False)
        self.idle[one.key] = Idle(one.agent, validity, self.now + TTL)
        while self.most is not None and sum(idle.agent.weight for idle in self.idle.values()) > self.most:
            self.idle.popitem(last=False)

    @rule(number=st.integers(0, 9))
    def fail_a_turn(self, number):
        if self.lent:
            self.do(self.cache.discard, self.lent.pop(number % len(self.lent)).agent)

    @rule(key=KEYS)
    def evict(self, key):
        there_was_any = self.do(self.cache.evict, key)
        self.expire()
        lent = [one for one in self.lent if one.key == key]
        for one in lent:
            one.evicted = True
        assert there_was_any is (bool(lent) or self.idle.pop(key, None) is not None)
        self.idle.pop(key, None)

    @rule()
    def sweep(self):
        before = len(self.idle)
        swept = self.do(self.cache.sweep)
        self.expire()
        assert swept == before - len(self.idle)

    @rule(minutes=st.integers(1, 70))
    def pass_time(self, minutes):
        self.runner.run(self.clock.advance(minutes=minutes))

    @rule(minutes=st.integers(-70, -1))
    def set_the_clock_back(self, minutes):
        self.clock.step(minutes=minutes)

    @rule(key=KEYS, validity=VALIDITIES, closing=CLOSINGS, weight=WEIGHTS)
    def take_a_whole_turn(self, key, validity, closing, weight):
        self.begin_a_turn(key, validity, closing)
        self.end_a_turn(len(self.lent) - 1, validity, weight)

    @precondition(lambda self: len(self.made) > 8)
    @rule()
    def stop(self):
        if self.idle:
            self.expire()
        self.idle.clear()
        self.stopped = True
        self.runner.run(self.closed())

    def expire(self) -> None:
        self.now = max(self.now, self.clock.now())
        for key in [key for key, one in self.idle.items() if one.until <= self.now]:
            del self.idle[key]

    async def closed(self) -> None:
        """Wait for the end of the cache; time passes for agents that hang."""
        ending = asyncio.create_task(self.cache.aclose())
        await self.clock.advance(seconds=40)
        await ending

    # What must hold

    @invariant()
    def an_agent_is_closed_if_and_only_if_nobody_has_it(self):
        kept = {id(one.agent) for one in (*self.idle.values(), *self.lent)}
        assert [agent.closes for agent in self.made] == [int(id(agent) not in kept) for agent in self.made]

    @invariant()
    def the_cache_knows_what_it_has(self):
        counts = self.cache.counts
        assert (counts.idle, counts.lent) == (len(self.idle), len(self.lent))
        assert counts.idle <= 3
        assert self.most is None or counts.weight <= self.most

    def teardown(self):
        for one in self.lent:
            self.do(self.cache.discard, one.agent)
        self.runner.run(self.closed())
        assert {agent.closes for agent in self.made} <= {1}
        assert self.cache.counts.closing == 0
        self.over.set()
        self.runner.run(self.finished())
        self.runner.close()

    async def finished(self) -> None:
        await self.host


CacheMachine.TestCase.settings = settings(stateful_step_count=30)
TestCache = pytest.mark.timeout(120)(CacheMachine.TestCase)
