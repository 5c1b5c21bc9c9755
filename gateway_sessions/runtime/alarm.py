"""`Alarm`: a task waits on it until it is rung or a time comes, even after the clock was set back."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Final

import anyio

from gateway_sessions.ports import Clock

NEVER: Final = datetime.max.replace(tzinfo=UTC)


STEP: Final = timedelta(milliseconds=100)
"""A clock that is corrected by less than this makes nobody wait."""


class ClockSteps:
    """Notices that the clock was set back since somebody last asked."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._latest = clock.now()

    def was_set_back(self) -> bool:
        """Return whether the clock shows an earlier time than before: what was near may be far away now."""
        now, before = self._clock.now(), self._latest
        self._latest = now
        return before - now > STEP


class Alarm:
    """One task waits on it; anybody rings. A ring between `reset` and `wait` is not lost."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """Wake whoever waits, now or next."""
        self._rung.set()

    def reset(self) -> None:
        """From now on a ring is news."""
        self._rung.clear()

    @property
    def is_rung(self) -> bool:
        """Whether the alarm was rung since the last `reset`."""
        return self._rung.is_set()

    async def wait_until(self, moment: datetime) -> None:
        """Wait until the alarm is rung or that moment comes; `NEVER`: only until it is rung."""
        await self.wait(None if moment == NEVER else moment - self._clock.now())

    async def wait(self, pause: timedelta | None) -> None:
        """Wait until the alarm is rung or the pause has passed; None: only until it is rung."""
        if pause is None:
            await self._rung.wait()
            return
        async with anyio.create_task_group() as tasks:

            async def sleep() -> None:
                await self._clock.sleep(max(pause.total_seconds(), 0))
                tasks.cancel_scope.cancel()

            tasks.start_soon(sleep)
            await self._rung.wait()
            tasks.cancel_scope.cancel()
