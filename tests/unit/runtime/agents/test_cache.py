"""Warm agents: handed out only where they fit, never evicted while they work, and closed exactly once."""

from __future__ import annotations

import asyncio
import gc
import itertools
import logging
import threading
import weakref
from collections.abc import AsyncIterator
from contextlib import suppress
from contextvars import ContextVar
from datetime import timedelta

import anyio
import pytest

from gateway_sessions.config import AgentCacheConfig
from gateway_sessions.core.sessions.agent_validity import AgentValidity
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.runtime.agents.cache import AgentCache, WeightLimit, lend_agent
from gateway_sessions.runtime.agents.protocol import AgentSource
from gateway_sessions.runtime.user_code import GRACE, PATIENCE
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.agents import ScriptedAgent, ScriptedAgents
from tests.unit.runtime.turn_contexts import agent_version, empty_history, entry_of, wait_until

canary: ContextVar[str] = ContextVar("canary", default="none")
SMALL = AgentCacheConfig(size=2)


class Plain:
    """An agent that holds nothing."""

    async def run_turn(self, turn):
        return "hi"


@pytest.fixture
async def tasks() -> AsyncIterator[anyio.abc.TaskGroup]:
    """A group in a task of its own, because fixtures begin and end in different ones."""
    opened: asyncio.Future[anyio.abc.TaskGroup] = asyncio.get_running_loop().create_future()
    over = asyncio.Event()

    async def host() -> None:
        async with anyio.create_task_group() as group:
            opened.set_result(group)
            await over.wait()

    task = asyncio.create_task(host())
    yield await opened
    over.set()
    await task


@pytest.fixture
def cache(tasks, fake_clock) -> AgentCache:
    return AgentCache(tasks, fake_clock, SMALL)


def keep(cache: AgentCache, key: str, agent=None, validity: AgentValidity | None = None) -> ScriptedAgent:
    """Let a new agent have had its first turn."""
    agent = agent or ScriptedAgent()
    cache.adopt(key, agent)
    cache.check_in(agent, validity or agent_version())
    return agent


async def settled(cache: AgentCache) -> None:
    """Wait until nothing is being closed."""
    await wait_until(lambda: not cache.counts.closing)


def alive(cache: AgentCache) -> tuple[int, int, int]:
    counts = cache.counts
    return counts.idle, counts.lent, counts.closing


class TestHits:
    async def test_an_idle_agent_is_lent_to_a_turn_of_its_lane(self, cache):
        agent = keep(cache, "a")
        assert cache.check_out("a", agent_version()) is agent
        assert alive(cache) == (0, 1, 0)

    async def test_an_agent_is_lent_to_one_turn_at_a_time(self, cache):
        keep(cache, "a")
        cache.check_out("a", agent_version())
        assert cache.check_out("a", agent_version()) is None

    async def test_nobody_gets_the_agent_of_another_lane(self, cache):
        keep(cache, "a")
        assert cache.check_out("b", agent_version()) is None
        assert alive(cache) == (1, 0, 0)

    @pytest.mark.parametrize(
        "asked",
        [agent_version(1), agent_version(session="s2"), agent_version(config="d")],
        ids=["wrote", "reset", "reconfigured"],
    )
    async def test_an_agent_that_does_not_fit_is_closed_and_not_lent(self, cache, asked):
        agent = keep(cache, "a")
        assert cache.check_out("a", asked) is None
        await settled(cache)
        assert (agent.closes, alive(cache)) == (1, (0, 0, 0))

    async def test_an_agent_s_own_turns_keep_it_warm(self, cache):
        agent = keep(cache, "a", validity=agent_version(1))
        for number in range(1, 5):
            assert cache.check_out("a", agent_version(number)) is agent
            cache.check_in(agent, agent_version(number + 1))
        assert agent.closes == 0

    async def test_what_somebody_else_wrote_makes_a_new_agent(self, cache):
        keep(cache, "a", validity=agent_version(1))
        assert cache.check_out("a", agent_version(2)) is None

    async def test_hits_and_misses_are_counted(self, cache):
        keep(cache, "a")
        for key in "aab":
            cache.check_out(key, agent_version())
        assert (cache.counts.hits, cache.counts.misses) == (1, 2)


