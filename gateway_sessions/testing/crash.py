"""Ending or failing a program at a named point: what a test of crash recovery needs.

with crash_at("before_commit", nth=3):       # in a child process: SIGKILL at the third pass
asyncio.run(work())

with crash_at("before_commit", action=raising(OSError("disk"))):   # here: the commit fails
...
"""

from __future__ import annotations

import itertools
import os
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from gateway_sessions.failpoints import arm

_POINT = re.compile(r'^\s*failpoint\("(\w+)"\)$', re.MULTILINE)


@dataclass(slots=True)
class Crash:
    """What became of an armed point."""

    fired: bool = False


@cache
def failpoint_names() -> frozenset[str]:
    """Every point that the package passes somewhere."""
    return frozenset(_points_in(files("gateway_sessions")))


def die() -> None:
    """End this process as a power cut would: nothing is flushed, closed or cleaned up."""
    if hasattr(signal, "SIGKILL"):
        os.kill(os.getpid(), signal.SIGKILL)
    os._exit(137)


def raising(error: BaseException) -> Callable[[], None]:
    """An action for `crash_at` that lets the call at the point fail."""

    def fail() -> None:
        raise error

    return fail


@contextmanager
def crash_at(name: str, *, nth: int = 1, action: Callable[[], None] = die) -> Iterator[Crash]:
    """Perform *action*, by default `die`, at the *nth* pass of a point within the block."""
    if name not in failpoint_names():
        known = ", ".join(sorted(failpoint_names()))
        raise ValueError(f"there is no failpoint {name!r}; there are: {known}")  # noqa: TRY003 -- only a test meets it
    crash, passes = Crash(), itertools.count(1)

    def passed(point: str) -> None:
        if point == name and next(passes) == nth:
            crash.fired = True
            action()

    arm(passed)
    try:
        yield crash
    finally:
        arm(None)


@contextmanager
def count_passes() -> Iterator[Counter[str]]:
    """How often each point is passed within the block."""
    passes: Counter[str] = Counter()
    arm(lambda point: passes.update((point,)))
    try:
        yield passes
    finally:
        arm(None)


def _points_in(directory: Traversable) -> Iterator[str]:
    for one in directory.iterdir():
        if one.is_dir():
            yield from _points_in(one)
        elif one.name.endswith(".py"):
            yield from _POINT.findall(one.read_text("utf-8"))
