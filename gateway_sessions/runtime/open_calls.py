"""`OpenCalls`: counts the running calls of a resource, so that closing waits for them and refuses more."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import anyio
from anyio.abc import TaskGroup

from gateway_sessions.errors import StoreStoppedError


class OpenCalls:
    """Counts the calls of a resource; once it is closed, further ones are refused."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._open = 0
        self._closed = False
        self._done = anyio.Event()

    @contextmanager
    def one(self) -> Generator[None]:
        """A call, from its beginning to its end; `StoreStoppedError` if it comes too late."""
        if self._closed:
            raise StoreStoppedError(self._name)
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1
            self._done.set()

    async def close(self, limit: timedelta) -> None:
        """Refuse further calls, and wait for the end of those that are open: so long in real time at most."""
        self._closed = True
        with anyio.move_on_after(limit.total_seconds()):
            while self._open:
                self._done = anyio.Event()
                await self._done.wait()


def start_in(tasks: TaskGroup, name: str, work: Callable[..., Any], *arguments: Any) -> None:
    """Begin a task of a resource; `StoreStoppedError` if that has ended meanwhile, as after a crash."""
    try:
        tasks.start_soon(work, *arguments)
    except RuntimeError as error:  # that is what a group of tasks says that has ended
        raise StoreStoppedError(name) from error