class TestRoom:
    async def test_the_least_recently_used_agent_makes_room(self, cache):
        first, second = keep(cache, "a"), keep(cache, "b")
        cache.check_in(cache.check_out("a", agent_version()), agent_version())
        third = keep(cache, "c")
        await settled(cache)
        assert [one.closes for one in (first, second, third)] == [0, 1, 0]

    async def test_agents_that_work_take_no_room_and_are_never_evicted(self, cache):
        working = [ScriptedAgent() for _ in range(5)]
        for number, agent in enumerate(working):
            cache.adopt(str(number), agent)
        kept = [keep(cache, "a"), keep(cache, "b")]
        await settled(cache)
        assert alive(cache) == (2, 5, 0)
        assert [one.closes for one in working + kept] == [0] * 7

    async def test_a_second_agent_of_a_lane_replaces_the_first(self, cache):
        first, second = ScriptedAgent(), ScriptedAgent()
        cache.adopt("a", first)
        cache.adopt("a", second)
        cache.check_in(first, agent_version())
        cache.check_in(second, agent_version())
        await settled(cache)
        assert (first.closes, second.closes) == (1, 0)
        assert cache.check_out("a", agent_version()) is second

    async def test_nothing_is_closed_twice_nor_taken_back_twice(self, cache):
        agent = keep(cache, "a")
        for again in (lambda: cache.check_in(agent, agent_version()), lambda: cache.discard(agent)):
            with pytest.raises(InvalidInputError, match="only once"):
                again()
        assert cache.check_out("a", agent_version()) is agent
        cache.discard(agent)
        with pytest.raises(InvalidInputError, match="only once"):
            cache.discard(agent)
        await settled(cache)
        assert agent.closes == 1

    async def test_one_agent_cannot_serve_two_lanes(self, cache):
        agent = keep(cache, "a")
        with pytest.raises(InvalidInputError, match=r"made for 'b' serves 'a' already.*agent="):
            cache.adopt("b", agent)
        assert cache.check_out("a", agent_version()) is agent


class Heavy(ScriptedAgent):
    def __init__(self, weight: int) -> None:
        super().__init__()
        self.weight = weight


def weigh(agent) -> int:
    return agent.weight


class TestWeight:
    @pytest.fixture
    def cache(self, tasks, fake_clock) -> AgentCache:
        return AgentCache(tasks, fake_clock, AgentCacheConfig(), weight=WeightLimit(10, weigh))

    async def test_idle_agents_together_never_weigh_more_than_the_limit(self, cache):
        agents = [keep(cache, str(weight), Heavy(weight)) for weight in (4, 3, 3, 5)]
        await settled(cache)
        assert [one.closes for one in agents] == [1, 1, 0, 0]
        assert (cache.counts.weight, cache.counts.idle) == (8, 2)

    async def test_an_agent_too_heavy_for_the_cache_drives_nobody_out(self, cache):
        light, heavy = keep(cache, "a", Heavy(1)), keep(cache, "b", Heavy(11))
        await settled(cache)
        assert (light.closes, heavy.closes) == (0, 1)

    async def test_an_agent_is_weighed_after_each_turn(self, cache):
        agent = keep(cache, "a", Heavy(1))
        cache.check_out("a", agent_version())
        agent.weight = 11
        cache.check_in(agent, agent_version())
        await settled(cache)
        assert agent.closes == 1

    async def test_a_negative_weight_makes_no_room(self, cache):
        keep(cache, "a", Heavy(-100))
        assert cache.counts.weight == 0

    async def test_an_agent_that_cannot_be_weighed_is_not_kept(self, cache, caplog):
        with caplog.at_level(logging.WARNING):
            agent = keep(cache, "a", ScriptedAgent())
        await settled(cache)
        assert agent.closes == 1
        (record,) = caplog.records
        assert (record.action, record.session_key) == ("agent_weight_unknown", "a")
        assert "AttributeError" in record.problem


