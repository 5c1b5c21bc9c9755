"""Whether the tasks of an event loop rest, as far as can be seen from outside.

A task rests while it waits for another task: for a lock, an event, a queue, a task group or a fake clock. It
works while it moves, and while it waits for something that no other task will bring: a thread, a socket, a
future that somebody completes. The innermost frame of its stack tells which.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from types import CoroutineType, FrameType, GeneratorType
from typing import Any, Final, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

AnyTask: TypeAlias = asyncio.Task[Any]

# Modules whose waits are ended by another task, and the functions in them of which this is not true.
_WAITS_FOR_TASKS: Final = {
    "anyio._backends._asyncio": {"run_sync_in_worker_thread"},
    "asyncio.locks": set[str](),
    "asyncio.queues": set[str](),
    "asyncio.taskgroups": set[str](),
    "asyncio.tasks": {"sleep"},
    "gateway_sessions.testing.clock": set[str](),
}
# A wait that lasts as long as a resource is open, and says nothing about work.
_SERVES: Final = {
    ("gateway_sessions.adapters.console", "_readable"),
    ("gateway_sessions.adapters._http", "_accept"),
    ("gateway_sessions.storage.control_server", "_accept"),
    ("gateway_sessions.storage.control_server", "_next"),
    ("gateway_sessions.storage.drivers.sqlite_worker", "run"),
}
# A wait for a thread, in whatever words.
_WORKS: Final = {("gateway_sessions.storage.in_thread", "in_thread")}
_NAMED: Final = {function for _, function in _SERVES | _WORKS}


# Where waits for threads begin that always answer, however slow the disk is.
_ANSWERED: Final = ("gateway_sessions.storage.", "aiosqlite.", "asyncio.threads")


class Working(NamedTuple):
    """The tasks that do not rest."""

    busy: list[AnyTask]
    """They have moved since the last look, or wait for a thread that always answers."""
    waiting: list[AnyTask]
    """They wait for something outside, which may never come."""
    ended: bool = False
    """Whether a task has ended since the last look: whoever it has woken may not have moved yet."""


class Stillness:
    """Watches the tasks of the running loop, all but the one that asks."""

    def __init__(self) -> None:
        self._places: WeakKeyDictionary[AnyTask, object] = WeakKeyDictionary()
        self._idle: WeakKeyDictionary[AnyTask, object] = WeakKeyDictionary()
        self._alive: frozenset[int] = frozenset()
        """By identity; a new task at an old place has moved anyhow."""

    def working(self, woken: Collection[AnyTask], asleep: Collection[AnyTask]) -> Working:
        """List the tasks that have moved since the last call, or wait for something outside the loop.

        A real timer counts as such for *woken* tasks only: others may poll whatever they like. *asleep* are
        known to rest, however deep in a generator.
        """
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        before, self._alive = self._alive, frozenset(map(id, tasks))
        found = Working([], [], ended=not before <= self._alive)
        for task in tasks - set(asleep):
            place, frame = _innermost(task.get_coro())
            outside = _is_outside(frame, poller=task not in woken)
            if self._places.get(task) is not place:
                self._places[task] = place
                (found.waiting if _is_timer(frame) else found.busy).append(task)
            elif outside and self._idle.get(task) is not place:
                (found.busy if _is_answered(frame) else found.waiting).append(task)
        return found

    def call_idle(self, tasks: Collection[AnyTask]) -> None:
        """Take the present waits of *tasks* for rest from now on: they have lasted too long for work."""
        for task in tasks:
            self._idle[task] = _innermost(task.get_coro())[0]


def where(task: AnyTask) -> str:
    """Name the task and the line at which it waits."""
    _, frame = _innermost(task.get_coro())
    place = f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else "its end"
    return f"{task.get_name()} at {place}"


def _innermost(awaited: Any) -> tuple[object, FrameType | None]:
    """Find what a coroutine waits for in the end, and the frame that waits for it; none if it just serves.

    A test asks this for every task in every turn of its loop: nothing is looked up that need not be.
    """
    frame: FrameType | None = None
    following = awaited
    while following is not None:
        awaited = following
        kind = type(awaited)  # pyright: ignore[reportUnknownVariableType]  # of anything at all
        if kind is CoroutineType:
            frame, following = awaited.cr_frame, awaited.cr_await
        elif kind is GeneratorType:
            frame, following = awaited.gi_frame, awaited.gi_yieldfrom
        else:
            break
        if frame is not None and frame.f_code.co_name in _NAMED:
            place = (frame.f_globals.get("__name__"), frame.f_code.co_name)
            if place in _SERVES:
                return awaited, None
            if place in _WORKS:
                return awaited, frame
    return awaited, frame


def _is_outside(frame: FrameType | None, *, poller: bool) -> bool:
    if frame is None or (poller and _is_timer(frame)):
        return False
    exceptions = _WAITS_FOR_TASKS.get(str(frame.f_globals.get("__name__")))
    return exceptions is None or frame.f_code.co_name in exceptions


def _is_answered(frame: FrameType | None) -> bool:
    return frame is not None and str(frame.f_globals.get("__name__")).startswith(_ANSWERED)


def _is_timer(frame: FrameType | None) -> bool:
    if frame is None:
        return False
    return (frame.f_globals.get("__name__"), frame.f_code.co_name) == ("asyncio.tasks", "sleep")
