"""Finishing erasures and removals that were cut off: somebody was promised that they will be."""

from __future__ import annotations

import logging
from typing import Final

from gateway_sessions.errors import SessionBusyError, SnapshotError, StorageError, StoreStoppedError
from gateway_sessions.ports import Clock
from gateway_sessions.runtime.incidents import Incidents
from gateway_sessions.storage.database import SessionDB
from gateway_sessions.storage.verbs import retention

logger = logging.getLogger(__name__)

RETRY_SECONDS: Final = 60.0


class Erasures:
    """What an earlier process has left undone."""

    def __init__(self, db: SessionDB, clock: Clock, incidents: Incidents) -> None:
        self._db = db
        self._clock = clock
        self._incidents = incidents

    async def found(self) -> bool:
        """Whether there is anything; erasures are reported."""
        count = await self._db.unfinished_erasures()
        if count:
            detail = f"{count} erasures were cut off; they are finished in the background"
            self._incidents.report("erasure_cut_off", detail)
        return count > 0 or bool(await self._db.read(retention.leftovers))

    async def run(self) -> None:
        """Finish it; what stands in the way is waited for."""
        while True:
            try:
                await self._db.finish_removals()
                finished = await self._db.finish_erasures()
            except StoreStoppedError:
                return
            except (StorageError, SnapshotError, SessionBusyError):
                logger.exception("an erasure could not be finished", extra={"action": "erasure_failed"})
                await self._clock.sleep(RETRY_SECONDS)
            else:
                if finished:
                    facts = {"action": "erasure_finished", "erasures": finished}
                    logger.info("erasures that were cut off have been finished", extra=facts)
                return
