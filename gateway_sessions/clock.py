"""The one place that asks what time it is."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

import anyio

from gateway_sessions.core.instants import EPOCH


class SystemClock:
    """The machine's clock: UTC instants, and sleeping on the event loop."""

    def now(self) -> datetime:
        """The present instant in UTC, a plain `datetime` even while a test has frozen time."""
        return EPOCH + timedelta(microseconds=time.time_ns() // 1000)

    async def sleep(self, seconds: float) -> None:
        """Wait that long."""
        await anyio.sleep(seconds)
