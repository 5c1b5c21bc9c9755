"""Searching: the index is asked, what it does not know yet is looked at, and the truth has the last word."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Protocol

from gateway_sessions.core.search_documents import Position
from gateway_sessions.core.search_filter import SearchFilter
from gateway_sessions.core.search_results import SearchResult, SessionSearchResult
from gateway_sessions.core.search_wanted import Wanted, Words
from gateway_sessions.ports import Reader
from gateway_sessions.storage.search_index.file import Found
from gateway_sessions.storage.search_index.match import (
    Certain,
    Match,
    certain_of_literal,
    certain_of_query,
    match_of,
)
from gateway_sessions.storage.verbs import search_hits, searching
from gateway_sessions.storage.verbs.search_hits import Order
from gateway_sessions.storage.verbs.searching import BEYOND, Candidate

WINDOW: Final = 2_000
"""The best are chosen among so many of the newest matches."""
SCAN_PAGE: Final = 500
MOST_SCANNED: Final = 10_000
"""So many messages are looked at one by one, no more."""
MOST_FOUND: Final = 50_000
"""So many answers of the index are compared with the truth, no more."""
ATTEMPTS: Final = 3
UNAVAILABLE: Final = "the search index cannot be used now"


class Index(Protocol):
    """Something that knows which messages contain what."""

    async def find(
        self, match: Match, after: int | None, limit: int, *, oldest_first: bool = False
    ) -> Found | None:
        """A page of what matches; None if it cannot be asked now."""
        ...


@dataclass(slots=True)
class _Catch:
    """What was found so far."""

    candidates: dict[int, Candidate] = field(default_factory=dict[int, Candidate])
    problem: str | None = None

    def add(self, candidates: list[Candidate]) -> None:
        self.candidates.update((one.message_id, one) for one in candidates)


@dataclass(frozen=True, slots=True)
class _Request:
    """What is asked of the index."""

    match: Match
    wanted: Wanted
    shown: SearchFilter
    order: Order
    enough: int
    seen: _Catch | None = None
    """What the newest messages have of it, if the index was of no help at first."""

    @property
    def most(self) -> int:
        """So many answers of the index are compared with the truth: of some, the whole text."""
        return MOST_FOUND if isinstance(self.wanted, Words) else MOST_SCANNED

    async def page(self, index: Index, after: int | None) -> Found | None:
        """The next page of answers."""
        return await index.find(self.match, after, WINDOW, oldest_first=self.order is Order.OLDEST)


class Search:
    """Finds messages in a truth with the help of an index."""

    def __init__(self, truth: Reader, index: Index) -> None:
        self._truth = truth
        self._index = index

    async def messages(
        self, wanted: Wanted, shown: SearchFilter, order: Order, *, offset: int, limit: int
    ) -> SearchResult:
        """A page of the messages that are wanted and may be shown."""
        catch = await self._catch(wanted, shown, order, max(WINDOW, offset + limit))
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
        catch = await self._catch(wanted, shown, order, WINDOW)
        found = list(catch.candidates.values())
        sessions = await self._truth.read(partial(search_hits.sessions_of, found, wanted, order, limit))
        return SessionSearchResult(
            sessions=tuple(sessions),
            ranked_among=len(found) if order is Order.BEST else None,
            degraded=catch.problem is not None,
            problem=catch.problem,
        )

    async def _catch(self, wanted: Wanted, shown: SearchFilter, order: Order, enough: int) -> _Catch:
        """What was found: enough of it to choose from."""
        if shown.sees_nothing:
            return _Catch()
        match = match_of(_certain(wanted), shown)
        if match is None:
            return await self._scan(wanted, shown, order, enough)
        for _ in range(ATTEMPTS):
            if (catch := await self._ask(_Request(match, wanted, shown, order, enough))) is not None:
                return catch
        scanned = await self._scan(wanted, shown, order, enough)
        scanned.problem = scanned.problem or UNAVAILABLE
        return scanned

    async def _ask(self, request: _Request) -> _Catch | None:
        """What the index and its tail say; None if there is no index, or they do not fit together."""
        found = await request.page(self._index, None)
        if found is None:
            return None
        if not found.is_answer:
            return request.seen or await self._look_instead(request)
        start = found.position
        catch, stale = await self._tail(start, request.wanted, request.shown)
        checked = 0
        while found.position.changes == start.changes:
            ids = [one for one in found.message_ids if one not in stale]
            catch.add(await self._truth.read(partial(searching.select, ids, request.wanted, request.shown)))
            checked += len(found.message_ids)
            if found.last_document is None or len(catch.candidates) >= request.enough:
                break
            if checked >= request.most:
                end = "oldest" if request.order is Order.OLDEST else "newest"
                catch.problem = f"of what may match only the {checked} {end} messages were looked at"
                break
            found = await request.page(self._index, found.last_document)
            if found is None or not found.is_answer:
                return None
        limits = await self._truth.read(searching.limits)
        fits = found.position.changes == start.changes and limits.cleared <= start.changes
        return catch if fits else None

    async def _tail(
        self, position: Position, wanted: Wanted, shown: SearchFilter
    ) -> tuple[_Catch, frozenset[int]]:
        """What the index does not know yet, and of which messages it tells what is not true any more."""
        catch = _Catch()
        fresh = await self._truth.read(partial(searching.fresh, position, wanted, shown, SCAN_PAGE))
        catch.add(fresh.candidates)
        if not fresh.complete:
            catch.problem = "the search index is behind; not all changed messages were looked at"
        if fresh.last is not None:
            await self._look_at(catch, wanted, shown, after=position.watermark, before=fresh.last)
        return catch, fresh.stale

    async def _look_instead(self, request: _Request) -> _Catch | None:
        """Look at messages; if the newest are not enough, let the index look for more words than is quick."""
        seen = await self._scan(request.wanted, request.shown, request.order, request.enough)
        if seen.problem is None:
            return seen
        return await self._ask(replace(request, match=replace(request.match, patient=True), seen=seen))

    async def _scan(self, wanted: Wanted, shown: SearchFilter, order: Order, enough: int) -> _Catch:
        """Look at messages one by one, without an index. Many of the newest say nothing of the oldest."""
        catch = _Catch()
        await self._look_at(catch, wanted, shown, enough=BEYOND if order is Order.OLDEST else enough)
        return catch

    async def _look_at(
        self,
        catch: _Catch,
        wanted: Wanted,
        shown: SearchFilter,
        *,
        after: int = 0,
        before: int = BEYOND,
        enough: int = BEYOND,
    ) -> None:
        """Look at messages between two ids, the newest first, as far as it is bearable."""
        for _ in range(MOST_SCANNED // SCAN_PAGE):
            scanned = await self._truth.read(partial(searching.scan, after, before, wanted, shown, SCAN_PAGE))
            catch.add(scanned.candidates)
            if scanned.last is None or len(catch.candidates) >= enough:
                return
            before = scanned.last
        catch.problem = (
            f"only the {MOST_SCANNED} newest messages that the index does not help with were looked at"
        )


def _certain(wanted: Wanted) -> Certain:
    """What a message certainly has if it is wanted."""
    if isinstance(wanted, Words):
        return certain_of_query(wanted.query)
    return certain_of_literal(wanted.needle)