class TestIdleness:
    async def test_an_agent_idle_for_too_long_is_closed_by_the_next_pass(self, cache, fake_clock):
        agent = keep(cache, "a")
        fake_clock.step(minutes=59, seconds=59)
        assert cache.sweep() == 0
        fake_clock.step(seconds=1)
        assert cache.sweep() == 1
        await settled(cache)
        assert agent.closes == 1
        assert cache.sweep() == 0

    async def test_an_agent_idle_for_too_long_is_never_lent(self, cache, fake_clock):
        agent = keep(cache, "a")
        fake_clock.step(hours=1)
        assert cache.check_out("a", agent_version()) is None
        await settled(cache)
        assert agent.closes == 1

    async def test_the_time_of_a_turn_is_not_idle(self, cache, fake_clock):
        agent = keep(cache, "a")
        cache.check_out("a", agent_version())
        fake_clock.step(days=1)
        assert cache.sweep() == 0
        cache.check_in(agent, agent_version())
        fake_clock.step(minutes=59)
        assert cache.check_out("a", agent_version()) is agent

    async def test_an_expired_agent_makes_way_for_its_successor(self, cache, fake_clock):
        first, second = keep(cache, "a"), ScriptedAgent()
        cache.adopt("a", second)
        fake_clock.step(hours=1)
        cache.check_in(second, agent_version())
        await settled(cache)
        assert (first.closes, second.closes) == (1, 0)

    async def test_setting_the_clock_back_keeps_nobody_longer_than_to_the_old_time(self, cache, fake_clock):
        keep(cache, "a")
        fake_clock.step(minutes=30)
        cache.sweep()
        fake_clock.step(days=-1)
        late = keep(cache, "b")
        fake_clock.step(days=1, minutes=30)
        assert cache.sweep() == 1
        assert cache.check_out("b", agent_version()) is late

    async def test_the_duty_sweeps_every_minute(self, cache, fake_clock, tasks):
        tasks.start_soon(cache.run)
        agent = keep(cache, "a")
        await fake_clock.advance(minutes=59)
        assert agent.closes == 0
        await fake_clock.advance(minutes=1)
        assert agent.closes == 1
        tasks.cancel_scope.cancel()


class TestEviction:
    async def test_an_evicted_agent_is_closed(self, cache):
        agent = keep(cache, "a")
        assert cache.evict("a")
        await settled(cache)
        assert agent.closes == 1
        assert cache.check_out("a", agent_version()) is None

    async def test_an_agent_that_works_is_closed_when_it_comes_back(self, cache):
        agent = keep(cache, "a")
        cache.check_out("a", agent_version())
        assert cache.evict("a")
        await asyncio.sleep(0)
        assert agent.closes == 0
        cache.check_in(agent, agent_version())
        await settled(cache)
        assert agent.closes == 1

    async def test_the_agents_of_other_lanes_stay(self, cache):
        agent = keep(cache, "a")
        assert not cache.evict("b")
        assert cache.check_out("a", agent_version()) is agent


class TestClosing:
    async def test_an_agent_that_cannot_be_closed_is_just_let_go(self, cache):
        keep(cache, "a", Plain())
        assert cache.evict("a")
        assert alive(cache) == (0, 0, 0)

    async def test_a_failure_is_logged_and_nobody_else_s(self, cache, caplog):
        async def fail() -> None:
            raise OSError("socket")

        keep(cache, "a", ScriptedAgent(closing=fail))
        other = keep(cache, "b")
        with caplog.at_level(logging.WARNING):
            cache.evict("a")
            await settled(cache)
        (record,) = caplog.records
        assert (record.action, record.session_key) == ("agent_close_failed", "a")
        assert record.problem == "OSError: socket"
        assert cache.check_out("b", agent_version()) is other

    async def test_one_that_takes_too_long_is_cut_off_and_delays_nobody(self, cache, fake_clock, caplog):
        slow = keep(cache, "a", ScriptedAgent(closing=anyio.Event().wait))
        cache.evict("a")
        await fake_clock.wait_for_sleepers(1)
        assert cache.check_out("a", agent_version()) is None
        quick = keep(cache, "a")
        cache.evict("a")
        await wait_until(lambda: quick.closes)
        with caplog.at_level(logging.WARNING):
            await fake_clock.advance(seconds=30)
        await settled(cache)
        assert [record.problem for record in caplog.records] == ["took longer than 30 s"]
        assert (slow.closes, alive(cache)) == (1, (0, 0, 0))

    async def test_it_sees_nothing_of_the_turn_that_made_room(self, cache):
        seen: list[str] = []

        async def look() -> None:
            seen.append(canary.get())

        keep(cache, "a", ScriptedAgent(closing=look))
        canary.set("somebody else's turn")
        cache.evict("a")
        await settled(cache)
        assert seen == ["none"]

    async def test_an_agent_that_is_being_closed_cannot_come_back(self, cache):
        agent = keep(cache, "a")
        cache.evict("a")
        with pytest.raises(InvalidInputError, match="being closed"):
            cache.adopt("a", agent)
        await settled(cache)


