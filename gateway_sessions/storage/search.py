"""Searching: the index is asked, what it does not know yet is looked at, and the truth has the last word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Final, Protocol

from msgspec import structs

from gateway_sessions.core.search_filter import SearchFilter
from gateway_sessions.core.search_near import NearWords
from gateway_sessions.core.search_results import SearchResult, SessionSearchResult
from gateway_sessions.core.search_wanted import Vocabulary, Wanted, Words
from gateway_sessions.ports import Reader
from gateway_sessions.storage.catching import MOST_SCANNED, Catch, Request, scan
from gateway_sessions.storage.verbs import search_hits
from gateway_sessions.storage.verbs.search_hits import Order

WINDOW: Final = 2_000
"""The best are chosen among so many of the newest matches."""
ATTEMPTS: Final = 3
NOT_ALL_WORDS: Final = (
    f"words like those of the query were looked for in the {MOST_SCANNED} newest messages only"
)
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
        request = Request(wanted, shown, order, max(WINDOW, offset + limit))
        catch, wanted, near = await self._catch_all(request, wanted)
        found = list(catch.candidates.values())
        hits = await self._truth.read(partial(search_hits.page_of, found, wanted, order, offset, limit))
        return SearchResult(
            hits=tuple(hits),
            matches=len(found),
            ranked_among=len(found) if order is Order.BEST else None,
            degraded=catch.problem is not None,
            problem=catch.problem,
            near_words=near,
        )

    async def sessions(
        self, wanted: Wanted, shown: SearchFilter, order: Order, *, limit: int
    ) -> SessionSearchResult:
        """The conversations in which something is wanted and may be shown."""
        catch, wanted, near = await self._catch_all(Request(wanted, shown, order, WINDOW), wanted)
        found = list(catch.candidates.values())
        sessions = await self._truth.read(partial(search_hits.sessions_of, found, wanted, order, limit))
        return SessionSearchResult(
            sessions=tuple(sessions),
            ranked_among=len(found) if order is Order.BEST else None,
            degraded=catch.problem is not None,
            problem=catch.problem,
            near_words=near,
        )

    async def _catch_all(self, request: Request, wanted: Wanted) -> tuple[Catch, Wanted, tuple[str, ...]]:
        """What was found, also by words like those of a fuzzy query; with what was looked for and these."""
        catch = await self._catch(request)
        if not isinstance(wanted, Words) or not wanted.query.fuzzy_words:
            return catch, wanted, ()
        near, problem = await self._near_words(request, wanted.query.fuzzy_words)
        catch.problem = catch.problem or problem
        if not near:
            return catch, wanted, ()
        widened = Words(wanted.query.widened(near), wanted.stems)
        more = await self._catch(replace(request, wanted=widened))
        catch.problem = catch.problem or more.problem
        others = [one for at, one in more.candidates.items() if at not in catch.candidates]
        catch.add([structs.replace(one, near=True) for one in others])
        return catch, widened, tuple(dict.fromkeys(chain.from_iterable(near.values())))

    async def _near_words(
        self, request: Request, words: frozenset[str]
    ) -> tuple[Mapping[str, tuple[str, ...]], str | None]:
        """The words like these in the newest messages that may be shown, and why there may be others.

        A server has no list of all words, and to look at each word that was ever said would take too long.
        """
        vocabulary = Vocabulary(NearWords(words))
        looked = await self._catch(
            replace(request, wanted=vocabulary, order=Order.NEWEST, enough=MOST_SCANNED)
        )
        partly = looked.problem is not None or len(looked.candidates) >= MOST_SCANNED
        return vocabulary.near.found, NOT_ALL_WORDS if partly or vocabulary.near.is_full else None

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
