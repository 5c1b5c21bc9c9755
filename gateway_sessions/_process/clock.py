"""`SystemClock`: the only module that reads the machine's clock."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

import anyio

from gateway_sessions.core.instants import EPOCH


class SystemClock:
    """Reads the machine's clock in UTC, and sleeps on the event loop."""

    def now(self) -> datetime:
        """Return the present instant in UTC, as a plain `datetime` even while a test has frozen time."""
        return EPOCH + timedelta(microseconds=time.time_ns() // 1000)

    async def sleep(self, seconds: float) -> None:
        """Wait for that many seconds."""
        await anyio.sleep(seconds)
