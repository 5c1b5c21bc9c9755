"""Faults that a test plans: what a platform answers instead of doing what it was asked, and how often."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeAlias

ALWAYS: Final = 1_000_000_000


class CutConnection(StrEnum):
    """The moments at which a connection is cut."""

    BEFORE = "before"
    """Nothing was done."""
    AFTER = "after"
    """It was done, and nobody is told."""


@dataclass(frozen=True, slots=True)
class RateLimit:
    """The platform asks for a pause; whoever calls within it is asked for a longer one."""

    retry_after: float = 1


@dataclass(frozen=True, slots=True)
class ServerFault:
    """A machine in front of the platform answers, and not the platform."""

    status: int = 502
    body: str = "<html><body><h1>502 Bad Gateway</h1></body></html>"
    done: bool = False
    """Whether the platform did what it was asked all the same."""


@dataclass(frozen=True, slots=True)
class RefusedCall:
    """The platform refuses, in its own form."""

    status: int
    problem: str


@dataclass(frozen=True, slots=True)
class Delay:
    """The platform takes its time, then does what it was asked."""

    seconds: float


Fault: TypeAlias = CutConnection | RateLimit | ServerFault | RefusedCall | Delay
Matches: TypeAlias = Callable[[str, Mapping[str, Any]], bool]
"""This function tells of a method and its parameters whether a fault hits the call."""


@dataclass(slots=True)
class _Planned:
    matches: Matches
    fault: Fault
    times: int


class Faults:
    """The faults that are planned, in order."""

    def __init__(self) -> None:
        self._planned: list[_Planned] = []

    def plan(
        self, fault: Fault, *, method: str | None = None, matches: Matches | None = None, times: int = 1
    ) -> None:
        """Let the next calls fail: of one method, or those that match, or any."""

        def hits(called: str, parameters: Mapping[str, Any]) -> bool:
            return (method is None or called == method) and (matches is None or matches(called, parameters))

        self._planned.append(_Planned(hits, fault, times))

    def clear(self) -> None:
        """Forget all that is planned."""
        self._planned.clear()

    def next_for(self, method: str, parameters: Mapping[str, Any]) -> Fault | None:
        """Return the fault that hits a call, and count it; None if the call goes well."""
        for planned in self._planned:
            if planned.matches(method, parameters):
                planned.times -= 1
                if planned.times <= 0:
                    self._planned.remove(planned)
                return planned.fault
        return None


class AskedPauses:
    """The pauses that a platform has asked for; whoever calls within one is asked for one twice as long."""

    def __init__(self) -> None:
        self._pauses: dict[str, tuple[float, float]] = {}

    def ask(self, place: str, seconds: float) -> float:
        """Begin a pause in a place, such as a chat, and return its seconds."""
        self._pauses[place] = (time.monotonic() + seconds, seconds)
        return seconds

    def broken(self, place: str) -> float | None:
        """Return the seconds of the longer pause for who calls within one; None: there is none."""
        until, seconds = self._pauses.get(place, (0.0, 0.0))
        return self.ask(place, 2 * seconds) if time.monotonic() < until else None
