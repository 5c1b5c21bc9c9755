"""Doing something at the k-th await: of one coroutine, or of every task there is."""

from __future__ import annotations

import asyncio
import types
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from typing import Any


class Suspensions:
    """Counts awaits that really wait, and acts at one of them."""

    def __init__(self, at: int, action: Callable[[], object]) -> None:
        self.count = 0
        self._at = at
        self._action = action

    @property
    def reached(self) -> bool:
        return self._at <= self.count

    @types.coroutine
    def watch(self, work: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Run a coroutine and count where it waits."""
        resume: Callable[[], Any] = lambda: work.send(None)  # noqa: E731
        while True:
            try:
                waits_for = resume()
            except StopIteration as stop:
                return stop.value
            self.count += 1
            if self.count == self._at:
                self._action()
            try:
                yield waits_for
            except GeneratorExit:
                work.close()
                raise
            except BaseException as error:  # noqa: BLE001 -- it belongs to the coroutine inside
                resume = lambda error=error: work.throw(error)  # noqa: E731
            else:
                resume = lambda: work.send(None)  # noqa: E731


@contextmanager
def counting_in_every_task(suspensions: Suspensions) -> Iterator[None]:
    """Count in all tasks that are made in the block."""
    loop = asyncio.get_running_loop()

    def factory(loop: Any, work: Any, **options: Any) -> asyncio.Task[Any]:
        return asyncio.Task(_as_coroutine(suspensions, work), loop=loop, **options)

    loop.set_task_factory(factory)
    try:
        yield
    finally:
        loop.set_task_factory(None)


async def _as_coroutine(suspensions: Suspensions, work: Coroutine[Any, Any, Any]) -> Any:
    return await suspensions.watch(work)
