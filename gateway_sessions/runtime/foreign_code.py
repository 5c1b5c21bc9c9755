"""Running code that is not ours: it sees nothing of whoever called it, and takes no longer than it may."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import Context
from datetime import timedelta
from typing import Any, Final, TypeVar

import anyio
from anyio.abc import TaskGroup

from gateway_sessions.errors import CancelledItselfError
from gateway_sessions.ports import Clock

T = TypeVar("T")

MAX_PROBLEM: Final = 500
"""Characters of what foreign code says of its own failure."""
GRACE: Final = timedelta(seconds=5)
INSISTENCE: Final = timedelta(seconds=0.1)
"""How often work that goes on after its grace is cancelled."""


def start_fresh(tasks: TaskGroup, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
    """Start a task in *tasks* that sees no context variable of the caller, nor leaves one behind."""

    def start() -> None:
        tasks.start_soon(work)

    Context().run(start)


async def in_fresh_context(
    what: str, work: Callable[[], Awaitable[T]], clock: Clock, *, grace: timedelta = GRACE
) -> T:
    """What *work* returns or raises, run in a task of its own that sees no context variable of the caller.

    If the caller is cancelled, *work* is cancelled once, and may clean up for as long as *grace*; then all
    that it awaits is cancelled, until it has ended. *what* names it in `CancelledItselfError`, which is raised
    if it ends by a cancellation of its own.
    """
    outcomes: list[T] = []
    failures: list[Exception] = []

    async def call() -> None:
        try:
            outcomes.append(await work())
        except Exception as error:  # noqa: BLE001 -- raised again below, and not as a group of one
            failures.append(error)

    # Not a group of anyio's: it would cancel every await of a clean-up from the beginning.
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(call(), context=Context())
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            await _stopped(task, clock, grace)
            raise
    if failures:
        raise failures[0]
    if not outcomes:
        raise CancelledItselfError(what)
    return outcomes[0]


async def _stopped(task: asyncio.Task[None], clock: Clock, grace: timedelta) -> None:
    """Stop a task, first kindly, and wait for its end."""

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


async def problem_within(limit: timedelta, clock: Clock, work: Callable[[], Awaitable[object]]) -> str | None:
    """Run *work* in a fresh context, as long as it may; what went wrong, or None."""
    problems: list[str | None] = []
    seconds = limit.total_seconds()
    async with anyio.create_task_group() as tasks:

        async def call() -> None:
            try:
                await work()
            except Exception as error:  # noqa: BLE001 -- told to whoever asked for it
                problems.append(f"{type(error).__name__}: {error}"[:MAX_PROBLEM])
            else:
                problems.append(None)
            tasks.cancel_scope.cancel()

        async def stop() -> None:
            await clock.sleep(seconds)
            problems.append(f"took longer than {seconds:g} s")
            tasks.cancel_scope.cancel()

        start_fresh(tasks, call)
        tasks.start_soon(stop)
    return problems[0] if problems else "cancelled itself"
