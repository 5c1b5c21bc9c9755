"""A query in the language of the index. Only tokens and labels get into it, each in quotes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import MAXYEAR, datetime
from typing import Final, NamedTuple

from gateway_sessions.core.search_documents import UNLISTED, label, month_label, year_label
from gateway_sessions.core.search_filter import SearchFilter
from gateway_sessions.core.search_query import Branch, Phrase, Query
from gateway_sessions.core.search_text import Kind, bare, fold, pieces, runs

MOST_YEARS: Final = 70
"""So many are asked for one by one."""
PART: Final = 3
"""So many letters in a row are found in the words of an index without looking at all of them."""
MOST_PARTS: Final = 32
"""More of them narrow nothing further."""
FEW_WORDS: Final = 200
"""So many words at most narrow what is narrowed already."""
SOME_WORDS: Final = 1_000
"""So many are looked for at once. Of what has more words, most messages have one."""
MANY_WORDS: Final = 5_000
"""So many are looked for if the newest messages have too few of them."""


class Part(NamedTuple):
    """Letters that some word has."""

    letters: str
    at_end: bool

    @property
    def text(self) -> str:
        """What stands in such a word, a space being put behind it."""
        return f"{self.letters} " if self.at_end else self.letters


class Certain(NamedTuple):
    """What a message certainly has."""

    text: str | None = None
    part: Part | None = None


@dataclass(frozen=True, slots=True)
class Match:
    """What to ask the index for. Which words have the part, the index knows."""

    certain: Certain
    labels: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    patient: bool = False
    """Whether it may take long: it is asked because nothing else helps."""

    @property
    def most_words(self) -> int:
        """So many words with the part are of use."""
        if self.certain.text is not None:
            return FEW_WORDS
        return MANY_WORDS if self.patient else SOME_WORDS

    def expression(self, words: Sequence[str] | None = None) -> str | None:
        """All of it, with the words that have the part (None: too many); None if that says nothing."""
        text, part = self.certain
        found = [*self.labels] if text is None else [f"({{text}} : {text})", *self.labels]
        if part is not None and words is not None:
            found.append(_one_of(words))
        if not found:
            return None
        together = " AND ".join(found)
        return f"({together}) NOT ({' OR '.join(self.excluded)})" if self.excluded else together


def match_of(certain: Certain, wanted: SearchFilter) -> Match | None:
    """What to ask the index for: the text, narrowed as far as labels go; None if this says nothing."""
    labels = tuple(map(_any_of, _narrowing(wanted)))
    if certain == Certain() and not labels:
        return None
    return Match(certain, labels, tuple(map(_any_of, _excluding(wanted))))


def certain_of_query(query: Query) -> Certain:
    """The words of a query; it has at least one."""
    return Certain(f"({' OR '.join(map(_branch, query.branches))})")


def certain_of_literal(needle: str) -> Certain:
    """What a message has that contains *needle* somewhere.

    The tokens of *needle* stand next to each other in it as well, but for letters at its beginning, which may
    be the end of a longer word, and what stands last, which may go on.
    """
    folded = fold(needle)
    part: Part | None = None
    tokens: list[str] = []
    prefix = False
    for start, end, kind in runs(folded):
        found, is_last = pieces(folded[start:end], kind), end == len(folded)
        if kind is Kind.WORD and start == 0:
            part = Part(bare(folded[start:end]), not is_last) if found else None
            continue
        if kind is Kind.PAIRED and is_last and found[1:]:
            found.pop()
        elif found:
            prefix = is_last and kind is not Kind.SIGN
        tokens += found
    return Certain(_phrase(Phrase(tuple(tokens), prefix)) if tokens else None, part)


def parts_of(word: str) -> str | None:
    """How to ask for words with all letters of *word* in their order; None if it has not enough of them."""
    parts = dict.fromkeys(word[at : at + PART] for at in range(len(word) - PART + 1))
    return " AND ".join(f'"{one}"' for one in list(parts)[:MOST_PARTS]) or None


def _branch(branch: Branch) -> str:
    required = f"({' AND '.join(map(_phrase, branch.required))})"
    if not branch.excluded:
        return required
    return f"({required} NOT ({' OR '.join(map(_phrase, branch.excluded))}))"


def _phrase(phrase: Phrase) -> str:
    return f'"{" ".join(phrase.tokens)}"{" *" if phrase.prefix else ""}'


def _one_of(words: Iterable[str]) -> str:
    """Any of these words, or one that is not listed."""
    found = " OR ".join(_phrase(Phrase(tuple(pieces(word, Kind.WORD)))) for word in words)
    unlisted = f'({{labels}} : "{UNLISTED}")'
    return f"(({{text}} : ({found})) OR {unlisted})" if found else unlisted


def _narrowing(wanted: SearchFilter) -> Iterator[list[Phrase]]:
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
    if wanted.since is not None:
        since, until = _month(wanted.since), _last_month(wanted)
        yield _from(since) if until is None else _between(since, max(since, until) + 1)


def _excluding(wanted: SearchFilter) -> Iterator[list[Phrase]]:
    """Labels of which a message must not have any."""
    if wanted.exclude_sources:
        yield _labels("source", wanted.exclude_sources)
    if wanted.until is not None and _last_month(wanted) is None:
        yield _from(_month(wanted.until) + 1)


def _labels(kind: str, values: Iterable[str]) -> list[Phrase]:
    return [Phrase((label(kind, one),)) for one in sorted(values)]


def _month(moment: datetime) -> int:
    """Which month it is, counted through all years."""
    return moment.year * 12 + moment.month - 1


def _last_month(wanted: SearchFilter) -> int | None:
    """The month in which the time ends that is asked for; None if it has no beginning, or is very long."""
    if wanted.since is None or wanted.until is None or wanted.until.year - wanted.since.year > MOST_YEARS:
        return None
    return _month(wanted.until)


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


def _years_from(year: int) -> Iterator[str]:
    """How the labels of that year and of all later ones begin, and of no others."""
    if year > MAXYEAR:
        return
    text = year_label(year)
    yield text
    for at in range(len(text) - 1, 1, -1):
        yield from (f"{text[:at]}{digit}" for digit in range(int(text[at]) + 1, 10))


def _any_of(labels: Iterable[Phrase]) -> str:
    return f"({{labels}} : ({' OR '.join(map(_phrase, labels))}))"
