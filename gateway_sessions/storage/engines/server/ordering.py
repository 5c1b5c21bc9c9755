"""Order of transactions on the same lane within a process, and row ids that rise across nodes.

Who asks first is served first: within this process, changes take place in the order they were asked for.

Those that have nothing in common overtake each other; nobody can tell.

Ids for rows where many transactions run at once: they rise, but do not become visible in their order.

Where several nodes make them, each leaves room for the ids of the others, and all rise with the time of the
server. So on a lane that moves from one node to another they rise as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial


class InOrder:
    """Lets one after the other decide on the same thing. Nobody holds a connection while it waits here."""

    def __init__(self) -> None:
        self._last: dict[str, asyncio.Future[None]] = {}
        """The last that asked for each lock, since somebody asked to run alone."""
        self._alone: asyncio.Future[None] | None = None
        """The last that asked to run alone."""

    @asynccontextmanager
    async def turn(self, lock: str | None) -> AsyncGenerator[bool]:
        """Wait for those who asked before for the same, or alone; whether there were any. None: run alone."""
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        before = self._line_up(mine, lock)
        try:
            if before:
                await asyncio.wait(before)
            yield bool(before)
        finally:
            # Whoever goes away from the middle of the line lets nobody overtake those in front.
            _when_done({one for one in before if not one.done()}, mine)
            if lock is not None:
                mine.add_done_callback(partial(self._forget, lock))

    def _forget(self, lock: str, done: asyncio.Future[None]) -> None:
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


def _when_done(others: set[asyncio.Future[None]], mine: asyncio.Future[None]) -> None:
    """Be done as soon as all others are."""
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
