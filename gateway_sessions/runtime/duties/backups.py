"""The duty that copies the database at intervals and keeps the newest verified copies."""

from __future__ import annotations

import logging
from datetime import timedelta
from pathlib import Path
from typing import Final

from gateway_sessions.config import BackupsConfig
from gateway_sessions.errors import GatewaySessionsError
from gateway_sessions.ports import Clock
from gateway_sessions.runtime.duty import repeat_sweep
from gateway_sessions.storage.database import SessionDB
from gateway_sessions.storage.files.threads import in_thread

logger: Final = logging.getLogger(__name__)

FIRST_PASS: Final = timedelta(minutes=5)
"""The pause before the first copy: a start has other work to do."""


class Backups:
    """Keeps the newest copies of the database."""

    def __init__(self, db: SessionDB, clock: Clock, settings: BackupsConfig) -> None:
        self._db = db
        self._clock = clock
        self._settings = settings
        self._copied_at: int | None = None
        """The number of writes that this process had begun when it made its last copy."""

    async def run(self) -> None:
        """Take a copy whenever the newest is old enough; after a failure, try again within an hour."""
        interval = self._settings.interval
        if interval is None or not self._db.has_upkeep:
            return

        async def sweep() -> timedelta:
            await self.sweep(interval)
            return interval

        def failed(error: GatewaySessionsError) -> timedelta:
            facts = {"action": "backup_failed"}
            logger.error("the database could not be backed up", exc_info=error, extra=facts)
            return min(interval, timedelta(hours=1))

        await self._sleep(FIRST_PASS)
        await repeat_sweep(sweep, self._sleep, failed=failed)

    async def _sleep(self, pause: timedelta) -> None:
        await self._clock.sleep(pause.total_seconds())

    async def sweep(self, interval: timedelta) -> Path | None:
        """Take a copy, unless the newest is younger than that, or nothing was written since."""
        begun = self._db.writes_begun
        newest = await in_thread(self._db.newest_backup)
        # A copy from the future comes from a wrong clock, so it does not count as recent.
        if newest is not None and timedelta(0) <= self._clock.now() - newest < interval:
            return None
        if newest is not None and begun == self._copied_at:
            return None  # else equal copies would push older, different ones out
        copy = await self._db.back_up(keep=self._settings.keep)
        self._copied_at = begun
        return copy
