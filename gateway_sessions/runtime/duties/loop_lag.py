"""The duty that measures how late the event loop wakes its tasks.

The duty costs four short wake-ups a second. It sees every stall that is longer than a nap, and a shorter one
if a nap ends in it.
"""

from __future__ import annotations

from collections import deque
from typing import Final

import anyio

from gateway_sessions.core.process_load import LoopLag

NAP: Final = 0.25
REMEMBERED: Final = 240
"""Naps: about a minute."""


class LoopWatch:
    """Measures by the loop's own time, whatever clock the store has."""

    def __init__(self) -> None:
        self._late: deque[float] = deque(maxlen=REMEMBERED)

    @property
    def lag(self) -> LoopLag | None:
        """The lag of the last minute; None before the first nap."""
        return LoopLag.from_waits(self._late)

    async def run(self) -> None:
        """Measure one nap after another, until cancelled."""
        while True:
            await self.measure_nap()

    async def measure_nap(self) -> None:
        """Sleep, and note how much longer that took."""
        due = anyio.current_time() + NAP
        await anyio.sleep(NAP)
        self.note_lag(max(anyio.current_time() - due, 0.0))

    def note_lag(self, seconds: float) -> None:
        """Note by how many seconds a task was woken late."""
        self._late.append(seconds)
