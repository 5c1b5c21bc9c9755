"""Who asks first is served first: within this process, changes take place in the order they were asked for.

Those that have nothing in common overtake each other; nobody can tell.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
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
