"""Ids for rows where many transactions run at once: they rise, but do not become visible in their order.

Where several nodes make them, each leaves room for the ids of the others, and all rise with the time of the
server. So on a lane that moves from one node to another they rise as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator


class RisingIds(Iterator[int]):
    """Counts on, beside others that do the same."""

    def __init__(self) -> None:
        self._next = 0
        self._slot, self._slots = 0, 1
        self._earliest: Callable[[], int] = lambda: 0

    def begin_at(
        self, first: int, *, slot: int = 0, slots: int = 1, earliest: Callable[[], int] = lambda: 0
    ) -> None:
        """Count from there on, and never below *earliest*, whose answers rise.

        Only every *slots*-th number is taken; the others, divided by that, leave another rest than *slot*.
        """
        self._slot, self._slots, self._earliest = slot, slots, earliest
        self.rise_to(first)

    def rise_to(self, least: int) -> None:
        """Take no smaller number from now on."""
        least = max(self._next, least)
        self._next = least + (self._slot - least) % self._slots

    def __next__(self) -> int:
        self.rise_to(self._earliest())
        one = self._next
        self._next += self._slots
        return one
