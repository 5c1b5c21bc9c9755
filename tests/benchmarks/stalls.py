"""Watches an event loop from inside: a task that sleeps a millisecond and notes when it wakes too late."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

NAP = 0.001


class Watch:
    """The longest time for which the loop ran something else at a stretch, since the watch was last read."""

    def __init__(self) -> None:
        self._longest = 0.0
        self._asleep = time.perf_counter()

    def read_ms(self) -> float:
        """Return the longest stall and begin anew. One that is just ending counts, too."""
        self._note()
        longest, self._longest = self._longest, 0.0
        return longest * 1000

    async def keep(self) -> None:
        """Watch until cancelled."""
        while True:
            await asyncio.sleep(NAP)
            self._note()

    def _note(self) -> None:
        now = time.perf_counter()
        self._longest = max(self._longest, now - self._asleep - NAP)
        self._asleep = now


@asynccontextmanager
async def watched_loop() -> AsyncIterator[Watch]:
    """A watch over the running loop; it is awake before the block begins."""
    watch = Watch()
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(watch.keep())
        await asyncio.sleep(10 * NAP)
        watch.read_ms()
        yield watch
        task.cancel()
