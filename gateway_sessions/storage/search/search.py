"""A search from query to hits: candidates of the search index, checked in the database and ranked.

The index names candidates, which may be out of date. Messages that the index lacks are scanned one by one.
The database decides about each candidate: it may have changed, or may not be shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Final, Protocol, TypeAlias

from msgspec import structs

from gateway_sessions.core.search.criteria import Criterion, Vocabulary, Words
from gateway_sessions.core.search.filters import SearchFilter
from gateway_sessions.core.search.near_words import NearWords
from gateway_sessions.core.search.results import SearchResult, SessionSearchResult
from gateway_sessions.ports import Reader, Transaction
from gateway_sessions.storage.transactions.search import hits as search_hits
from gateway_sessions.storage.transactions.search import scan as message_scan
from gateway_sessions.storage.transactions.search.hits import Order
from gateway_sessions.storage.transactions.search.scan import BEYOND, ScanResult, SearchMatch

STEP: Final = 500
"""The number of messages that are scanned in one transaction; then other readers and the loop have a turn."""
MANY: Final = 2_500
"""The number of short messages that are scanned in one transaction, if at most `STEP` of them need a closer
look. Each transaction costs a change of threads, which in a busy process may take longer than the scan."""
FEW: Final = 20
"""The number of messages in one transaction whose whole text is compared."""
MOST_SCANNED: Final = 10_000
"""The most messages that one search scans, so that a search without an index ends in time."""
MOST_SCANNED_FOR_WORDS: Final = MOST_SCANNED
"""The most messages whose words are compared with the fuzzy words of a query."""
MOST_FOUND: Final = 50_000
"""The most candidates of the index that one search checks in the database."""
NOT_ALL_CHANGED: Final = "the search index is behind; not all changed messages were looked at"

ScanStep: TypeAlias = Callable[[int, int], Transaction[ScanResult]]
"""Makes the transaction that scans so many messages before an id."""


@dataclass(slots=True)
class SearchProgress:
    """Holds the matches that a search has found so far, and what it had to leave out."""

    matches: dict[int, SearchMatch] = field(default_factory=dict[int, SearchMatch])
    problem: str | None = None

    def add_matches(self, matches: list[SearchMatch]) -> None:
        """Add these matches."""
        self.matches.update((one.message_id, one) for one in matches)


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """States what a search looks for, and how many matches are enough to rank."""

    wanted: Criterion | Vocabulary
    shown: SearchFilter
    order: Order
    enough: int

    @property
    def most_checked(self) -> int:
        """Return how many candidates of the index are checked: fewer if their whole text is compared."""
        return MOST_FOUND if isinstance(self.wanted, Words) else MOST_SCANNED

    @property
    def enough_of_newest(self) -> int:
        """Return how many matches are enough when the newest come first.

        If the oldest are wanted, no number of the newest is enough.
        """
        return BEYOND if self.order is Order.OLDEST else self.enough

    def early_end_notice(self, checked: int) -> str:
        """Return the sentence that tells that the search stopped after that many candidates."""
        end = "oldest" if self.order is Order.OLDEST else "newest"
        return f"of what may match only the {checked} {end} messages were looked at"


async def check_candidates(
    truth: Reader,
    progress: SearchProgress,
    message_ids: Sequence[int],
    request: SearchRequest,
    *,
    sure: bool = True,
    enough: int = BEYOND,
) -> None:
    """Check candidates of the index in the database, until there are enough matches."""
    step = STEP if sure else FEW
    for at in range(0, len(message_ids), step):
        if len(progress.matches) >= enough:
            return
        transaction = partial(
            message_scan.check_candidates,
            message_ids[at : at + step],
            request.wanted,
            request.shown,
            sure=sure,
        )
        progress.add_matches(await truth.read(transaction))


async def scan_messages(truth: Reader, request: SearchRequest) -> SearchProgress:
    """Scan messages one by one, without an index."""
    progress = SearchProgress()
    await scan_newest_first(truth, progress, _scan_after(0, request), enough=request.enough_of_newest)
    return progress


async def scan_newer_than_index(
    truth: Reader, progress: SearchProgress, request: SearchRequest, after: int, newest: ScanResult
) -> None:
    """Go on behind the *newest* messages after an id, until there are enough matches."""
    enough = request.enough_of_newest
    if len(progress.matches) < enough:
        await scan_newest_first(truth, progress, _scan_after(after, request), newest=newest, enough=enough)


async def scan_newest_first(
    truth: Reader,
    progress: SearchProgress,
    look: ScanStep,
    *,
    newest: ScanResult | None = None,
    enough: int = BEYOND,
) -> None:
    """Scan messages, the newest first, until there are enough matches or `MOST_SCANNED` is reached."""
    looked, last = 0, newest
    while looked < MOST_SCANNED:
        size = min(_next_scan_size(last), MOST_SCANNED - looked)
        before = BEYOND if last is None or last.last is None else last.last
        last = await truth.read(partial(look, before, size))
        looked += size
        progress.add_matches(last.candidates)
        if last.last is None or len(progress.matches) >= enough:
            return
    progress.problem = (
        f"only the {MOST_SCANNED} newest messages that the index does not help with were looked at"
    )


def _next_scan_size(last: ScanResult | None) -> int:
    """Return how many messages to scan next, so that about `STEP` of them need a closer look."""
    if last is None or not last.light:
        return STEP
    return MANY if last.closer * MANY <= STEP else int(STEP / last.closer)


def _scan_after(after: int, request: SearchRequest) -> ScanStep:
    def look(before: int, size: int) -> Transaction[ScanResult]:
        return message_scan.scan_messages(after, before, request.wanted, request.shown, size)

    return look


WINDOW: Final = 2_000
"""The best matches are chosen among that many of the newest: ranking reads all of them."""
ATTEMPTS: Final = 3
"""The most tries of a search in an index that changes while it answers; then messages are scanned."""
NOT_ALL_WORDS: Final = (
    f"words like those of the query were looked for in the {MOST_SCANNED_FOR_WORDS} newest messages only"
)
UNAVAILABLE: Final = "the search index cannot be used now"


class SearchSource(Protocol):
    """Finds messages by their words."""

    async def run_query(self, request: SearchRequest) -> SearchProgress | None:
        """Return the ids of matching messages, from the index and from messages that are not indexed yet.

        Return None if the index cannot be used now.
        """
        ...


class Search:
    """Finds messages of a database with the help of an index."""

    def __init__(self, truth: Reader, index: SearchSource) -> None:
        self._truth = truth
        self._index = index

    async def search_messages(
        self, wanted: Criterion, shown: SearchFilter, order: Order, *, offset: int, limit: int
    ) -> SearchResult:
        """Return a page of the messages that match and may be shown."""
        request = SearchRequest(wanted, shown, order, max(WINDOW, offset + limit))
        progress, wanted, near = await self._search_with_near_words(request, wanted)
        found = list(progress.matches.values())
        hits = await self._truth.read(partial(search_hits.load_hits, found, wanted, order, offset, limit))
        return SearchResult(
            hits=tuple(hits),
            matches=len(found),
            ranked_among=len(found) if order is Order.BEST else None,
            degraded=progress.problem is not None,
            problem=progress.problem,
            near_words=near,
        )

    async def search_sessions(
        self, wanted: Criterion, shown: SearchFilter, order: Order, *, limit: int
    ) -> SessionSearchResult:
        """Return the sessions in which a message matches and may be shown."""
        progress, wanted, near = await self._search_with_near_words(
            SearchRequest(wanted, shown, order, WINDOW), wanted
        )
        found = list(progress.matches.values())
        sessions = await self._truth.read(
            partial(search_hits.load_session_matches, found, wanted, order, limit)
        )
        return SessionSearchResult(
            sessions=tuple(sessions),
            ranked_among=len(found) if order is Order.BEST else None,
            degraded=progress.problem is not None,
            problem=progress.problem,
            near_words=near,
        )

    async def _search_with_near_words(
        self, request: SearchRequest, wanted: Criterion
    ) -> tuple[SearchProgress, Criterion, tuple[str, ...]]:
        """Search, and once more with the near words of a fuzzy query.

        Return the matches, the widened query and the near words.
        """
        progress = await self._search_once(request)
        if not isinstance(wanted, Words) or not wanted.query.fuzzy_words:
            return progress, wanted, ()
        near, problem = await self._find_near_words(request, wanted.query.fuzzy_words)
        progress.problem = progress.problem or problem
        if not near:
            return progress, wanted, ()
        widened = Words(wanted.query.widened(near), wanted.stems)
        more = await self._search_once(replace(request, wanted=widened))
        progress.problem = progress.problem or more.problem
        others = [one for at, one in more.matches.items() if at not in progress.matches]
        progress.add_matches([structs.replace(one, near=True) for one in others])
        return progress, widened, tuple(dict.fromkeys(chain.from_iterable(near.values())))

    async def _find_near_words(
        self, request: SearchRequest, words: frozenset[str]
    ) -> tuple[Mapping[str, tuple[str, ...]], str | None]:
        """Return the words near to these in the newest messages, and a problem if others may be missing.

        A server has no list of its words, and to compare all words of all messages would take too long.
        """
        vocabulary = Vocabulary(NearWords(words))
        looked = await self._search_once(
            replace(request, wanted=vocabulary, order=Order.NEWEST, enough=MOST_SCANNED_FOR_WORDS)
        )
        partly = looked.problem is not None or len(looked.matches) >= MOST_SCANNED_FOR_WORDS
        return vocabulary.near.found, NOT_ALL_WORDS if partly or vocabulary.near.is_full else None

    async def _search_once(self, request: SearchRequest) -> SearchProgress:
        """Return enough matches to rank."""
        if request.shown.sees_nothing:
            return SearchProgress()
        for _ in range(ATTEMPTS):
            if (progress := await self._index.run_query(request)) is not None:
                return progress
        # A scan of all messages misses none, so it is a problem only if it had to stop.
        scanned = await scan_messages(self._truth, request)
        if scanned.problem is not None:
            scanned.problem = f"{UNAVAILABLE}; {scanned.problem}"
        return scanned
