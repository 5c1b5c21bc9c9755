"""The counts that `gsess top` and the health page show of a process: agents, turns, loop lag."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCounts:
    """The counts of a process's cache of agents, and its hits and misses."""

    idle: int
    room: int
    """The number of idle agents that the cache may keep."""
    lent: int
    closing: int
    weight: int
    hits: int
    misses: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopLag:
    """The time that ready callbacks waited for the event loop, in about the last minute."""

    usual_ms: float
    """The median wait, in milliseconds."""
    worst_ms: float
    """The longest wait, in milliseconds."""

    @classmethod
    def from_waits(cls, late: Sequence[float]) -> Self | None:
        """Return the lag from waits in seconds; None without waits."""
        if not late:
            return None
        ordered = sorted(late)
        return cls(usual_ms=ordered[len(ordered) // 2] * 1000, worst_ms=ordered[-1] * 1000)
