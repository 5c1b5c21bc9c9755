"""`SearchFilter`: scope, sources, roles and dates of a search, and the index labels that narrow it.

Labels narrow a search before any message is tested; they are the same for every index.
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
"""The bounds of all times: no message was sent before the first, and none at the second or later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFilter:
    """The scope of a search, and the conditions that narrow it. None: no condition."""

    scope: Scope
    sources: frozenset[str] | None = None
    exclude_sources: frozenset[str] = frozenset()
    roles: frozenset[str] | None = None
    session_id: str | None = None
    session_key: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    """The instant before which messages must have been sent."""
    include_hidden: bool = False
    """Whether rewound and retracted messages are found too; compacted ones always are."""
    exclude_sessions: frozenset[str] = frozenset()

    @property
    def sees_nothing(self) -> bool:
        """Whether no message can pass."""
        scope = self.scope
        nobody = not (scope.sees_everything or scope.owners or scope.session_key is not None)
        return nobody or self.sources == frozenset() or self.roles == frozenset()

    @property
    def span(self) -> tuple[int, int]:
        """The microseconds of the first instant that is shown, and of the first one after it that is not."""
        since = EARLIEST if self.since is None else to_micros(self.since)
        return since, LATEST if self.until is None else to_micros(self.until)

    def shows(self, *, owner: str, session_key: str | None, session_id: str, source: str) -> bool:
        """Return whether all messages of such a session may be shown."""
        visible = self.scope.sees(owner=owner, session_key=session_key)
        return visible and self.covers(session_key=session_key, session_id=session_id, source=source)

    def covers(self, *, session_key: str | None, session_id: str, source: str) -> bool:
        """Return whether such a session is within the conditions, whatever the scope."""
        return (
            (self.session_id is None or session_id == self.session_id)
            and (self.session_key is None or session_key == self.session_key)
            and (self.sources is None or source in self.sources)
            and source not in self.exclude_sources
            and session_id not in self.exclude_sessions
        )

    def admits(self, *, role: str, sent_at: int, hidden_because: str | None) -> bool:
        """Return whether a message of a visible session fulfils the conditions."""
        return (
            (self.roles is None or role in self.roles)
            and (self.since is None or sent_at >= to_micros(self.since))
            and (self.until is None or sent_at < to_micros(self.until))
            and (self.include_hidden or hidden_because is None or hidden_because == Hidden.COMPACTED)
        )


def filter_words(name: str, given: Sequence[str] | None) -> frozenset[str] | None:
    """Return a filter as a set of words; a single word is not taken apart into letters."""
    if given is None:
        return None
    words = (given,) if isinstance(given, str) else tuple(given)
    if all(isinstance(one, str) for one in words):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers exist
        return frozenset(words)
    problem = f"{name} must be words"
    raise InvalidInputError(problem)


MOST_YEARS: Final = 70
"""The years that a condition lists one by one: more would make the query too long."""
EARLY_YEAR: Final = 2000
"""The year before which there are hardly any messages, so that earlier years share a prefix."""
FAR_YEAR: Final = EARLY_YEAR + 2 * MOST_YEARS
"""The year from which on a bound counts as none: the list of all months before it would be too long."""


def required_label_groups(wanted: SearchFilter) -> Iterator[list[Phrase]]:
    """Yield groups of labels; a message must have one label of each group."""
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
    yield from _period_labels(wanted.since, wanted.until)


def excluded_label_groups(wanted: SearchFilter) -> Iterator[list[Phrase]]:
    """Yield groups of labels; a message must have no label of any group."""
    if wanted.exclude_sources:
        yield _labels("source", wanted.exclude_sources)
    if wanted.until is not None and wanted.until.year >= FAR_YEAR:
        yield _months_from(_month_number(wanted.until) + 1)


def _labels(kind: str, values: Iterable[str]) -> list[Phrase]:
    return [Phrase((label(kind, one),)) for one in sorted(values)]


def _month_number(moment: datetime) -> int:
    """Return the number of a month, counted through all years."""
    return moment.year * 12 + moment.month - 1


def _period_labels(since: datetime | None, until: datetime | None) -> Iterator[list[Phrase]]:
    """Yield the labels of a period: month by month for a short one, by its two ends for a long one."""
    if since is not None and until is not None and until.year - since.year <= MOST_YEARS:
        first, last = _month_number(since), _month_number(until)
        yield _labels_between(first, max(first, last) + 1)
        return
    if since is not None:
        yield _months_from(_month_number(since))
    if until is not None and until.year < FAR_YEAR:
        yield _months_until(_month_number(until) + 1)


def _labels_between(first: int, end: int) -> list[Phrase]:
    """Return the labels of the months in a period, with one label for each whole year."""
    years = range(-(-first // 12), end // 12)
    if not years:
        return _month_labels(first, end)
    whole = [Phrase((year_label(year),)) for year in years]
    return [*_month_labels(first, years.start * 12), *whole, *_month_labels(years.stop * 12, end)]


def _month_labels(first: int, end: int) -> list[Phrase]:
    return [Phrase((month_label(at // 12, at % 12 + 1),)) for at in range(first, end)]


def _months_from(first: int) -> list[Phrase]:
    """Return the labels of that month and all later ones; years in the far future share prefixes."""
    year = first // 12 + MOST_YEARS
    later = [Phrase((beginning,), prefix=True) for beginning in _years_from(year)]
    return _labels_between(first, year * 12) + later


def _months_until(end: int) -> list[Phrase]:
    """Return the labels of all months before that one; years with hardly any message share prefixes."""
    year = min(end // 12, EARLY_YEAR)
    earlier = [Phrase((beginning,), prefix=True) for beginning in _years_before(year)]
    return earlier + _labels_between(year * 12, end)


def _years_from(year: int) -> Iterator[str]:
    """Yield the prefixes that the labels of that year and all later years have, and no others."""
    if year > MAXYEAR:
        return
    text = year_label(year)
    yield text
    for at in range(len(text) - 1, 1, -1):
        yield from (f"{text[:at]}{digit}" for digit in range(int(text[at]) + 1, 10))


def _years_before(year: int) -> Iterator[str]:
    """Yield the prefixes that the labels of all earlier years have, and no others."""
    text = year_label(year)
    for at in range(2, len(text)):
        yield from (f"{text[:at]}{digit}" for digit in range(int(text[at])))
