"""`SearchFilter`: scope, sources, roles and dates of a search, and the index labels that narrow it.

Which messages a search may show, besides what they must contain.

Labels by which a search is narrowed before any message is looked at; they are the same for every index.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import MAXYEAR, datetime
from typing import Final

from gateway_sessions.core.identity.scope import Scope
from gateway_sessions.core.instants import to_micros
from gateway_sessions.core.search.documents import label, month_label, year_label
from gateway_sessions.core.search.query import Phrase
from gateway_sessions.core.transcript.messages import Hidden
from gateway_sessions.errors import InvalidInputError

EARLIEST, LATEST = -(1 << 63), (1 << 63) - 1
"""No message was sent before, and none at the latest instant or after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFilter:
    """Who asks, and what they narrow the search to. None: not narrowed."""

    scope: Scope
    sources: frozenset[str] | None = None
    exclude_sources: frozenset[str] = frozenset()
    roles: frozenset[str] | None = None
    session_id: str | None = None
    session_key: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    """Messages sent at that instant or later are left out."""
    include_hidden: bool = False
    """Also what was taken back or deleted on its platform; what was compacted is always found."""
    exclude_sessions: frozenset[str] = frozenset()

    @property
    def sees_nothing(self) -> bool:
        """Whether no message can pass."""
        scope = self.scope
        nobody = not (scope.sees_everything or scope.owners or scope.session_key is not None)
        return nobody or self.sources == frozenset() or self.roles == frozenset()

    @property
    def span(self) -> tuple[int, int]:
        """Microseconds: messages are shown from the first on, and before the second."""
        since = EARLIEST if self.since is None else to_micros(self.since)
        return since, LATEST if self.until is None else to_micros(self.until)

    def shows(self, *, owner: str, session_key: str | None, session_id: str, source: str) -> bool:
        """Whether all messages of such a session may be shown."""
        visible = self.scope.sees(owner=owner, session_key=session_key)
        return visible and self.covers(session_key=session_key, session_id=session_id, source=source)

    def covers(self, *, session_key: str | None, session_id: str, source: str) -> bool:
        """Whether such a session is among those that are asked for, whoever may see it."""
        return (
            (self.session_id is None or session_id == self.session_id)
            and (self.session_key is None or session_key == self.session_key)
            and (self.sources is None or source in self.sources)
            and source not in self.exclude_sources
            and session_id not in self.exclude_sessions
        )

    def admits(self, *, role: str, sent_at: int, hidden_because: str | None) -> bool:
        """Whether a message of a session that may be shown may itself be."""
        return (
            (self.roles is None or role in self.roles)
            and (self.since is None or sent_at >= to_micros(self.since))
            and (self.until is None or sent_at < to_micros(self.until))
            and (self.include_hidden or hidden_because is None or hidden_because == Hidden.COMPACTED)
        )


def words_of(name: str, given: Sequence[str] | None) -> frozenset[str] | None:
    """A filter as a set of words; a single word is not taken apart into letters."""
    if given is None:
        return None
    words = (given,) if isinstance(given, str) else tuple(given)
    if all(isinstance(one, str) for one in words):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers exist
        return frozenset(words)
    problem = f"{name} must be words"
    raise InvalidInputError(problem)


MOST_YEARS: Final = 70
"""So many are asked for one by one."""
EARLY_YEAR: Final = 2000
"""Of earlier years there are hardly any messages."""
FAR_YEAR: Final = EARLY_YEAR + 2 * MOST_YEARS
"""Until this year or a later one is as good as always: all months before it would be too many to ask for."""


def narrowing(wanted: SearchFilter) -> Iterator[list[Phrase]]:
    """Labels, of each group of which a message must have one."""
    scope = wanted.scope
    if not scope.sees_everything:
        lanes = [] if scope.session_key is None else _labels("lane", [scope.session_key])
        yield _labels("owner", scope.owners) + lanes
    if wanted.session_key is not None:
        yield _labels("lane", [wanted.session_key])
    if wanted.session_id is not None:
        yield _labels("session", [wanted.session_id])
    for kind, values in (("source", wanted.sources), ("role", wanted.roles)):
        if values is not None:
            yield _labels(kind, values)
    yield from _times(wanted.since, wanted.until)


def excluding(wanted: SearchFilter) -> Iterator[list[Phrase]]:
    """Labels of which a message must not have any."""
    if wanted.exclude_sources:
        yield _labels("source", wanted.exclude_sources)
    if wanted.until is not None and wanted.until.year >= FAR_YEAR:
        yield _from(_month(wanted.until) + 1)


def _labels(kind: str, values: Iterable[str]) -> list[Phrase]:
    return [Phrase((label(kind, one),)) for one in sorted(values)]


def _month(moment: datetime) -> int:
    """Which month it is, counted through all years."""
    return moment.year * 12 + moment.month - 1


def _times(since: datetime | None, until: datetime | None) -> Iterator[list[Phrase]]:
    """A time that is not very long month by month, another one by where it begins and where it ends."""
    if since is not None and until is not None and until.year - since.year <= MOST_YEARS:
        first, last = _month(since), _month(until)
        yield _between(first, max(first, last) + 1)
        return
    if since is not None:
        yield _from(_month(since))
    if until is not None and until.year < FAR_YEAR:
        yield _until(_month(until) + 1)


def _between(first: int, end: int) -> list[Phrase]:
    """The months of a time, its whole years as one."""
    years = range(-(-first // 12), end // 12)
    if not years:
        return _months(first, end)
    whole = [Phrase((year_label(year),)) for year in years]
    return [*_months(first, years.start * 12), *whole, *_months(years.stop * 12, end)]


def _months(first: int, end: int) -> list[Phrase]:
    return [Phrase((month_label(at // 12, at % 12 + 1),)) for at in range(first, end)]


def _from(first: int) -> list[Phrase]:
    """That month and all that come after it: the years that nobody has seen yet by what they begin with."""
    year = first // 12 + MOST_YEARS
    later = [Phrase((beginning,), prefix=True) for beginning in _years_from(year)]
    return _between(first, year * 12) + later


def _until(end: int) -> list[Phrase]:
    """All months before that one: years of which hardly any message is by what they begin with."""
    year = min(end // 12, EARLY_YEAR)
    earlier = [Phrase((beginning,), prefix=True) for beginning in _years_before(year)]
    return earlier + _between(year * 12, end)


def _years_from(year: int) -> Iterator[str]:
    """How the labels of that year and of all later ones begin, and of no others."""
    if year > MAXYEAR:
        return
    text = year_label(year)
    yield text
    for at in range(len(text) - 1, 1, -1):
        yield from (f"{text[:at]}{digit}" for digit in range(int(text[at]) + 1, 10))


def _years_before(year: int) -> Iterator[str]:
    """The same for all earlier years."""
    text = year_label(year)
    for at in range(2, len(text)):
        yield from (f"{text[:at]}{digit}" for digit in range(int(text[at])))
