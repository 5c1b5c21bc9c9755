"""How a turn comes by its agent, and what becomes of the agent afterwards."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Self, TypeAlias

from gateway_sessions.core.agent_config import AgentValidity, agent_config_hash
from gateway_sessions.core.replay import Chat
from gateway_sessions.core.session import SessionEntry
from gateway_sessions.runtime.agent_cache import AgentCache
from gateway_sessions.runtime.agents import Agent, AgentSource
from gateway_sessions.runtime.foreign_code import called

AgentSettings: TypeAlias = Callable[[SessionEntry], Mapping[str, object]]
"""What an agent is made with; one that was made with other settings is not used again."""


class Loan:
    """An agent, for one turn: for the time of a block.

    It is closed at the end unless the block has said `keep` and ended well: an agent that was interrupted, or
    has seen what was never stored, must not answer again.
    """

    __slots__ = ("_cache", "_kept", "agent", "asked")

    def __init__(self, cache: AgentCache, agent: Agent, asked: AgentValidity) -> None:
        self._cache = cache
        self._kept: AgentValidity | None = None
        self.agent = agent
        self.asked = asked
        """What it had to be like."""

    def keep(self, validity: AgentValidity) -> None:
        """The turn is stored: keep the agent for the next one, which must be of this *validity*."""
        self._kept = validity

    def __enter__(self) -> Self:
        return self

    def __exit__(self, exc_type: type[BaseException] | None, *_: object) -> None:
        if exc_type is not None or self._kept is None:
            self._cache.discard(self.agent)
        else:
            self._cache.check_in(self.agent, self._kept)


async def lend(
    source: AgentSource,
    cache: AgentCache,
    entry: SessionEntry,
    history: Callable[[], Awaitable[list[Chat]]],
    validity: AgentValidity,
) -> Loan:
    """Lend the lane's warm agent, or a new one, made from the *history*."""
    agent = cache.check_out(entry.session_key, validity)
    if agent is None:
        agent = await made(source, cache, entry, await history())
    return Loan(cache, agent, validity)


async def made(source: AgentSource, cache: AgentCache, entry: SessionEntry, history: list[Chat]) -> Agent:
    """A new agent for the session; the caller has to give it back to the *cache*."""
    return await cache.make(entry.session_key, partial(source.build, entry, history))


def validity_of(
    entry: SessionEntry, version: tuple[int, ...], settings: AgentSettings | None
) -> AgentValidity:
    """What an agent of that session has to have seen, and been made with."""
    made_with = dict(called("agent_settings", settings, entry)) if settings is not None else {}
    chosen = dict(entry.model_override or {})
    return AgentValidity(
        entry.session_id, version, agent_config_hash({"settings": made_with, "model": chosen})
    )
