"""Admission decisions from counts in memory: whether there is room for a message, and fair shares.

A refusal must cost less than an admission. So a refusal is decided from counts in memory, before the database
is asked anything. Memory may be a moment behind the database. Therefore a decision made here never admits
more than a cap allows, and a message that it refuses wrongly is admitted a moment later.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Final, NamedTuple

PLACES: Final = 8
"""The number of messages on their way to the database at once, of all owners, once one owner has several.

Eight are enough for one commit to carry a burst, and few enough that other owners' messages fit beside it.
"""
RESERVED_PART: Final = 4
"""The divisor of all room: at most this part is reserved for owners of whom no message waits."""
REFUSALS_PER_SECOND: Final = 3200
"""The number of refusals answered in a second while the event loop is on time: a tenth of one processor."""
TOLERATED_SECONDS: Final = 0.001
"""The lateness of the event loop, in seconds, that halves the rate: admitted messages go first."""
FEWEST_PER_SECOND: Final = 50
"""The number of refusals answered in a second however late the event loop is."""
REFUSALS_AT_ONCE: Final = 32
"""The number of refusals answered without a pause after a quiet while."""
HOLD_FOR_EACH_SECONDS: Final = 0.005
"""The seconds by which each refusal that is held already prolongs the next one.

So senders who come back at once after each refusal get 200 refusals in a second together, however many
senders they are. A caller that submits one message after another, such as an adapter that serves a whole
platform, is not held up.
"""
LONGEST_HOLD_SECONDS: Final = 1.0
"""The longest time, in seconds, that a refusal is held: longer would look like a lost message."""
HOLD_STEP_SECONDS: Final = 0.02
"""The step, in seconds, in which held refusals are answered together, so that the event loop sleeps between.
"""
NEWS_PART: Final = 0.2
"""The weight of the latest measurement of the event loop's lateness against the earlier ones."""


class OwnerRoom(NamedTuple):
    """The room for the next message of an owner, as far as one process knows."""

    most: int
    """The number of turns that may wait in all."""
    most_of_owner: int
    """The number of turns of one owner that may wait."""
    taken: int = 0
    """The number of turns that wait in all, or are on their way into the queue."""
    of_owner: int = 0
    """The number of these turns that are the owner's."""
    owners: int = 1
    """The number of owners who want room or have some, this one included."""
    empty_handed: int = 0
    """The number of owners seen lately of whom no turn waits."""
    crowded: bool = False
    """Whether a message was refused lately because there was no room."""


class LackOfRoom(StrEnum):
    """The cause of missing room: the owner's own turns, or everybody's."""

    OWNER = "owner"  # its owner
    ALL = "all"  # everybody together


def lack_of_room(room: OwnerRoom) -> LackOfRoom | None:
    """Return why the next message of the owner must be refused; None: there is room.

    While the queue is crowded, an owner who has an equal share leaves the last places to owners who have
    none.
    """
    if room.of_owner >= room.most_of_owner:
        return LackOfRoom.OWNER
    if room.taken >= room.most:
        return LackOfRoom.ALL
    if not room.crowded or room.of_owner < equal_share(room.most, room.owners):
        return None
    reserved = min(room.empty_handed, room.most // RESERVED_PART)
    return None if room.most - room.taken > reserved else LackOfRoom.ALL


def equal_share(places: int, owners: int) -> int:
    """Return an owner's equal share of the places: at least one."""
    return max(places // max(owners, 1), 1)


def node_share(free: int, nodes: int, *, leads: bool) -> int:
    """Return the part of the free room that a node may fill until it counts again.

    Nodes count at different moments, so each takes half of its share: together they stay within the cap. If
    there is less room than shares, the leading node takes one place after another.
    """
    if nodes <= 1 or free <= 0:
        return free
    part = free // (2 * nodes)
    return part if part or not leads else 1


class RefusalRate(NamedTuple):
    """The rate at which refusals may be answered.

    Senders who come back at once after each refusal are held up, and so get no more of the processor than
    senders who wait for an answer.
    """

    free_at: float = 0.0
    """The time, on the event loop's clock, at which the next refusal may be answered."""
    late: float = 0.0
    """The lateness of the event loop, in seconds, as a moving average."""

    @property
    def per_second(self) -> float:
        """The number of refusals that may be answered in a second."""
        return max(REFUSALS_PER_SECOND / (1 + self.late / TOLERATED_SECONDS), FEWEST_PER_SECOND)

    def after_refusal(self, now: float, held: int = 0) -> tuple[RefusalRate, float]:
        """Return the pace after one more refusal, and when to answer it; *held* counts the others held."""
        step = 1 / self.per_second
        earliest, latest = now - REFUSALS_AT_ONCE * step, now + LONGEST_HOLD_SECONDS
        free_at = max(self.free_at, earliest) + step
        after_held = now + held * HOLD_FOR_EACH_SECONDS * (1 + self.late / TOLERATED_SECONDS)
        at = min(max(free_at, after_held), latest)
        if at > now:
            at = math.ceil(at / HOLD_STEP_SECONDS) * HOLD_STEP_SECONDS
        return self._replace(free_at=min(free_at, latest)), at

    def after_wake_up(self, late: float) -> RefusalRate:
        """Return the pace after the event loop was *late* seconds behind."""
        return self._replace(late=self.late + NEWS_PART * (max(late, 0.0) - self.late))