class TestTheEnd:
    async def test_all_idle_agents_are_closed_before_it_returns(self, cache):
        closed = anyio.Event()
        slow, quick = keep(cache, "a", ScriptedAgent(closing=closed.wait)), keep(cache, "b")
        ending = asyncio.create_task(cache.aclose())
        await wait_until(lambda: slow.closes and quick.closes)
        assert not ending.done()
        closed.set()
        await ending
        assert (slow.closes, quick.closes, alive(cache)) == (1, 1, (0, 0, 0))

    async def test_one_that_works_is_closed_when_it_comes_back(self, cache):
        agent = ScriptedAgent()
        cache.adopt("a", agent)
        await cache.aclose()
        assert agent.closes == 0
        cache.check_in(agent, agent_version())
        await settled(cache)
        assert agent.closes == 1

    async def test_an_expired_agent_is_closed_once_by_it(self, cache, fake_clock):
        agent = keep(cache, "a")
        fake_clock.step(hours=2)
        await cache.aclose()
        cache.sweep()
        await cache.aclose()
        assert (agent.closes, alive(cache)) == (1, (0, 0, 0))

    async def test_an_agent_that_expires_while_the_cache_ends_is_closed_once(self, fake_clock, tasks):
        class Ticking(FakeClock):
            def now(self):
                self.step(seconds=1)
                return super().now()

        for seconds in range(1, 30):
            config = AgentCacheConfig(idle=timedelta(seconds=seconds))
            cache = AgentCache(tasks, Ticking(), config)
            agents = [keep(cache, str(number)) for number in range(3)]
            await cache.aclose()
            assert [one.closes for one in agents] == [1, 1, 1]

    async def test_cancelling_the_tasks_waits_for_what_is_being_closed(self, fake_clock):
        closed: list[str] = []

        async def slowly() -> None:
            for _ in range(10):
                await asyncio.sleep(0)
            closed.append("closed")

        async with anyio.create_task_group() as tasks:
            cache = AgentCache(tasks, fake_clock, AgentCacheConfig())
            for key in "abc":
                keep(cache, key, ScriptedAgent(closing=slowly))
                cache.evict(key)
            tasks.cancel_scope.cancel()
            keep(cache, "late", ScriptedAgent(closing=slowly))
            cache.evict("late")
        assert closed == ["closed"] * 4


