"""How far a long piece of work has come, in units that a person can follow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkProgress:
    """How far a work of several steps is."""

    doing: str
    """What is being done, in words for people."""
    done: int = 0
    total: int | None = None
    """How many there are of what is done; None: nobody knows."""


OnProgress: TypeAlias = Callable[[WorkProgress], object]
"""Called now and then with how far it is, on the loop; not awaited."""


class Steps:
    """Tells of one step after the other, if anybody wants to know."""

    def __init__(self, tell: OnProgress | None, total: int) -> None:
        self._tell = tell
        self._total = total
        self._done = 0

    def begin(self, doing: str) -> None:
        """The next one begins; the one before is done."""
        if self._tell is not None:
            self._tell(WorkProgress(doing=doing, done=self._done, total=self._total))
        self._done += 1
