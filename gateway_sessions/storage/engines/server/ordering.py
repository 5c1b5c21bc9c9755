"""Order of transactions on the same lane within a process, and row ids that rise across nodes.

Transactions with the same lock run in the order in which they were asked for; those with different locks may
overtake each other, as they share no rows.

Row ids rise, but transactions that run at once do not commit in the order of their ids. Of several nodes,
each leaves room for the ids of the others, and all ids rise with the server's time. So the ids on a lane
rise as well when it moves from one node to another.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial


class LockOrder:
    """Lets transactions with the same lock run one after the other. Those that wait hold no connection."""

    def __init__(self) -> None:
        self._last: dict[str, asyncio.Future[None]] = {}
        """The last transaction that asked for each lock, since one asked to run alone."""
        self._alone: asyncio.Future[None] | None = None
        """The last transaction that asked to run alone."""

    @asynccontextmanager
    async def wait_for_turn(self, lock: str | None) -> AsyncGenerator[bool]:
        """Wait for earlier transactions with this lock, or alone; yield True if there were any.

        With None as its lock, a transaction runs alone.
        """
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        before = self._line_up(mine, lock)
        try:
            if before:
                await asyncio.wait(before)
            yield bool(before)
        finally:
            # If this one was cancelled while it waited, those behind it still wait for those in front.
            _complete_after({one for one in before if not one.done()}, mine)
            if lock is not None:
                mine.add_done_callback(partial(self._forget_lock, lock))

    def _forget_lock(self, lock: str, done: asyncio.Future[None]) -> None:
        if self._last.get(lock) is done:
            del self._last[lock]

    def _line_up(self, mine: asyncio.Future[None], lock: str | None) -> set[asyncio.Future[None]]:
        if lock is None:
            before = list(self._last.values())
            self._last.clear()
            last, self._alone = self._alone, mine
        else:
            before = []
            last, self._last[lock] = self._last.get(lock, self._alone), mine
        if last is not None:
            before.append(last)
        return {one for one in before if not one.done()}


def _complete_after(others: set[asyncio.Future[None]], mine: asyncio.Future[None]) -> None:
    """Complete *mine* as soon as all *others* are done."""
    if not others:
        mine.set_result(None)
        return

    def one_less(other: asyncio.Future[None]) -> None:
        others.discard(other)
        if not others and not mine.done():
            mine.set_result(None)

    for one in tuple(others):
        one.add_done_callback(one_less)


class RisingIds(Iterator[int]):
    """Yields rising row ids that no other node yields."""

    def __init__(self) -> None:
        self._next = 0
        self._slot, self._slots = 0, 1
        self._earliest: Callable[[], int] = lambda: 0

    def begin_at(
        self, first: int, *, slot: int = 0, slots: int = 1, earliest: Callable[[], int] = lambda: 0
    ) -> None:
        """Go on from *first*, and never below *earliest*, whose answers rise.

        Of every *slots* numbers this node takes one: the one whose remainder is *slot*.
        """
        self._slot, self._slots, self._earliest = slot, slots, earliest
        self.rise_to(first)

    def rise_to(self, least: int) -> None:
        """Yield no id below *least* from now on."""
        least = max(self._next, least)
        self._next = least + (self._slot - least) % self._slots

    def __next__(self) -> int:
        self.rise_to(self._earliest())
        one = self._next
        self._next += self._slots
        return one
