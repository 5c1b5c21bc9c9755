"""How a turn comes by its agent, and what becomes of the agent afterwards."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from gateway_sessions.core.agent_config import AgentValidity, agent_config_hash
from gateway_sessions.core.replay import Chat
from gateway_sessions.core.session import SessionEntry
from gateway_sessions.runtime.agent_cache import AgentCache
from gateway_sessions.runtime.agents import Agent, AgentSource

AgentSettings: TypeAlias = Callable[[SessionEntry], Mapping[str, object]]
"""What an agent is made with; one that was made with other settings is not used again."""


@dataclass(slots=True, eq=False)
class Loan:
    """An agent, for one turn."""

    agent: Agent
    validity: AgentValidity | None = field(default=None, init=False)

    def keep(self, validity: AgentValidity) -> None:
        """The turn is stored: keep the agent for the next one, which must be of this *validity*."""
        self.validity = validity


@asynccontextmanager
async def lend(
    source: AgentSource,
    cache: AgentCache,
    entry: SessionEntry,
    history: Callable[[], Awaitable[list[Chat]]],
    validity: AgentValidity,
) -> AsyncGenerator[Loan]:
    """Lend the agent that all sessions share, the lane's warm one, or a new one, made from the *history*.

    It is closed at the end unless the block has said `keep` and ended well: an agent that was interrupted, or
    has seen what was never stored, must not answer again.
    """
    if source.shared is not None:
        yield Loan(source.shared)
        return
    agent = cache.check_out(entry.session_key, validity)
    if agent is None:
        agent = await source.build(entry, await history())
        cache.adopt(entry.session_key, agent)
    loan = Loan(agent)
    kept: AgentValidity | None = None
    try:
        yield loan
        kept = loan.validity
    finally:
        if kept is None:
            cache.discard(agent)
        else:
            cache.check_in(agent, kept)


def validity_of(
    entry: SessionEntry, version: tuple[int, ...], settings: AgentSettings | None
) -> AgentValidity:
    """What an agent of that session has to have seen, and been made with."""
    made_with = dict(settings(entry)) if settings is not None else {}
    chosen = dict(entry.model_override or {})
    return AgentValidity(
        entry.session_id, version, agent_config_hash({"settings": made_with, "model": chosen})
    )
