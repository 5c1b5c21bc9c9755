"""The duty that removes settled messages and sent replies once no platform redelivers them."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Final

from gateway_sessions.ports import Clock
from gateway_sessions.runtime.duty import failure_reporter, repeat_each_period, wait_for_next_pass
from gateway_sessions.runtime.queue.queue_operations import QueueOperations

logger: Final = logging.getLogger(__name__)

INTERVAL: Final = timedelta(hours=1)


class QueueCleanup:
    """Removes settled messages and sent replies that are older than the window for duplicates."""

    def __init__(self, queue: QueueOperations, clock: Clock, window: timedelta) -> None:
        self._queue = queue
        self._clock = clock
        self._window = window

    async def run(self) -> None:
        """Sweep once an hour until cancelled; a failure is tried again in the next hour."""
        await wait_for_next_pass(self._clock, INTERVAL, self)
        failed = failure_reporter(
            logger, "settled messages could not be forgotten", {"action": "forget_failed"}
        )
        await repeat_each_period(self.sweep, self._clock, INTERVAL, self, failed=failed)

    def state(self) -> object:
        """Return what changes whenever something may have been settled."""
        return self._queue.writes_begun

    async def next_due(self) -> datetime | None:
        """Return when the oldest of what was settled leaves the window."""
        oldest = await self._queue.first_settled()
        return None if oldest is None else oldest + self._window

    async def sweep(self) -> int:
        """Remove all rows that are old enough; return their number."""
        return await self._queue.forget(self._clock.now() - self._window)
