"""The duty that measures how late the event loop wakes its tasks.

That costs four short wake-ups a second, and misses nothing that lasts longer than a nap. A shorter stall is
seen if a nap happens to end in it.
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
    """How late the loop is. It goes by the loop's own time, whatever clock the store has."""

    def __init__(self) -> None:
        self._late: deque[float] = deque(maxlen=REMEMBERED)

    @property
    def lag(self) -> LoopLag | None:
        """The last minute; None: it has only just begun."""
        return LoopLag.from_waits(self._late)

    async def run(self) -> None:
        """One nap after another, until cancelled."""
        while True:
            await self.measure_nap()

    async def measure_nap(self) -> None:
        """Sleep, and note how much longer it was."""
        due = anyio.current_time() + NAP
        await anyio.sleep(NAP)
        self.note_lag(max(anyio.current_time() - due, 0.0))

    def note_lag(self, seconds: float) -> None:
        """So late was somebody woken."""
        self._late.append(seconds)
