"""The cache of warm agents: lent to turns, evicted by count, weight or age, each closed exactly once.

The cache holds idle agents only. A turn checks its agent out and returns it at the end, so no working agent
can be evicted, and the age of an agent is the time since its last turn. An agent that is let go is closed in
a task of its own, for which only `aclose` waits.

Every method but `make`, `aclose` and `run` works without awaiting, so no cancellation can come between.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto
from functools import partial
from typing import Any, Final, Self, TypeAlias

import anyio
from anyio.abc import TaskGroup
from cachetools import TTLCache

from gateway_sessions.config import AgentCacheConfig
from gateway_sessions.core.process_load import AgentCounts
from gateway_sessions.core.sessions.agent_validity import AgentValidity, agent_config_hash
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.transcript.model_history import Chat
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.ports import Clock
from gateway_sessions.runtime.agents.protocol import Agent, AgentSource, Closable
from gateway_sessions.runtime.duty import wait_for_next_pass
from gateway_sessions.runtime.user_code import (
    MAX_PROBLEM,
    call_user_code,
    problem_within,
    run_in_fresh_context,
)

logger: Final = logging.getLogger(__name__)

SWEEP_INTERVAL: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class WeightLimit:
    """A second limit, for agents that differ much in size: what all idle ones may weigh together."""

    most: int
    weigh: Callable[[Agent], int]
    """Asked when a turn returns its agent; must be quick."""


class _Place(Enum):
    """The place of an agent, from its first turn until it is closed."""

    LENT = auto()
    IDLE = auto()
    CLOSING = auto()


@dataclass(slots=True, eq=False)
class _Owned:
    """An agent that is not closed yet."""

    agent: Agent
    key: str
    place: _Place = _Place.LENT
    validity: AgentValidity | None = None
    weight: int = 0
    evicted: bool = False
    """Not to be kept when it comes back."""


class AgentCache:
    """Idle agents by session key: the least recently used one makes room, and one too long idle goes."""

    def __init__(
        self, tasks: TaskGroup, clock: Clock, config: AgentCacheConfig, *, weight: WeightLimit | None = None
    ) -> None:
        """Agents are closed in *tasks*, which must outlive every turn. Cancelling it waits for them."""
        self._tasks = tasks
        self._clock = clock
        self._close_timeout = config.close_timeout
        self._room = config.size
        self._weight_limit = weight
        self._idle = _IdleAgents(config, _forward_only_timer(clock), self._close_in_background)
        self._owned: dict[int, _Owned] = {}
        """By identity, which is theirs alone as long as they stand in here."""
        self._stopped = False
        self._closed_one = anyio.Event()
        self._hits = self._misses = 0

    def check_out(self, key: str, validity: AgentValidity) -> Agent | None:
        """Lend the lane's agent, if there is one that fits; another one of that lane is closed."""
        owned = self._take_idle(key)
        if owned is not None and owned.validity == validity:
            self._hits += 1
            owned.place = _Place.LENT
            return owned.agent
        self._misses += 1
        if owned is not None:
            self._close_in_background(owned)
        return None

    def holds(self, key: str, validity: AgentValidity) -> bool:
        """Return whether the lane has an idle agent of that validity; another agent stays."""
        owned = self._idle.get(key)
        return owned is not None and owned.validity == validity

    def adopt(self, key: str, agent: Agent) -> None:
        """Take over a new agent that is lent to a turn of the lane already: it is closed here one day."""
        if (known := self._owned.get(id(agent))) is not None:
            problem = (
                f"the agent made for {key!r} serves {known.key!r} already, or is being closed: "
                "make a new one each time, or give one as agent= that all sessions share"
            )
            raise InvalidInputError(problem)
        self._owned[id(agent)] = _Owned(agent, key)

    async def make(self, key: str, build: Callable[[], Awaitable[Agent]]) -> Agent:
        """A new agent, lent to a turn of the lane. One that comes when its turn was stopped is closed."""
        made: list[Agent] = []
        wanted = True

        async def work() -> Agent:
            agent = await build()
            self.adopt(key, agent)
            made.append(agent)
            if not wanted:  # it was left alone, perhaps for so long that nobody closes agents any more
                owned = self._find_lent(agent)
                if (closable := self._begin_closing(owned)) is not None:
                    await self._close_agent(owned, closable)
            return agent

        try:
            return await run_in_fresh_context("the making of an agent", work, self._clock)
        except asyncio.CancelledError:
            wanted = False
            for agent in made:
                self.discard(agent)
            raise

    def check_in(self, agent: Agent, validity: AgentValidity) -> None:
        """Take an agent back and keep it for a turn of the same *validity*."""
        owned = self._find_lent(agent)
        if owned.evicted or self._stopped or not self._fits_weight_limit(owned):
            self._close_in_background(owned)
            return
        if (former := self._take_idle(owned.key)) is not None:
            self._close_in_background(former)
        owned.place, owned.validity = _Place.IDLE, validity
        self._idle[owned.key] = owned
        with suppress(KeyError):  # the last ones have been idle for too long since
            while self._weight_limit is not None and self._idle_weight() > self._weight_limit.most:
                self._idle.popitem()

    def discard(self, agent: Agent) -> None:
        """Take an agent back and close it, because nobody knows what it has seen."""
        self._close_in_background(self._find_lent(agent))

    def evict(self, key: str) -> bool:
        """Let go of the lane's agent; of one that works, when it comes back. Tell whether there was any."""
        lent = [one for one in self._agents_at(_Place.LENT) if one.key == key]
        for one in lent:
            one.evicted = True
        idle = self._take_idle(key)
        if idle is not None:
            self._close_in_background(idle)
        return bool(lent) or idle is not None

    def evict_all(self) -> None:
        """Let go of the agents of all lanes: none may remember any more what was said before."""
        for key in {one.key for one in self._owned.values()}:
            self.evict(key)

    @property
    def counts(self) -> AgentCounts:
        """What there is now."""
        return AgentCounts(
            idle=len(self._agents_at(_Place.IDLE)),
            room=self._room,
            lent=len(self._agents_at(_Place.LENT)),
            closing=len(self._agents_at(_Place.CLOSING)),
            weight=self._idle_weight(),
            hits=self._hits,
            misses=self._misses,
        )

    async def run(self) -> None:
        """One pass after another, until cancelled."""
        while True:
            await wait_for_next_pass(self._clock, SWEEP_INTERVAL, self)
            self.sweep()

    def state(self) -> object:
        """Return whether any agent is idle: one may be let go of at any pass."""
        return bool(self._agents_at(_Place.IDLE))

    async def next_due(self) -> datetime | None:
        """Return now while any agent is idle; without one there is nothing to let go of."""
        return self._clock.now() if self._agents_at(_Place.IDLE) else None

    def sweep(self) -> int:
        """Let go of agents that have been idle for too long; how many."""
        return len(self._idle.expire())

    async def aclose(self) -> None:
        """Let go of all idle agents and wait until all are closed; those that work are closed afterwards."""
        self._stopped = True
        for one in self._agents_at(_Place.IDLE):
            if (owned := self._take_idle(one.key)) is not None:
                self._close_in_background(owned)
        while self._agents_at(_Place.CLOSING):
            self._closed_one = anyio.Event()
            await self._closed_one.wait()

    def _find_lent(self, agent: Agent) -> _Owned:
        owned = self._owned.get(id(agent))
        if owned is None or owned.place is not _Place.LENT:
            problem = "only an agent that was lent can be given back, and only once"
            raise InvalidInputError(problem)
        return owned

    def _take_idle(self, key: str) -> _Owned | None:
        """Take the lane's idle agent out. All that have been idle for too long are let go."""
        owned = self._idle.pop(key, None)
        self._idle.expire()
        return owned

    def _agents_at(self, place: _Place) -> list[_Owned]:
        return [one for one in self._owned.values() if one.place is place]

    def _idle_weight(self) -> int:
        return sum(one.weight for one in self._agents_at(_Place.IDLE))

    def _fits_weight_limit(self, owned: _Owned) -> bool:
        """Weigh an agent; tell whether there could be room for it at all."""
        if (limit := self._weight_limit) is None:
            return True
        try:
            owned.weight = max(call_user_code("the weighing of an agent", limit.weigh, owned.agent), 0)
        except Exception as error:  # noqa: BLE001 -- foreign code: its failure costs a warm agent at most
            problem = f"{type(error).__name__}: {error}"[:MAX_PROBLEM]
            facts = {"action": "agent_weight_unknown", "session_key": owned.key, "problem": problem}
            logger.warning("an agent could not be weighed", extra=facts)
            return False
        return owned.weight <= limit.most

    def _close_in_background(self, owned: _Owned) -> None:
        """Close an agent that stands nowhere else any more."""
        if (closable := self._begin_closing(owned)) is not None:
            self._tasks.start_soon(self._close_agent, owned, closable)

    def _begin_closing(self, owned: _Owned) -> Closable | None:
        """The agent to be closed; None if there is nothing to close, so it is forgotten at once."""
        owned.place = _Place.CLOSING
        if isinstance(owned.agent, Closable):
            return owned.agent
        del self._owned[id(owned.agent)]
        return None

    async def _close_agent(self, owned: _Owned, agent: Closable) -> None:
        try:
            with anyio.CancelScope(shield=True):
                problem = await problem_within(self._close_timeout, self._clock, agent.aclose)
                if problem is not None:
                    facts = {"action": "agent_close_failed", "session_key": owned.key, "problem": problem}
                    logger.warning("an agent could not be closed", extra=facts)
        finally:
            del self._owned[id(agent)]
            self._closed_one.set()


