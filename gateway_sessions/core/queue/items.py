"""Values about a queue for people and programs: waiting messages, dead letters, outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from gateway_sessions.core.queue.inbound import InboundMessage


class Outcome(StrEnum):
    """The end of an accepted message; each message gets exactly one outcome."""

    TURNED = "turned"  # its turn was completed
    INTERRUPTED = "interrupted"  # its turn was stopped; what it had done stands
    ROLLED_BACK = "rolled_back"  # its turn was stopped and taken back
    CANCELLED = "cancelled"  # somebody took it out of the queue
    DROPPED = "dropped"  # it made room for another one, and its sender was told
    DEAD = "dead"  # its turn failed for good; it is kept, and can be tried again
    APPLIED = "applied"  # an edit or a deletion, carried out
    COMMAND = "command"  # a command, carried out
    OBSERVED = "observed"  # it was said to others in the room, and kept for the next turn


class ItemKind(StrEnum):
    """The kind of an item in the inbox: a person's or a program's message, a command, or a change."""

    MESSAGE = "message"
    INTERNAL = "internal"
    COMMAND = "command"
    CHANGE = "change"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedMessage:
    """A message that waits for its turn, or a message whose turn is running."""

    seq: int
    """The place of the message among all that its lane ever accepted."""
    session_key: str
    message: InboundMessage
    admitted_at: datetime
    solo: bool = False
    """Whether the message gets a turn of its own, so that no later message joins it."""
    merged_into: int | None = None
    """The place of the message that leads the turn; None: this message leads it."""
    running: bool = False
    """Whether the turn of the message runs."""
    cut_off: bool = False
    """Whether a process that is gone had begun the turn; the turn is tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A message whose turn failed for good. The message is kept whole and can be tried again."""

    item_id: int
    seq: int
    """The place of the message among all that its lane ever accepted."""
    session_key: str
    owner: str
    message: InboundMessage | None
    """The message; None: its stored form cannot be read, and the message was given up for that."""
    admitted_at: datetime
    given_up_at: datetime
    problem: str
    """Why the turn failed, in one sentence."""


def messages_to_cancel(listed: Sequence[QueuedMessage], seq: int | None) -> list[QueuedMessage]:
    """Return the waiting messages that a cancellation of *seq* removes; None cancels the whole queue.

    A turn is cancelled with all of its messages.
    """
    waiting = [message for message in listed if not message.running]
    return [message for message in waiting if seq is None or seq in (message.seq, message.merged_into)]
