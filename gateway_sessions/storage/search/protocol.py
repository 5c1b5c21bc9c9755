"""`Index`: the protocol of a search index, and the report of its state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, Protocol

from anyio.abc import TaskGroup

from gateway_sessions.core.search.stems import Stems
from gateway_sessions.storage.search.search import SearchProgress, SearchRequest

NAME: Final = "search index"
READ_ONLY: Final = "was opened for reading; ask the owner of the store"


class IndexState(StrEnum):
    """How much a search can expect of the index."""

    EMPTY = "empty"  # nothing was said yet
    BUILDING = "building"  # it is behind, or being made anew
    READY = "ready"
    UNAVAILABLE = "unavailable"  # it cannot be used now; see the problem


@dataclass(frozen=True, slots=True)
class IndexReport:
    """How the search index is."""

    state: IndexState
    watermark: int = 0
    """The last message in it."""
    problem: str | None = None
    """Why it cannot be used, or what was wrong with it when it was last given up."""
    rebuilt: int = 0
    """How often it had to be made anew since the store was opened."""


class SearchIndex(Protocol):
    """Something that knows which messages contain what."""

    on_fault: Callable[[str, Path | None], object]
    """Called when it was not as it should be; not when it was merely out of date."""

    @property
    def report(self) -> IndexReport:
        """How it is."""
        ...

    async def run_query(self, request: SearchRequest) -> SearchProgress | None:
        """What it and what it does not know yet have of what is wanted; None if it cannot be asked now."""
        ...

    def stem_with(self, stems: Stems) -> None:
        """Words are found with these stems from now on: told before it begins, and seldom later."""
        ...

    def start(self, tasks: TaskGroup, highest: int, *, orderly: bool) -> None:
        """Begin to take in what is said, in the background.

        *highest* is the largest id of earlier owners, *orderly* whether the last of them has said goodbye.
        """
        ...

    def wake(self) -> None:
        """Something may have been said."""
        ...

    async def catch_up(self) -> None:
        """Return when all that was said before is in the index, or raise what prevents it."""
        ...

    async def rebuild(self) -> None:
        """Forget all of it; it is made anew from the truth, in the background."""
        ...

    async def forget_removed(self) -> None:
        """Leave nothing in it of messages that are not there any more."""
        ...

    async def check(self) -> IndexReport:
        """Look whether it is as it should be."""
        ...
