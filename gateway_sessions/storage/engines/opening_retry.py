"""Retries while a store is opened on a server that cannot be used yet."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Final, TypeVar

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

FIRST_PAUSE: Final = 0.25
LONGEST_PAUSE: Final = 1.0
"""Between two tries. Nodes that are well get their locks meanwhile: they wait behind whoever opens."""
LEAST_SECONDS: Final = USUAL.idle_seconds + USUAL.lock_seconds
"""So long the locks of others are waited for in any case: by then the server has ended the transaction of a
node that stands still, and no new node fails because of that."""
_OF_OTHERS: Final = (StorageLockedError, NodeSilentError)
_LASTING: Final = (MissingRightError, SchemaTooOldError)
"""What no waiting changes."""


class OpeningRetry:
    """Repeats what a server refuses, until a store is open or the time is over that its opener waits."""

    def __init__(self, wait: float, blockers: Callable[[], Awaitable[str]] | None) -> None:
        """*blockers* tells who holds the locks that could not be had; None: this is no server."""
        self._wait = wait
        self._blockers = blockers
        self._since: float | None = None
        self._open = 0

    @contextmanager
    def opening(self) -> Generator[None]:
        """Repeat until the end of the block. The time counts from the first one on."""
        if self._since is None:
            self._since = _now()
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1

    async def run(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Return what comes of *attempt*, which is repeated while the store is being opened."""
        if not self._open or self._blockers is None:
            return await attempt()
        pause = FIRST_PAUSE
        while True:
            try:
                return await attempt()
            except _LASTING:
                raise
            except StorageUnavailableError as failure:
                error = failure
                wait = max(self._wait, LEAST_SECONDS) if isinstance(error, _OF_OTHERS) else self._wait
                left = (self._since or 0.0) + wait - _now()
                if left <= 0:
                    raise await self._explained(error) from error
            await asyncio.sleep(min(pause, left))
            pause = min(2 * pause, LONGEST_PAUSE) if isinstance(error, _OF_OTHERS) else FIRST_PAUSE

    async def _explained(self, error: StorageUnavailableError) -> StorageUnavailableError:
        """The error; if a lock could not be had, with the names of those who hold it."""
        if not isinstance(error, StorageLockedError) or self._blockers is None:
            return error
        try:
            who = await self._blockers()
        except StorageError:
            return error
        return StorageLockedError(error.what, f"{error.problem}; {who}") if who else error


def _now() -> float:
    return asyncio.get_running_loop().time()
