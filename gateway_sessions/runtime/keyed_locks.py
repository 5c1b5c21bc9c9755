"""`KeyedLocks`: one asyncio lock for each key, in order of arrival, without memory for unused keys."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class _Lock:
    """A lock, and how many have it or wait for it."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


class KeyedLocks:
    """Locks by key. No memory is used for a key that nobody holds."""

    def __init__(self) -> None:
        self._locks: dict[str, _Lock] = {}

    @asynccontextmanager
    async def hold(self, key: str) -> AsyncGenerator[None]:
        """Hold the lock of that key for the time of a block."""
        one = self._locks.setdefault(key, _Lock())
        one.users += 1
        try:
            async with one.lock:
                yield
        finally:
            one.users -= 1
            if not one.users:
                del self._locks[key]
