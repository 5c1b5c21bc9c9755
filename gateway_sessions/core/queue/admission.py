"""Admission decisions from counts in memory: whether there is room for a message, and fair shares.

What is refused must cost less than what is taken. So a refusal is decided from what a process has in memory,
before anything is asked of the database. Memory may be a moment behind the database. Therefore a decision
made here never takes more than a cap allows, and what it refuses wrongly is taken a moment later.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Final, NamedTuple

PLACES: Final = 8
"""Messages of all owners that are on their way to the database at once, where one owner has more than one.

That is enough for one commit to carry a burst, and few enough that the others' messages fit beside it.
"""
RESERVED_PART: Final = 4
"""At most one part in so many of all room is kept for owners of whom nothing waits."""
REFUSALS_PER_SECOND: Final = 3200
"""So many refusals are answered in a second while the event loop is on time: a tenth of one processor."""
TOLERATED_SECONDS: Final = 0.001
"""If the event loop is late by this, half as many are answered: what others wait for goes first."""
FEWEST_PER_SECOND: Final = 50
"""So many are answered however late the event loop is."""
REFUSALS_AT_ONCE: Final = 32
"""So many refusals are answered without a pause, if none was for a while."""
HOLD_FOR_EACH_SECONDS: Final = 0.005
"""For each refusal that is held already the next one is held so much longer.

So all who come back at once after each refusal get 200 in a second together, however many they are. Whoever
hands in one message after another is not held up, as an adapter is that serves everybody of a platform.
"""
LONGEST_HOLD_SECONDS: Final = 1.0
"""No refusal is held longer."""
HOLD_STEP_SECONDS: Final = 0.02
"""Refusals that are held are answered together, in such steps: the event loop sleeps in between."""
NEWS_PART: Final = 0.2
"""How much the latest look at the event loop counts against those before."""


class Room(NamedTuple):
    """How much room there is for the next message of an owner, as far as one process knows."""

    most: int
    """How many turns may wait in all."""
    most_of_owner: int
    """How many of them may be one owner's."""
    taken: int = 0
    """How many wait in all, or are on their way into the queue."""
    of_owner: int = 0
    """How many of these are the owner's."""
    owners: int = 1
    """How many owners want room, or have some: at least this one."""
    empty_handed: int = 0
    """How many owners were seen lately and have none."""
    crowded: bool = False
    """Whether somebody was refused lately because there was no room."""


class Lack(StrEnum):
    """Who has taken the room that a message would need."""

    OWNER = "owner"  # its owner
    ALL = "all"  # everybody together


def lack_of_room(room: Room) -> Lack | None:
    """Tell why the next message of the owner may not be taken; None: there is room for it.

    While it is crowded, whoever has an equal share already leaves the last places to those who have nothing.
    """
    if room.of_owner >= room.most_of_owner:
        return Lack.OWNER
    if room.taken >= room.most:
        return Lack.ALL
    if not room.crowded or room.of_owner < equal_share(room.most, room.owners):
        return None
    reserved = min(room.empty_handed, room.most // RESERVED_PART)
    return None if room.most - room.taken > reserved else Lack.ALL


def equal_share(places: int, owners: int) -> int:
    """Return how many of some places each of so many owners may have: one at least."""
    return max(places // max(owners, 1), 1)


def part_of_node(free: int, nodes: int, *, leads: bool) -> int:
    """Return how much of what was free, when a node last counted, that node may fill until it counts again.

    Nodes count at different moments, so each takes half of its part: together they stay within the cap. Of
    what is too little to be divided, the node that leads takes one place after another.
    """
    if nodes <= 1 or free <= 0:
        return free
    part = free // (2 * nodes)
    return part if part or not leads else 1


class Pace(NamedTuple):
    """How fast refusals may be answered.

    Whoever comes back at once after each refusal is held up by this, and so has no more of the processor
    than whoever waits for an answer.
    """

    free_at: float = 0.0
    """When the next refusal may be answered."""
    late: float = 0.0
    """By how many seconds the event loop was late when it was to answer."""

    @property
    def per_second(self) -> float:
        """How many refusals may be answered in a second."""
        return max(REFUSALS_PER_SECOND / (1 + self.late / TOLERATED_SECONDS), FEWEST_PER_SECOND)

    def refusing(self, now: float, held: int = 0) -> tuple[Pace, float]:
        """Return the pace after one more refusal, and when to answer that one; so many others are held."""
        step = 1 / self.per_second
        earliest, latest = now - REFUSALS_AT_ONCE * step, now + LONGEST_HOLD_SECONDS
        free_at = max(self.free_at, earliest) + step
        behind = now + held * HOLD_FOR_EACH_SECONDS * (1 + self.late / TOLERATED_SECONDS)
        at = min(max(free_at, behind), latest)
        if at > now:
            at = math.ceil(at / HOLD_STEP_SECONDS) * HOLD_STEP_SECONDS
        return self._replace(free_at=min(free_at, latest)), at

    def woken(self, late: float) -> Pace:
        """Return the pace after the event loop was late by that when it was to answer."""
        return self._replace(late=self.late + NEWS_PART * (max(late, 0.0) - self.late))
