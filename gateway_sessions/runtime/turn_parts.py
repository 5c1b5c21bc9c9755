"""What a turn needs of the gateway that it runs in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from gateway_sessions.ports import Clock
from gateway_sessions.runtime.agent_cache import AgentCache
from gateway_sessions.runtime.agent_lending import AgentSettings
from gateway_sessions.runtime.agents import AgentSource
from gateway_sessions.runtime.delivery import Delivery
from gateway_sessions.runtime.overseer import Overseer
from gateway_sessions.runtime.running import RunningTurn
from gateway_sessions.runtime.store import SessionStore
from gateway_sessions.runtime.turn import Turn

Gate: TypeAlias = Callable[[Turn], Awaitable["Passage"]]


@dataclass(frozen=True, slots=True)
class Passage:
    """Whether a turn may run, and what people are told first."""

    allowed: bool = True
    notice: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnParts:
    """The parts of a gateway that a turn touches."""

    store: SessionStore
    clock: Clock
    source: AgentSource
    cache: AgentCache
    delivery_for: Callable[[str, str], Delivery | None]
    may_go_on: Callable[[RunningTurn], bool]
    """Whether the lane's next turn may follow at once."""
    gate: Gate
    over: Callable[[Turn, str], object]
    """Told how each turn ended."""
    settings: AgentSettings | None = None
    timeout: timedelta | None = None
    overseer: Overseer
