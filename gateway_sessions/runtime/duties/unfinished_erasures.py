"""The duty that finishes erasures and removals which were cut off."""

from __future__ import annotations

import logging
from typing import Final

from gateway_sessions.errors import SessionBusyError, SnapshotError, StorageError
from gateway_sessions.ports import Clock
from gateway_sessions.runtime.alarm import Alarm
from gateway_sessions.runtime.duty import failure_reporter, repeat_sweep
from gateway_sessions.runtime.observability.incidents import Incidents
from gateway_sessions.storage.database import SessionDB
from gateway_sessions.storage.transactions.sessions import remove

logger: Final = logging.getLogger(__name__)

RETRY_SECONDS: Final = 60.0
_PASSING: Final = (StorageError, SnapshotError, SessionBusyError)


class UnfinishedErasures:
    """Finishes erasures of an earlier process, and those whose call was cancelled or failed."""

    def __init__(self, db: SessionDB, clock: Clock, incidents: Incidents) -> None:
        self._db = db
        self._clock = clock
        self._incidents = incidents
        self._alarm = Alarm(clock)

    async def find_unfinished(self) -> None:
        """Look for erasures that an earlier process has left, and report them as an incident."""
        count = await self._db.unfinished_erasures()
        if count:
            detail = f"{count} erasures were cut off; they are finished in the background"
            self._incidents.report("erasure_cut_off", detail)
        leftovers = await self._db.read(remove.removed_with_leftovers)
        if count or leftovers:
            self.wake()

    def wake(self) -> None:
        """Sweep soon: there may be an erasure to finish."""
        self._alarm.ring()

    async def run(self) -> None:
        """Finish erasures until cancelled; after a failure, try again in a minute."""
        failed = failure_reporter(logger, "an erasure could not be finished", {"action": "erasure_failed"})
        await self._wait_until_woken()
        await repeat_sweep(self.sweep, self._wait_or_retry, failed=failed, passing=_PASSING)

    async def _wait_or_retry(self, finished: int | None) -> None:
        """Wait until there may be an erasure to finish; after a failure there is one."""
        if finished is None:
            await self._clock.sleep(RETRY_SECONDS)
            self.wake()
        await self._wait_until_woken()

    async def _wait_until_woken(self) -> None:
        await self._alarm.wait(None)
        self._alarm.reset()

    async def sweep(self) -> int:
        """Finish all removals and erasures; return the number of erasures."""
        await self._db.finish_removals()
        if not await self._db.unfinished_erasures():
            return 0
        finished = await self._db.finish_erasures()
        facts = {"action": "erasure_finished", "erasures": finished}
        logger.info("erasures that were cut off have been finished", extra=facts)
        return finished
