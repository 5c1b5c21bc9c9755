"""Running code that is not ours: it sees nothing of whoever called it, and takes no longer than it may."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import Context
from datetime import timedelta
from typing import Final, Generic, TypeVar

import anyio

from gateway_sessions.errors import CancelledItselfError
from gateway_sessions.ports import Clock

T = TypeVar("T")

MAX_PROBLEM: Final = 500
"""Characters of what foreign code says of its own failure."""
GRACE: Final = timedelta(seconds=5)
INSISTENCE: Final = timedelta(seconds=0.1)
"""How often work that goes on after its grace is cancelled."""


async def in_fresh_context(
    what: str, work: Callable[[], Awaitable[T]], clock: Clock, *, grace: timedelta = GRACE
) -> T:
    """What *work* returns or raises, run in a task of its own that sees no context variable of the caller.

    If the caller is cancelled, *work* is cancelled once, and may clean up for as long as *grace*; then all
    that it awaits is cancelled, until it has ended. *what* names it in `CancelledItselfError`, which is
    raised if it ends by a cancellation of its own.
    """
    outcome = _Outcome[T]()
    # Not a group of anyio's: it would cancel every await of a clean-up from the beginning.
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(outcome.of(work), context=Context())
        try:
            await asyncio.wait({task})
        finally:
            await _stopped(task, clock, grace)
    return outcome.result(what)


async def problem_within(
    limit: timedelta, clock: Clock, work: Callable[[], Awaitable[object]], *, grace: timedelta = GRACE
) -> str | None:
    """Run *work* like that, but no longer than *limit*; what went wrong, or None."""
    outcome = _Outcome[object]()
    seconds = limit.total_seconds()
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(outcome.of(work), context=Context())
        timer = tasks.create_task(clock.sleep(seconds))
        try:
            await asyncio.wait({task, timer}, return_when=asyncio.FIRST_COMPLETED)
            in_time = task.done()
        finally:
            timer.cancel()
            await _stopped(task, clock, grace)
    return outcome.problem if in_time else f"took longer than {seconds:g} s"


class _Outcome(Generic[T]):
    """How some work ended; at first, and for good if it cancels itself: neither well nor badly."""

    __slots__ = ("failure", "returned")

    def __init__(self) -> None:
        self.returned: list[T] = []
        self.failure: Exception | None = None

    async def of(self, work: Callable[[], Awaitable[T]]) -> None:
        """Do the work and note its end."""
        try:
            self.returned.append(await work())
        except Exception as error:  # noqa: BLE001 -- raised or told to whoever waits for the outcome
            self.failure = error

    def result(self, what: str) -> T:
        """What the work has returned; else its failure is raised, once."""
        if self.failure is not None:
            try:
                raise self.failure
            finally:
                self.failure = None  # or it would keep itself alive, by its traceback
        if not self.returned:
            raise CancelledItselfError(what)
        return self.returned[0]

    @property
    def problem(self) -> str | None:
        """What went wrong, in words."""
        if self.failure is not None:
            return f"{type(self.failure).__name__}: {self.failure}"[:MAX_PROBLEM]
        return None if self.returned else "cancelled itself"


async def _stopped(task: asyncio.Task[None], clock: Clock, grace: timedelta) -> None:
    """Stop a task that has not ended, first kindly, and wait for its end."""
    if task.done():
        return

    async def insist() -> None:
        await clock.sleep(grace.total_seconds())
        while True:
            task.cancel()
            await clock.sleep(INSISTENCE.total_seconds())

    task.cancel()
    with anyio.CancelScope(shield=True):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(insist)
            await asyncio.wait({task})
            tasks.cancel_scope.cancel()
