"""The progress of a long piece of work, in units that a person can follow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkProgress:
    """The progress of a work of several steps."""

    doing: str
    """The current step, in words for people."""
    done: int = 0
    """The number of units that are done."""
    total: int | None = None
    """The number of all units; None: unknown."""


OnProgress: TypeAlias = Callable[[WorkProgress], object]
"""A function that is called now and then with the progress, on the event loop; it is not awaited."""


class ProgressSteps:
    """Reports one step after the other, if a caller asked for reports."""

    def __init__(self, tell: OnProgress | None, total: int) -> None:
        self._tell = tell
        self._total = total
        self._done = 0

    def begin_step(self, doing: str) -> None:
        """Report that the next step begins, and count the step before as done."""
        if self._tell is not None:
            self._tell(WorkProgress(doing=doing, done=self._done, total=self._total))
        self._done += 1
