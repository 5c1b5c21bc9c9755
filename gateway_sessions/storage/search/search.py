"""A search from query to hits: candidates of the search index, checked in the database and ranked.

Searching: the index is asked, what it does not know yet is looked at, and the truth has the last word.

What a search finds on its way, and how the truth decides about it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Final, Protocol, TypeAlias

from msgspec import structs

from gateway_sessions.core.search.criteria import Vocabulary, Wanted, Words
from gateway_sessions.core.search.filters import SearchFilter
from gateway_sessions.core.search.near_words import NearWords
from gateway_sessions.core.search.results import SearchResult, SessionSearchResult
from gateway_sessions.ports import Reader, Transaction
from gateway_sessions.storage.transactions.search import hits as search_hits
from gateway_sessions.storage.transactions.search import scan as message_scan
from gateway_sessions.storage.transactions.search.hits import Order
from gateway_sessions.storage.transactions.search.scan import BEYOND, Candidate, Scanned

STEP: Final = 500
"""So many messages are looked at in one go; then others who want to read, or need the loop, have a turn."""
MANY: Final = 2_500
"""The same of short ones, if no more than a step of them has to be looked at more closely: each go costs a
change of threads, and in a busy process that may take longer than to look."""
FEW: Final = 20
"""The same of long ones, of which the whole text is looked at."""
MOST_SCANNED: Final = 10_000
"""So many messages are looked at one by one, no more."""
MOST_SCANNED_FOR_WORDS: Final = MOST_SCANNED
"""The same of messages whose words are compared with those of a query that allows for slips."""
MOST_FOUND: Final = 50_000
"""So many answers of the index are compared with the truth, no more."""
NOT_ALL_CHANGED: Final = "the search index is behind; not all changed messages were looked at"

Look: TypeAlias = Callable[[int, int], Transaction[Scanned]]
"""Looks at messages before an id, so many of them."""


@dataclass(slots=True)
class SearchProgress:
    """What was found so far."""

    candidates: dict[int, Candidate] = field(default_factory=dict[int, Candidate])
    problem: str | None = None

    def add(self, candidates: list[Candidate]) -> None:
        """These were found as well."""
        self.candidates.update((one.message_id, one) for one in candidates)


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What is asked for, and how much of it is enough to choose from."""

    wanted: Wanted | Vocabulary
    shown: SearchFilter
    order: Order
    enough: int

    @property
    def most(self) -> int:
        """So many answers of an index are compared with the truth: of some, the whole text."""
        return MOST_FOUND if isinstance(self.wanted, Words) else MOST_SCANNED

    @property
    def enough_of_newest(self) -> int:
        """So many of the newest are enough to choose from. Many of the newest say nothing of the oldest."""
        return BEYOND if self.order is Order.OLDEST else self.enough

    def end_at(self, checked: int) -> str:
        """What may be missing because no more was looked at."""
        end = "oldest" if self.order is Order.OLDEST else "newest"
        return f"of what may match only the {checked} {end} messages were looked at"


async def select(
    truth: Reader,
    progress: SearchProgress,
    message_ids: Sequence[int],
    request: SearchRequest,
    *,
    sure: bool = True,
    enough: int = BEYOND,
) -> None:
    """Let the truth decide about what an index has found, until that is enough."""
    step = STEP if sure else FEW
    for at in range(0, len(message_ids), step):
        if len(progress.candidates) >= enough:
            return
        transaction = partial(
            message_scan.select, message_ids[at : at + step], request.wanted, request.shown, sure=sure
        )
        progress.add(await truth.read(transaction))


async def scan(truth: Reader, request: SearchRequest) -> SearchProgress:
    """Look at messages one by one, without an index."""
    progress = SearchProgress()
    await look_at(truth, progress, _between(0, request), enough=request.enough_of_newest)
    return progress


async def look_behind(
    truth: Reader, progress: SearchProgress, request: SearchRequest, after: int, newest: Scanned
) -> None:
    """Go on after the *newest* messages behind an id: look at no more than it takes to choose from."""
    enough = request.enough_of_newest
    if len(progress.candidates) < enough:
        await look_at(truth, progress, _between(after, request), newest=newest, enough=enough)


async def look_at(
    truth: Reader,
    progress: SearchProgress,
    look: Look,
    *,
    newest: Scanned | None = None,
    enough: int = BEYOND,
) -> None:
    """Look at messages, the newest first, as far as it is bearable."""
    looked, last = 0, newest
    while looked < MOST_SCANNED:
        size = min(_size_after(last), MOST_SCANNED - looked)
        before = BEYOND if last is None or last.last is None else last.last
        last = await truth.read(partial(look, before, size))
        looked += size
        progress.add(last.candidates)
        if last.last is None or len(progress.candidates) >= enough:
            return
    progress.problem = (
        f"only the {MOST_SCANNED} newest messages that the index does not help with were looked at"
    )


