"""Methods of `SessionDB` that search messages and sessions, and that check or rebuild the search index."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final, TypedDict, TypeVar, Unpack

from gateway_sessions.core.identity.scope import Scope
from gateway_sessions.core.instants import parse_instant
from gateway_sessions.core.search.criteria import Criterion, criterion_of
from gateway_sessions.core.search.filters import SearchFilter, filter_words
from gateway_sessions.core.search.results import SearchResult, SessionSearchResult
from gateway_sessions.core.search.stems import Stems
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.storage.search.protocol import IndexReport, SearchIndex
from gateway_sessions.storage.search.search import Search
from gateway_sessions.storage.search.stemming import StoreStems
from gateway_sessions.storage.transaction_runner_protocol import TransactionRunner
from gateway_sessions.storage.transactions.search.hits import Order

Choice = TypeVar("Choice", bound=StrEnum)

MOST_HITS: Final = 1_000
"""The largest page of hits: it bounds the memory and time of one search."""
LAST_HIT: Final = 10_000
"""The largest offset: no page of hits begins behind it."""


class SearchMode(StrEnum):
    """The meaning of a query."""

    WORDS = "words"  # words, phrases, OR, NOT, beginnings of words
    SUBSTRING = "substring"  # the text as it stands, anywhere, in any case


class SearchOptions(TypedDict, total=False):
    """The filters of a search, and the mode of its query."""

    source_filter: Sequence[str] | None
    exclude_sources: Sequence[str] | None
    role_filter: Sequence[str] | None
    session_id: str | None
    session_key: str | None
    since: datetime | float | str | None
    until: datetime | float | str | None
    sort: str | None
    mode: str
    fuzzy: bool
    include_hidden: bool
    exclude_sessions: Collection[str]


class SearchMethods(TransactionRunner):
    """Search in the messages that a scope may see."""

    _index: SearchIndex
    _search: Search
    _stems: StoreStems

    async def search_stems(self) -> Stems:
        """Return the stems by which words are found in all their forms."""
        return await self._stems.read_current()

    async def search_messages(
        self, query: str, *, scope: Scope, limit: int = 20, offset: int = 0, **options: Unpack[SearchOptions]
    ) -> SearchResult:
        """Return messages that match a query: the best ones first, or by `sort` the newest or the oldest."""
        _check_page(limit, offset)
        wanted, shown, order = _parse_search(query, scope, options, await self.search_stems())
        if wanted is None:
            return SearchResult()
        return await self._search.search_messages(wanted, shown, order, offset=offset, limit=limit)

    async def search_sessions(
        self, query: str, *, scope: Scope, limit: int = 10, **options: Unpack[SearchOptions]
    ) -> SessionSearchResult:
        """Return the conversations with messages that match a query, each once, with its best message."""
        _check_page(limit, 0)
        wanted, shown, order = _parse_search(query, scope, options, await self.search_stems())
        if wanted is None:
            return SessionSearchResult()
        return await self._search.search_sessions(wanted, shown, order, limit=limit)

    @property
    def search_index(self) -> IndexReport:
        """Return the state of the search index: empty, building, ready or unavailable, and why."""
        return self._index.report

    async def catch_up_search_index(self) -> None:
        """Return when the index has read all messages so far. A search does not need to wait for this."""
        await self._index.catch_up()

    async def check_search_index(self) -> IndexReport:
        """Check the whole index; a damaged one is set aside and made again from the messages."""
        return await self._index.check()

    async def rebuild_search_index(self) -> None:
        """Remove the index from the disk and make it again in the background."""
        await self._index.rebuild()


def _parse_search(
    query: str, scope: Scope, options: SearchOptions, stems: Stems
) -> tuple[Criterion | None, SearchFilter, Order]:
    shown = SearchFilter(
        scope=scope,
        sources=filter_words("source_filter", options.get("source_filter")),
        exclude_sources=filter_words("exclude_sources", options.get("exclude_sources")) or frozenset(),
        roles=filter_words("role_filter", options.get("role_filter")),
        session_id=options.get("session_id"),
        session_key=options.get("session_key"),
        since=parse_instant("since", options.get("since")),
        until=parse_instant("until", options.get("until")),
        include_hidden=options.get("include_hidden", False),
        exclude_sessions=frozenset(options.get("exclude_sessions", ())),
    )
    mode = _parse_choice("mode", SearchMode, options.get("mode", SearchMode.WORDS))
    order = _parse_choice("sort", Order, options.get("sort") or Order.BEST)
    fuzzy = options.get("fuzzy", False)
    if fuzzy and mode is SearchMode.SUBSTRING:
        problem = "fuzzy looks for words like those of the query, so it goes with mode 'words' only"
        raise InvalidInputError(problem)
    wanted = criterion_of(
        query, literal=mode is SearchMode.SUBSTRING, stems=stems, fuzzy=_check_flag("fuzzy", fuzzy)
    )
    return wanted, shown, order


def _check_flag(name: str, given: object) -> bool:
    if not isinstance(given, bool):
        problem = f"{name} must be True or False, not {given!r}"
        raise InvalidInputError(problem)
    return given


def _parse_choice(name: str, choices: type[Choice], given: str) -> Choice:
    try:
        return choices(given)
    except ValueError:
        problem = f"{name} must be one of {', '.join(choices)}, not {given!r}"
        raise InvalidInputError(problem) from None


def _check_page(limit: int, offset: int) -> None:
    if not 0 < limit <= MOST_HITS or not 0 <= offset <= LAST_HIT:
        problem = f"limit must be from 1 to {MOST_HITS}, and offset at most {LAST_HIT}"
        raise InvalidInputError(problem)