class _IdleAgents(TTLCache[str, _Owned]):
    """Tells of everything that it drops by itself."""

    def __init__(
        self, config: AgentCacheConfig, timer: Callable[[], float], dropped: Callable[[_Owned], None]
    ) -> None:
        super().__init__(config.size, config.idle.total_seconds(), timer=timer)
        self._dropped = dropped

    def expire(self, time: Any = None) -> list[tuple[str, _Owned]]:
        expired = list(super().expire(time))
        for _, owned in expired:
            self._dropped(owned)
        return expired

    def popitem(self) -> tuple[str, _Owned]:
        key, owned = super().popitem()
        self._dropped(owned)
        return key, owned


def _forward_only_timer(clock: Clock) -> Callable[[], float]:
    """Seconds that stand still while a clock that was set back catches up."""
    latest: Final = [-math.inf]

    def tick() -> float:
        latest[0] = max(latest[0], clock.now().timestamp())
        return latest[0]

    return tick


AgentSettings: TypeAlias = Callable[[SessionEntry], Mapping[str, object]]
"""Returns the settings that an agent is made with; an agent of other settings is not used again."""


class AgentLoan:
    """An agent, for one turn: for the time of a block.

    It is closed at the end unless the block has said `keep` and ended well: an agent that was interrupted, or
    has seen what was never stored, must not answer again.
    """

    __slots__ = ("_cache", "_kept", "agent", "asked")

    def __init__(self, cache: AgentCache, agent: Agent, asked: AgentValidity) -> None:
        self._cache = cache
        self._kept: AgentValidity | None = None
        self.agent: Agent = agent
        self.asked: AgentValidity = asked
        """The validity that the turn asked for."""

    def keep_agent(self, validity: AgentValidity) -> None:
        """The turn is stored: keep the agent for the next one, which must be of this *validity*."""
        self._kept = validity

    def __enter__(self) -> Self:
        return self

    def __exit__(self, exc_type: type[BaseException] | None, *_: object) -> None:
        if exc_type is not None or self._kept is None:
            self._cache.discard(self.agent)
        else:
            self._cache.check_in(self.agent, self._kept)


async def lend_agent(
    source: AgentSource,
    cache: AgentCache,
    entry: SessionEntry,
    history: Callable[[], Awaitable[list[Chat]]],
    validity: AgentValidity,
) -> AgentLoan:
    """Lend the lane's warm agent, or a new one, made from the *history*."""
    agent = cache.check_out(entry.session_key, validity)
    if agent is None:
        agent = await make_agent(source, cache, entry, await history())
    return AgentLoan(cache, agent, validity)


async def make_agent(
    source: AgentSource, cache: AgentCache, entry: SessionEntry, history: list[Chat]
) -> Agent:
    """A new agent for the session; the caller has to give it back to the *cache*."""
    return await cache.make(entry.session_key, partial(source.make_agent, entry, history))


def validity_of(
    entry: SessionEntry, version: tuple[int, ...], settings: AgentSettings | None
) -> AgentValidity:
    """Return the transcript that an agent must have seen, and the settings it must be made with."""
    made_with = dict(call_user_code("agent_settings", settings, entry)) if settings is not None else {}
    chosen = dict(entry.model_override or {})
    return AgentValidity(
        entry.session_id, version, agent_config_hash({"settings": made_with, "model": chosen})
    )