def _size_after(last: Scanned | None) -> int:
    """How many messages are looked at next: so many that about a step of them is looked at more closely."""
    if last is None or not last.light:
        return STEP
    return MANY if last.closer * MANY <= STEP else int(STEP / last.closer)


def _between(after: int, request: SearchRequest) -> Look:
    def look(before: int, size: int) -> Transaction[Scanned]:
        return message_scan.scan(after, before, request.wanted, request.shown, size)

    return look


WINDOW: Final = 2_000
"""The best are chosen among so many of the newest matches."""
ATTEMPTS: Final = 3
NOT_ALL_WORDS: Final = (
    f"words like those of the query were looked for in the {MOST_SCANNED_FOR_WORDS} newest messages only"
)
UNAVAILABLE: Final = "the search index cannot be used now"


class SearchSource(Protocol):
    """Something that knows which messages contain what."""

    async def run_query(self, request: SearchRequest) -> SearchProgress | None:
        """What it and what it does not know yet have of what is wanted; None if it cannot be asked now."""
        ...


class Search:
    """Finds messages in a truth with the help of an index."""

    def __init__(self, truth: Reader, index: SearchSource) -> None:
        self._truth = truth
        self._index = index

    async def messages(
        self, wanted: Wanted, shown: SearchFilter, order: Order, *, offset: int, limit: int
    ) -> SearchResult:
        """A page of the messages that are wanted and may be shown."""
        request = SearchRequest(wanted, shown, order, max(WINDOW, offset + limit))
        progress, wanted, near = await self._search_widely(request, wanted)
        found = list(progress.candidates.values())
        hits = await self._truth.read(partial(search_hits.page_of, found, wanted, order, offset, limit))
        return SearchResult(
            hits=tuple(hits),
            matches=len(found),
            ranked_among=len(found) if order is Order.BEST else None,
            degraded=progress.problem is not None,
            problem=progress.problem,
            near_words=near,
        )

    async def sessions(
        self, wanted: Wanted, shown: SearchFilter, order: Order, *, limit: int
    ) -> SessionSearchResult:
        """The conversations in which something is wanted and may be shown."""
        progress, wanted, near = await self._search_widely(
            SearchRequest(wanted, shown, order, WINDOW), wanted
        )
        found = list(progress.candidates.values())
        sessions = await self._truth.read(partial(search_hits.sessions_of, found, wanted, order, limit))
        return SessionSearchResult(
            sessions=tuple(sessions),
            ranked_among=len(found) if order is Order.BEST else None,
            degraded=progress.problem is not None,
            problem=progress.problem,
            near_words=near,
        )

    async def _search_widely(
        self, request: SearchRequest, wanted: Wanted
    ) -> tuple[SearchProgress, Wanted, tuple[str, ...]]:
        """What was found, also by words like those of a fuzzy query; with what was looked for and these."""
        progress = await self._search(request)
        if not isinstance(wanted, Words) or not wanted.query.fuzzy_words:
            return progress, wanted, ()
        near, problem = await self._near_words(request, wanted.query.fuzzy_words)
        progress.problem = progress.problem or problem
        if not near:
            return progress, wanted, ()
        widened = Words(wanted.query.widened(near), wanted.stems)
        more = await self._search(replace(request, wanted=widened))
        progress.problem = progress.problem or more.problem
        others = [one for at, one in more.candidates.items() if at not in progress.candidates]
        progress.add([structs.replace(one, near=True) for one in others])
        return progress, widened, tuple(dict.fromkeys(chain.from_iterable(near.values())))

    async def _near_words(
        self, request: SearchRequest, words: frozenset[str]
    ) -> tuple[Mapping[str, tuple[str, ...]], str | None]:
        """The words like these in the newest messages that may be shown, and why there may be others.

        A server has no list of all words, and to look at each word that was ever said would take too long.
        """
        vocabulary = Vocabulary(NearWords(words))
        looked = await self._search(
            replace(request, wanted=vocabulary, order=Order.NEWEST, enough=MOST_SCANNED_FOR_WORDS)
        )
        partly = looked.problem is not None or len(looked.candidates) >= MOST_SCANNED_FOR_WORDS
        return vocabulary.near.found, NOT_ALL_WORDS if partly or vocabulary.near.is_full else None

    async def _search(self, request: SearchRequest) -> SearchProgress:
        """What was found: enough of it to choose from."""
        if request.shown.sees_nothing:
            return SearchProgress()
        for _ in range(ATTEMPTS):
            if (progress := await self._index.run_query(request)) is not None:
                return progress
        # Whoever looks at everything misses nothing: only what is left out has to be told.
        scanned = await scan(self._truth, request)
        if scanned.problem is not None:
            scanned.problem = f"{UNAVAILABLE}; {scanned.problem}"
        return scanned
