"""The loop of a periodic duty: it runs a sweep, then waits for the next pass."""

from __future__ import annotations

from datetime import timedelta

from gateway_sessions.errors import StorageError, StoreStoppedError
from gateway_sessions.ports import Agenda, Clock, SkippingClock


async def wait_for_next_pass(clock: Clock, period: timedelta, agenda: Agenda) -> None:
    """Wait one period. A machine always looks again; a skipping clock passes over periods without work."""
    if isinstance(clock, SkippingClock):
        try:
            await clock.skip_idle_periods(period, agenda)
        except (StorageError, StoreStoppedError):
            pass  # nobody knows what is due: the pass itself finds out, and tells of what fails
        else:
            return
    await clock.sleep(period.total_seconds())
