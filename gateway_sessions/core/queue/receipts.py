"""Receipts of a message that was handed over: `Accepted`, `Duplicate` or `Rejected`, with the reason."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias


class Disposition(StrEnum):
    """The next step of an accepted message."""

    STARTS = "starts"  # its turn begins as soon as there is room
    QUEUED = "queued"  # it waits for the turns before it
    MERGED = "merged"  # it is part of a waiting turn
    STEERS = "steers"  # it was given to the running turn
    INTERRUPTS = "interrupts"  # the running turn ends for it
    ROLLS_BACK = "rolls_back"  # the running turn is taken back for it
    APPLIED = "applied"  # an edit or a deletion was carried out
    COMMAND = "command"  # it was a command


class RejectReason(StrEnum):
    """The reason why a message was refused; nothing of the message is kept."""

    BUSY = "busy"  # the lane takes nothing while a turn runs
    QUEUE_FULL = "queue_full"  # too many messages wait on the lane
    OVERLOADED = "overloaded"  # too many messages wait, or commands are under way, in all or of one owner
    TOO_LARGE = "too_large"  # the message is larger than one may be
    DRAINING = "draining"  # the gateway is about to end
    ERASED = "erased"  # it was sent before its sender was erased
    NOT_ALLOWED = "not_allowed"  # an observer vetoed it
    NOT_ADDRESSED = "not_addressed"  # a command for another account
    EMPTY = "empty"  # it says nothing
    UNKNOWN = "unknown"  # an edit or a deletion of something never seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The receipt of a message that is stored durably and will be answered, or kept as a dead letter."""

    seq: int
    """The place of the message among all that its lane ever accepted, without gaps."""
    session_key: str
    session_id: str | None
    disposition: Disposition
    depth: int = 0
    """The number of turns that wait on the lane, this one included."""
    merged_into: int | None = None
    """The place of the message that leads the turn; None: this message leads its own turn."""
    dropped: tuple[int, ...] = ()
    """The places of the waiting messages that were dropped to make room."""
    demoted: str | None = None
    """Why the message only waits although the lane's busy mode asks for more; see `Demotion`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicate:
    """The receipt of a message that the platform delivered before."""

    seq: int
    session_key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """The receipt of a message that was refused; `text` tells its sender so."""

    reason: RejectReason
    text: str
    retry_after: float | None = None
    """Seconds after which another try makes sense; None: never."""
    session_key: str | None = None


Receipt: TypeAlias = Accepted | Duplicate | Rejected
