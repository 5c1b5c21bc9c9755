"""What a person asks for at once, whatever runs or waits on the lane: it overtakes all of it, in one step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from gateway_sessions.core.queue import Outcome
from gateway_sessions.ports import Verb
from gateway_sessions.storage.verbs.change import Change
from gateway_sessions.storage.verbs.queue import Overtaken, overtake

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AndOvertaken(Generic[T]):
    """What came of a change, and what it found on the lane."""

    outcome: T
    overtaken: Overtaken


def overtaking(
    change: Change, session_key: str, verb: Callable[[Change], Verb[T]], by: str
) -> Verb[AndOvertaken[T]]:
    """Make a change after the lane's turn has lost its right to write and its queue is empty."""
    overtaken = yield from overtake(change, session_key, by, stopped=Outcome.INTERRUPTED)
    return AndOvertaken((yield from verb(change)), overtaken)
