"""The counts that `gsess top` and the health page show of a process: agents, turns, loop lag."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCounts:
    """What the cache knows of agents now, and how often it had the right one."""

    idle: int
    room: int
    """For so many idle ones."""
    lent: int
    closing: int
    weight: int
    hits: int
    misses: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopLag:
    """How long what was ready had to wait for its turn of the event loop, in the last minute or so."""

    usual_ms: float
    """One wait of two was no longer."""
    worst_ms: float

    @classmethod
    def of(cls, late: Sequence[float]) -> Self | None:
        """Of waits in seconds; None if there were none yet."""
        if not late:
            return None
        ordered = sorted(late)
        return cls(usual_ms=ordered[len(ordered) // 2] * 1000, worst_ms=ordered[-1] * 1000)
