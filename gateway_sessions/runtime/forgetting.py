"""A duty: forgetting what was settled so long ago that no platform delivers it again."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Final

from gateway_sessions.errors import StorageError, StoreStoppedError
from gateway_sessions.ports import Clock
from gateway_sessions.runtime.ledger import Ledger

logger = logging.getLogger(__name__)

INTERVAL: Final = timedelta(hours=1)


class Forgetting:
    """Removes settled messages and sent replies once they are older than the window of duplicates."""

    def __init__(self, ledger: Ledger, clock: Clock, window: timedelta) -> None:
        self._ledger = ledger
        self._clock = clock
        self._window = window

    async def run(self) -> None:
        """One pass an hour, until cancelled. A failing database is tried again at the next one."""
        while True:
            await self._clock.sleep(INTERVAL.total_seconds())
            try:
                await self.sweep()
            except StoreStoppedError:
                return
            except StorageError:
                logger.exception("settled messages could not be forgotten", extra={"action": "forget_failed"})

    async def sweep(self) -> int:
        """Forget all that is old enough; how many rows."""
        return await self._ledger.forget(self._clock.now() - self._window)
