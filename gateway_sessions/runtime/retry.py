"""Retries with pauses, such as of notes on replies while the database cannot be used."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Protocol, TypeVar

from gateway_sessions.errors import StorageError, StoreStoppedError
from gateway_sessions.ports import Clock, Transaction

T = TypeVar("T")

logger = logging.getLogger(__name__)


class Truth(Protocol):
    """Where replies are kept."""

    @property
    def epoch(self) -> int:
        """Which opening of the store this is: who sends what."""
        ...

    async def read(self, transaction: Callable[[], Transaction[T]]) -> T:
        """Run a transaction that changes nothing."""
        ...

    async def write(self, transaction: Callable[[], Transaction[T]]) -> T:
        """Run a transaction, durably."""
        ...

    def begin_write(self, transaction: Callable[[], Transaction[T]]) -> Awaitable[T]:
        """The same for what is awaited later; if it can, it stands in line from now on."""
        ...

    @property
    def before_writes(self) -> list[Callable[[], object]]:
        """Called before something is written: what they begin to write shares its commit."""
        ...


class PersistentWrites:
    """Tries again until it is done; only a store that has stopped ends that, with `StoreStoppedError`."""

    def __init__(self, truth: Truth, clock: Clock, pause: timedelta) -> None:
        self._truth = truth
        self._clock = clock
        self._pause = pause

    async def read(self, transaction: Callable[[], Transaction[T]]) -> T:
        """Run a transaction that changes nothing."""
        return await self._until_done(lambda: self._truth.read(transaction))

    async def write(self, transaction: Callable[[], Transaction[T]]) -> T:
        """Run a transaction, durably."""
        return await self._until_done(lambda: self._truth.write(transaction))

    async def written(self, begun: Awaitable[T], transaction: Callable[[], Transaction[T]]) -> T:
        """What comes of a write that was begun; if it fails, the transaction is run again."""
        first = [begun]
        return await self._until_done(lambda: first.pop() if first else self._truth.write(transaction))

    async def _until_done(self, work: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                return await work()
            except StoreStoppedError:
                raise
            except StorageError:
                logger.exception("the outbox could not be used", extra={"action": "delivery_failed"})
            await self._clock.sleep(self._pause.total_seconds())
