"""`KnownNames`: remembers the names of people and places where events carry none but ids."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from cachetools import LRUCache

from gateway_sessions.ports import Clock

NAMES: Final = 10_000
"""The names that are remembered: those of a large workspace, at about a megabyte."""
NAME_LIFE: Final = timedelta(hours=1)
"""The time after which a name is asked for again: people rarely change theirs."""
FAILED_LIFE: Final = timedelta(minutes=1)
"""The time after which a name that could not be had is asked for again."""

AskName: TypeAlias = Callable[[], Awaitable[str | None]]
"""This function asks the platform for a name; None: it cannot be had now."""


@dataclass(slots=True)
class _KnownName:
    """A name, and until when it is believed."""

    name: str
    until: datetime


class Turns:
    """Lets one after the other do something about the same thing."""

    def __init__(self) -> None:
        self._locks: dict[str, asyncio.Lock] = {}
        self._waiting: Counter[str] = Counter()

    @asynccontextmanager
    async def of(self, what: str) -> AsyncGenerator[None]:
        """Wait for the turn, which comes in the order of the calls, and have it within the block."""
        lock = self._locks.setdefault(what, asyncio.Lock())
        self._waiting[what] += 1
        try:
            async with lock:
                yield
        finally:
            self._waiting[what] -= 1
            if not self._waiting[what]:
                del self._locks[what], self._waiting[what]


class KnownNames:
    """Knows the names of one account's people and places, and asks for each once an hour."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._names: LRUCache[str, _KnownName] = LRUCache(NAMES)
        self._turns = Turns()

    def name_of(self, who: str) -> str:
        """Return the name that is known; empty: none is."""
        known = self._names.get(who)
        return known.name if known else ""

    async def learn(self, who: str, ask: AskName) -> None:
        """Ask for a name, unless it is known; who asks at the same time waits for the same answer."""
        async with self._turns.of(who):
            now = self._clock.now()
            known = self._names.get(who)
            if known is None or known.until <= now:
                # What was known stays known while it cannot be asked for.
                self._names[who] = _KnownName(known.name if known else "", now + FAILED_LIFE)
                name = await ask()
                if name is not None:
                    self._names[who] = _KnownName(name, now + NAME_LIFE)