class TestLending:
    @pytest.fixture
    def agents(self) -> ScriptedAgents:
        return ScriptedAgents()

    async def test_the_first_turn_makes_an_agent_and_the_next_one_has_it_again(self, cache, agents):
        source = AgentSource(agent_factory=agents)
        lent = []
        for number in range(3):
            with await lend_agent(source, cache, entry_of("a"), empty_history, agent_version(number)) as loan:
                lent.append(loan.agent)
                loan.keep_agent(agent_version(number + 1))
        assert lent == [agents.made[0][1]] * 3

    async def test_an_agent_that_nobody_asks_to_keep_is_closed(self, cache, agents):
        with await lend_agent(
            AgentSource(agent_factory=agents), cache, entry_of("a"), empty_history, agent_version()
        ):
            pass
        await settled(cache)
        assert agents.open == []

    async def test_a_turn_that_fails_after_all_closes_its_agent(self, cache, agents):
        async def turn() -> None:
            source = AgentSource(agent_factory=agents)
            with await lend_agent(source, cache, entry_of("a"), empty_history, agent_version()) as loan:
                loan.keep_agent(agent_version(1))
                raise LookupError

        with pytest.raises(LookupError):
            await turn()
        await settled(cache)
        assert agents.open == []

    async def test_a_factory_that_hands_out_one_agent_twice_is_refused(self, cache):
        agent = ScriptedAgent()
        source = AgentSource(agent_factory=lambda entry, history: agent)
        with await lend_agent(source, cache, entry_of("a"), empty_history, agent_version()) as loan:
            with pytest.raises(InvalidInputError, match="agent="):
                await lend_agent(source, cache, entry_of("b"), empty_history, agent_version())
            loan.keep_agent(agent_version())
        assert cache.check_out("a", agent_version()) is agent

    async def test_a_cancellation_at_any_moment_leaves_no_agent_open(self, tasks, fake_clock):
        made: list[ScriptedAgent] = []

        async def pause() -> None:
            await asyncio.sleep(0)

        async def make(entry, history) -> ScriptedAgent:
            await pause()
            made.append(ScriptedAgent(closing=pause))
            return made[-1]

        async def turns(cache: AgentCache) -> None:
            source = AgentSource(agent_factory=make)
            for number in range(3):
                with await lend_agent(
                    source, cache, entry_of("a"), empty_history, agent_version(number % 2)
                ) as loan:
                    await pause()
                    loan.keep_agent(agent_version(1))
                    await pause()
            await cache.aclose()

        for moment in itertools.count():
            cache = AgentCache(tasks, fake_clock, SMALL)
            made.clear()
            task = asyncio.create_task(turns(cache))
            for _ in range(moment):
                await asyncio.sleep(0)
            finished = task.done()
            task.cancel()
            await asyncio.wait({task})
            await cache.aclose()
            assert [one.closes for one in made] == [1] * len(made)
            assert alive(cache) == (0, 0, 0)
            if finished:
                break
        assert moment > 10

    async def test_an_agent_that_comes_when_nobody_waits_any_more_is_closed_by_whoever_made_it(
        self, fake_clock
    ):
        free, made = asyncio.Event(), ScriptedAgent()

        async def build() -> ScriptedAgent:
            while not free.is_set():
                with suppress(asyncio.CancelledError):
                    await free.wait()
            return made

        async with anyio.create_task_group() as tasks:
            cache = AgentCache(tasks, fake_clock, SMALL)
            turn = asyncio.ensure_future(cache.make("a", build))
            await asyncio.sleep(0)
            turn.cancel()
            await fake_clock.advance(GRACE + PATIENCE)
            with pytest.raises(asyncio.CancelledError):
                await turn
            await cache.aclose()
        free.set()
        await wait_until(lambda: made.closes and alive(cache) == (0, 0, 0))
        assert made.closes == 1


class TestChurn:
    async def test_ten_thousand_sessions_leave_nothing_behind_but_a_full_cache(self, fake_clock):
        threads, before = threading.active_count(), len(asyncio.all_tasks())
        made: list[weakref.ref[ScriptedAgent]] = []
        closes = 0
        most_open = 0

        async def close() -> None:
            nonlocal closes
            closes += 1

        def make(entry, history) -> ScriptedAgent:
            agent = ScriptedAgent(closing=close)
            made.append(weakref.ref(agent))
            return agent

        async with anyio.create_task_group() as tasks:
            cache = AgentCache(tasks, fake_clock, AgentCacheConfig(size=16))
            source = AgentSource(agent_factory=make)
            for number in range(10_000):
                with await lend_agent(
                    source, cache, entry_of(f"lane {number}"), empty_history, agent_version()
                ) as loan:
                    loan.keep_agent(agent_version())
                if number % 100 == 99:
                    await settled(cache)
                    most_open = max(most_open, len(made) - closes)
            gc.collect()
            assert most_open == sum(one() is not None for one in made) == 16
            await cache.aclose()
        del loan
        gc.collect()
        assert (len(made), closes) == (10_000, 10_000)
        assert [one for one in made if one() is not None] == []
        assert (threading.active_count(), len(asyncio.all_tasks())) == (threads, before)
        assert vars(cache)["_owned"] == {}
