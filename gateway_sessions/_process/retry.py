"""Retries after passing faults of the database, with pauses that grow, and counts of what they spoilt."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypeVar, cast

from gateway_sessions.errors import (
    MissingRightError,
    NoStoreError,
    SchemaTooOldError,
    StorageError,
    StorageFullError,
    StorageUnavailableError,
    StoreStoppedError,
)

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


PASSING_FAULTS: Final = (StorageUnavailableError, StorageFullError)
"""These errors may pass by themselves, so that a later try succeeds."""
_LASTING: Final = (NoStoreError, MissingRightError, SchemaTooOldError)
"""The few of them that nothing but an operator ends."""
MOST_TRIES: Final = 100
"""Tries of one turn that the database may spoil, which take a quarter of an hour or more: agents cost money,
and a turn that can never be stored would be tried for ever."""
_REMEMBERED: Final = 4096
"""Turns whose spoilt tries are known. One whose count is forgotten is merely tried more often."""


def is_passing_fault(error: BaseException | None) -> bool:
    """Return whether *error* is a passing fault of the database, or was raised because of one."""
    return any(
        isinstance(one, PASSING_FAULTS) and not isinstance(one, _LASTING)
        for one in _iterate_causes(error, set())
    )


def _iterate_causes(error: BaseException | None, seen: set[int]) -> Iterator[BaseException]:
    if error is None or id(error) in seen:
        return
    seen.add(id(error))
    yield error
    if isinstance(error, BaseExceptionGroup):
        for one in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from _iterate_causes(one, seen)
    yield from _iterate_causes(error.__cause__ or error.__context__, seen)


class SpoiltTries:
    """Counts the tries of each turn that ended with a passing fault. They are no tries of the agent."""

    def __init__(self) -> None:
        self._tries: OrderedDict[tuple[str, int], int] = OrderedDict()

    def count_of(self, session_key: str, seq: int) -> int:
        """Return how many tries of that turn were spoilt in this process."""
        return self._tries.get((session_key, seq), 0)

    def count_one(self, session_key: str, seq: int) -> int:
        """Count one more, and return how many there are."""
        tries = self._tries.pop((session_key, seq), 0) + 1
        self._tries[session_key, seq] = tries
        if len(self._tries) > _REMEMBERED:
            self._tries.popitem(last=False)
        return tries

    def forget(self, session_key: str, seq: int) -> None:
        """Forget the tries of a turn that has come to its end."""
        self._tries.pop((session_key, seq), None)
