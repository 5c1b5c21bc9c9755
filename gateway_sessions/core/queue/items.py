"""Values about a queue for people and programs: waiting messages, dead letters, outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from gateway_sessions.core.queue.inbound import InboundMessage


class Outcome(StrEnum):
    """What became of an accepted message; every one gets exactly one of these."""

    TURNED = "turned"  # its turn was completed
    INTERRUPTED = "interrupted"  # its turn was stopped; what it had done stands
    ROLLED_BACK = "rolled_back"  # its turn was stopped and taken back
    CANCELLED = "cancelled"  # somebody took it out of the queue
    DROPPED = "dropped"  # it made room for another one, and its sender was told
    DEAD = "dead"  # its turn failed for good; it is kept, and can be tried again
    APPLIED = "applied"  # an edit or a deletion, carried out
    COMMAND = "command"  # a command, carried out


class ItemKind(StrEnum):
    """What kind of thing came in."""

    MESSAGE = "message"
    INTERNAL = "internal"
    COMMAND = "command"
    CHANGE = "change"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedMessage:
    """A message that waits for its turn, or whose turn is running."""

    seq: int
    session_key: str
    message: InboundMessage
    admitted_at: datetime
    solo: bool = False
    """Whether it gets a turn of its own, whatever comes after it."""
    merged_into: int | None = None
    running: bool = False
    cut_off: bool = False
    """Whether its turn was begun by a process that is gone: it is tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A message whose turn failed for good. Nothing of it is lost: it can be tried again."""

    item_id: int
    seq: int
    session_key: str
    owner: str
    message: InboundMessage | None
    """None: it is damaged, and that is why it was given up."""
    admitted_at: datetime
    given_up_at: datetime
    problem: str


def taken_out(listed: Sequence[QueuedMessage], seq: int | None) -> list[QueuedMessage]:
    """What of a queue would be cancelled with one message, or altogether: a turn goes with all its parts."""
    waiting = [one for one in listed if not one.running]
    return [one for one in waiting if seq is None or seq in (one.seq, one.merged_into)]
