"""Tasks that are begun for every message.

They live in a plain group of asyncio's, inside a task of the resource's own: to begin one there takes a fifth
of the time. It is cancelled once, and not at every await, so what runs here must end when it is told to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from gateway_sessions.errors import StoreStoppedError


class Crew:
    """A group of tasks that runs as long as somebody runs it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._tasks: asyncio.TaskGroup | None = None

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin to work on that."""
        if self._tasks is None:
            work.close()
            raise StoreStoppedError(self._name)
        self._tasks.create_task(work)

    async def run(self) -> None:
        """Let tasks be begun, until cancelled; then wait for their end."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            try:
                await asyncio.Event().wait()
            finally:
                self._tasks = None
