"""Retries: work is tried again until it is done, and the pauses between tries grow."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypeVar

from gateway_sessions.errors import StorageError, StoreStoppedError

T = TypeVar("T")

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
