"""`TurnParts`: the parts of a gateway that each turn is given, and the answer whether a turn may run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeAlias

from gateway_sessions.core.queue.state_machine import TurnOutcome
from gateway_sessions.ports import Clock
from gateway_sessions.runtime.agents.cache import AgentCache, AgentSettings
from gateway_sessions.runtime.agents.protocol import AgentSource
from gateway_sessions.runtime.agents.system_prompts import SystemPrompts
from gateway_sessions.runtime.delivery.delivery import Delivery
from gateway_sessions.runtime.gateway.running_turn import RunningTurn
from gateway_sessions.runtime.gateway.watchdog import Watchdog
from gateway_sessions.runtime.queue.storage_faults import SpoiltTries
from gateway_sessions.runtime.queue.turn import Turn
from gateway_sessions.runtime.store.store import SessionStore

Gate: TypeAlias = Callable[[Turn], Awaitable["TurnAdmission"]]


@dataclass(frozen=True, slots=True)
class TurnAdmission:
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
    goes_on: Callable[[RunningTurn], bool | str]
    """Whether the lane's next turn may follow at once, or the lane whose turn takes the place of this one."""
    gate: Gate
    over: Callable[[Turn, TurnOutcome], object]
    """Told how each turn ended."""
    platforms: Collection[str] = ()
    """Those that are connected, as they are at any moment."""
    settings: AgentSettings | None = None
    timeout: timedelta | None = None
    watchdog: Watchdog
    prompts: SystemPrompts
    is_trusted: Callable[[], bool]
    """Whether no other node can have taken this one's turns over."""
    spoilt: SpoiltTries = field(default_factory=SpoiltTries)
    """The tries of turns that the database has spoilt."""
