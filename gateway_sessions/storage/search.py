"""Searching: the index is asked, what it does not know yet is looked at, and the truth has the last word."""

from __future__ import annotations

from functools import partial
from typing import Final, Protocol

from gateway_sessions.core.search_filter import SearchFilter
from gateway_sessions.core.search_results import SearchResult, SessionSearchResult
from gateway_sessions.core.search_wanted import Wanted
from gateway_sessions.ports import Reader
from gateway_sessions.storage.catching import Catch, Request, scan
from gateway_sessions.storage.verbs import search_hits
from gateway_sessions.storage.verbs.search_hits import Order

WINDOW: Final = 2_000
"""The best are chosen among so many of the newest matches."""
ATTEMPTS: Final = 3
UNAVAILABLE: Final = "the search index cannot be used now"


class Index(Protocol):
    """Something that knows which messages contain what."""

    async def catch(self, request: Request) -> Catch | None:
        """What it and what it does not know yet have of what is wanted; None if it cannot be asked now."""
        ...


class Search:
    """Finds messages in a truth with the help of an index."""

    def __init__(self, truth: Reader, index: Index) -> None:
        self._truth = truth
        self._index = index

    async def messages(
        self, wanted: Wanted, shown: SearchFilter, order: Order, *, offset: int, limit: int
    ) -> SearchResult:
        """A page of the messages that are wanted and may be shown."""
        catch = await self._catch(Request(wanted, shown, order, max(WINDOW, offset + limit)))
        found = list(catch.candidates.values())
        hits = await self._truth.read(partial(search_hits.page_of, found, wanted, order, offset, limit))
        return SearchResult(
            hits=tuple(hits),
            matches=len(found),
            ranked_among=len(found) if order is Order.BEST else None,
            degraded=catch.problem is not None,
            problem=catch.problem,
        )

    async def sessions(
        self, wanted: Wanted, shown: SearchFilter, order: Order, *, limit: int
    ) -> SessionSearchResult:
        """The conversations in which something is wanted and may be shown."""
        catch = await self._catch(Request(wanted, shown, order, WINDOW))
        found = list(catch.candidates.values())
        sessions = await self._truth.read(partial(search_hits.sessions_of, found, wanted, order, limit))
        return SessionSearchResult(
            sessions=tuple(sessions),
            ranked_among=len(found) if order is Order.BEST else None,
            degraded=catch.problem is not None,
            problem=catch.problem,
        )

    async def _catch(self, request: Request) -> Catch:
        """What was found: enough of it to choose from."""
        if request.shown.sees_nothing:
            return Catch()
        for _ in range(ATTEMPTS):
            if (catch := await self._index.catch(request)) is not None:
                return catch
        # Whoever looks at everything misses nothing: only what is left out has to be told.
        scanned = await scan(self._truth, request)
        if scanned.problem is not None:
            scanned.problem = f"{UNAVAILABLE}; {scanned.problem}"
        return scanned
