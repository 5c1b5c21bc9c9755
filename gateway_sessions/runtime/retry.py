"""Retries: work is tried again until it is done, with pauses that grow."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Protocol, TypeVar

from gateway_sessions.errors import StorageError, StoreStoppedError
from gateway_sessions.ports import Clock, Transaction
from gateway_sessions.storage.ownership import Ownership

T = TypeVar("T")

logger: Final = logging.getLogger(__name__)

_DOUBLINGS: Final = 32
"""After so many, a pause is the longest one, whatever the first was; its length stays within bounds."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """The pauses between tries: each is twice as long as the one before, up to the longest."""

    first: timedelta
    longest: timedelta

    def after(self, failures: int) -> timedelta:
        """Return the pause after the first failure (0), the second (1) and so on."""
        seconds = self.first.total_seconds() * 2 ** min(failures, _DOUBLINGS)
        return timedelta(seconds=min(seconds, self.longest.total_seconds()))


async def retry(
    work: Callable[[], Awaitable[T]],
    passing: tuple[type[StorageError], ...],
    *,
    backoff: Backoff,
    sleep: Callable[[float], Awaitable[object]],
    failed: Callable[[StorageError], object],
) -> T:
    """Do *work* until it is done; after an error that is *passing* call *failed*, *sleep*, and try again.

    A store that has stopped will not be used again: `StoreStoppedError` ends the tries. So does whatever
    *failed* raises.
    """
    failures = 0
    while True:
        try:
            return await work()
        except StoreStoppedError:
            raise
        except passing as error:
            failed(error)
        await sleep(backoff.after(failures).total_seconds())
        failures += 1


class Truth(Protocol):
    """Where replies are kept."""

    @property
    def ownership(self) -> Ownership:
        """The opening of the store: who sends what."""
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
        self._backoff = Backoff(pause, pause)

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
        def failed(_: StorageError) -> None:
            logger.exception("the outbox could not be used", extra={"action": "delivery_failed"})

        return await retry(
            work, (StorageError,), backoff=self._backoff, sleep=self._clock.sleep, failed=failed
        )
