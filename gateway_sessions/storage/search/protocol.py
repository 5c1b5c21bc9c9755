"""`Index`: the protocol of a search index, and the report of its state."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final, Protocol

from anyio.abc import TaskGroup

from gateway_sessions._process.retry import Backoff
from gateway_sessions.core.search.stems import Stems
from gateway_sessions.storage.search.search import SearchProgress, SearchRequest

NAME: Final = "search index"
READ_ONLY: Final = "was opened for reading; ask the owner of the store"
INDEXING_BACKOFF: Final = Backoff(timedelta(seconds=5), timedelta(minutes=5))
"""The pauses of a duty that fills an index, after errors: searches scan messages meanwhile."""


class IndexState(StrEnum):
    """States how complete the search index is."""

    EMPTY = "empty"  # there is no message yet
    BUILDING = "building"  # messages are missing in it, or it is being made anew
    READY = "ready"
    UNAVAILABLE = "unavailable"  # it cannot be used now; `problem` says why


@dataclass(frozen=True, slots=True)
class IndexReport:
    """Reports the state of the search index."""

    state: IndexState
    watermark: int = 0
    """The id of the newest message in the index."""
    problem: str | None = None
    """The reason why the index cannot be used, or was last made anew."""
    rebuilt: int = 0
    """The number of times that the index was made anew since the store was opened."""


class SearchIndex(Protocol):
    """Finds messages by their words."""

    woken: asyncio.Event
    """Set when there may be new messages, for which the index then looks."""

    @property
    def report(self) -> IndexReport:
        """Return the state of the index."""
        ...

    async def run_query(self, request: SearchRequest) -> SearchProgress | None:
        """Return the ids of matching messages, from the index and from messages that are not indexed yet.

        Return None if the index cannot be used now.
        """
        ...

    def stem_with(self, stems: Stems) -> None:
        """Use these stems from now on. This is called before `start`, and seldom later."""
        ...

    def start(self, tasks: TaskGroup, highest: int, *, orderly: bool) -> None:
        """Begin to index new messages in the background.

        *highest* is the largest row id of earlier owners; *orderly* is True if the last of them has closed
        the store.
        """
        ...

    async def catch_up(self) -> None:
        """Wait until all messages that were stored before are in the index; raise what prevents that."""
        ...

    async def rebuild(self) -> None:
        """Empty the index, and make it anew from the database in the background."""
        ...

    async def forget_removed(self) -> None:
        """Remove the words of messages that were deleted from the database."""
        ...

    async def check(self) -> IndexReport:
        """Verify the index, and return its state."""
        ...
