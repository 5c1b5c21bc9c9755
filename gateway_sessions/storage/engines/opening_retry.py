"""Retries while a store is opened on a server that cannot be used yet."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final, TypeVar

from gateway_sessions._process.retry import Backoff
from gateway_sessions.errors import (
    MissingRightError,
    NodeSilentError,
    SchemaTooOldError,
    StorageError,
    StorageLockedError,
    StorageUnavailableError,
)
from gateway_sessions.storage.engines.server.driver import USUAL

T = TypeVar("T")

FOR_LOCKS: Final = Backoff(timedelta(seconds=0.25), timedelta(seconds=1))
"""The pauses for locks of running nodes, which get their locks in between: a lock that is waited for is given
to the one who asked first."""
WHILE_AWAY: Final = Backoff(timedelta(seconds=0.25), timedelta(seconds=0.25))
"""The pauses while the server cannot be reached."""
LEAST_SECONDS: Final = USUAL.idle_seconds + USUAL.lock_seconds
"""The least time for which locks of other processes are waited for. By then the server has ended the
transaction of a node that stands still, so a stopped node makes no new one fail."""
_OF_OTHERS: Final = (StorageLockedError, NodeSilentError)
"""Errors which another process causes. They end when its transaction does, so they are waited for longer."""
_LASTING: Final = (MissingRightError, SchemaTooOldError)
"""Errors that no waiting changes."""


class OpeningRetry:
    """Repeats what a server refuses, until the store is open or the wait of its opener is over."""

    def __init__(self, wait: float, blockers: Callable[[], Awaitable[str]] | None) -> None:
        """*blockers* names the connections that hold locks; it is None for a file, which is not retried."""
        self.wait = wait
        self._blockers = blockers
        self.is_opening: bool = False
        """True inside of a block that opens the store: outside, nothing is repeated."""
        self._since: float | None = None
        self._open_blocks = 0

    @contextmanager
    def while_opening(self) -> Generator[None]:
        """Allow retries until the end of the block. The wait counts from the first such block."""
        if self._since is None:
            self._since = _now()
        self._open_blocks += 1
        self.is_opening = True
        try:
            yield
        finally:
            self._open_blocks -= 1
            self.is_opening = self._open_blocks > 0

    async def run_with_retries(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Return the result of *attempt*, which is repeated while the store is being opened."""
        if not self.is_opening or self._blockers is None:
            return await attempt()
        failures = 0
        while True:
            try:
                return await attempt()
            except _LASTING:
                raise
            except StorageUnavailableError as failure:
                error = failure
                backoff, wait = WHILE_AWAY, self.wait
                if isinstance(error, _OF_OTHERS):
                    backoff, wait = FOR_LOCKS, max(self.wait, LEAST_SECONDS)
                left = (self._since or 0.0) + wait - _now()
                if left <= 0:
                    raise await self._naming_blockers(error) from error
            await asyncio.sleep(min(backoff.after(failures).total_seconds(), left))
            failures += 1

    async def _naming_blockers(self, error: StorageUnavailableError) -> StorageUnavailableError:
        """Return the error; if a lock was not free, with the connections that hold it."""
        if not isinstance(error, StorageLockedError) or self._blockers is None:
            return error
        try:
            who = await self._blockers()
        except StorageError:
            return error
        return StorageLockedError(error.what, f"{error.problem}; {who}") if who else error


def _now() -> float:
    return asyncio.get_running_loop().time()
