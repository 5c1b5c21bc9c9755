"""Keeping adapters connected: one that fails is connected again, and nobody else notices."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Final

import anyio
from anyio.abc import TaskStatus

from gateway_sessions.adapters.port import Adapter, Submit
from gateway_sessions.ports import Clock
from gateway_sessions.runtime.events import EventKind, Events

logger = logging.getLogger(__name__)

FIRST_PAUSE: Final = timedelta(seconds=1)
LONGEST_PAUSE: Final = timedelta(minutes=1)


class Connections:
    """Connects adapters, again and again if need be."""

    def __init__(self, clock: Clock, events: Events) -> None:
        self._clock = clock
        self._events = events

    async def keep(
        self,
        adapter: Adapter,
        submit: Submit,
        *,
        task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Stay connected until cancelled. Started once the first try is over, however it ended."""
        pause, waited_for = FIRST_PAUSE, True
        platform, account = adapter.platform, adapter.name
        facts = {"platform": platform, "account": account}
        while True:
            try:
                async with adapter.connect(submit):
                    pause = FIRST_PAUSE
                    self._events.emit(EventKind.ADAPTER_CONNECTED, platform=platform, account=account)
                    if waited_for:
                        task_status.started()
                        waited_for = False
                    await anyio.sleep_forever()
            except Exception:  # foreign code: a platform that is down must not end the others
                logger.exception("an adapter lost its connection", extra={"action": "adapter_lost", **facts})
                self._events.emit(EventKind.ADAPTER_LOST, platform=platform, account=account)
            if waited_for:
                task_status.started()
                waited_for = False
            await self._clock.sleep(pause.total_seconds())
            pause = min(2 * pause, LONGEST_PAUSE)
