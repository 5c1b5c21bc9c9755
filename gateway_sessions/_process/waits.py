"""Marks of waits, by which a test clock tells a task that rests from one that works."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from types import CodeType, FunctionType
from typing import Any, Final, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


class WaitMark(Enum):
    """A wait tells by this mark whether its task rests or works, whatever is awaited within."""

    RESTS = auto()
    """It lasts as long as a resource is open, until somebody wants something of that."""
    WORKS = auto()
    """It lasts until a thread has done some work."""


_marks: Final[dict[int, WaitMark]] = {}
"""By the identity of code, as a test asks for each frame of each task. Functions keep their code alive."""


def rests_while_waiting(function: F) -> F:
    """Mark a coroutine function that serves a resource, and waits for callers most of the time."""
    mark_wait(function, WaitMark.RESTS)
    return function


def works_while_waiting(function: F) -> F:
    """Mark a coroutine function that waits for a thread."""
    mark_wait(function, WaitMark.WORKS)
    return function


def mark_wait(function: Callable[..., Any], mark: WaitMark) -> None:
    """Mark a coroutine function of another package."""
    _marks[id(cast("FunctionType", function).__code__)] = mark


def wait_mark(code: CodeType) -> WaitMark | None:
    """Return the mark of the function that has this code."""
    return _marks.get(id(code))
