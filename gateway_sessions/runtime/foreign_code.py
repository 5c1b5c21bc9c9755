"""Running code that is not ours: it sees nothing of whoever called it, and takes no longer than it may."""

from __future__ import annotations

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


def start_fresh(tasks: TaskGroup, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
    """Start a task in *tasks* that sees no context variable of the caller, nor leaves one behind."""

    def start() -> None:
        tasks.start_soon(work)

    Context().run(start)


async def in_fresh_context(what: str, work: Callable[[], Awaitable[T]]) -> T:
    """What *work* returns or raises, run in a task of its own that sees no context variable of the caller.

    *what* names it in `CancelledItselfError`, if it ends like that.
    """
    outcomes: list[T] = []
    failures: list[Exception] = []

    async def call() -> None:
        try:
            outcomes.append(await work())
        except Exception as error:  # noqa: BLE001 -- raised again below, and not as a group of one
            failures.append(error)

    async with anyio.create_task_group() as tasks:
        start_fresh(tasks, call)
    if failures:
        raise failures[0]
    if not outcomes:
        raise CancelledItselfError(what)
    return outcomes[0]


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
