"""Results of a search: hits, matching conversations, and snippets with the matches marked.

What a search answers.

What is shown of a message that was found: the place where it matches, with the matches marked.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Final, NamedTuple, TypeAlias

from gateway_sessions.core.search.query import Phrase, SearchQuery, occurrences
from gateway_sessions.core.search.stems import NO_STEMS, Stems
from gateway_sessions.core.search.tokenizer import Token, aligned, fold, located
from gateway_sessions.core.transcript.messages import Hidden


@dataclass(frozen=True, slots=True)
class ContextLine:
    """A message near a hit, briefly."""

    role: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """A message that was found."""

    id: int
    """The id of the message."""
    session_id: str
    session_key: str | None
    seq: int
    """Its place in the session."""
    role: str
    snippet: str
    """About forty words around the match, which stands between `>>>` and `<<<`."""
    context: tuple[ContextLine, ...]
    """What was said before it, it, and what was said after it; each at most 200 characters."""
    timestamp: datetime
    tool_name: str | None
    source: str
    model: str | None
    session_started: datetime
    title: str | None
    score: float | None = None
    """The higher, the better it fits; None if nothing was ranked. Comparable within one result only."""
    hidden_because: Hidden | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The hits of a search, and how much they can be relied on."""

    hits: tuple[SearchHit, ...] = ()
    matches: int = 0
    """How many messages were found, at least; `hits` is a page of them."""
    ranked_among: int | None = None
    """The order is the best one among so many of the newest matches; None: ordered by time."""
    degraded: bool = False
    """Whether something may be missing; `problem` says why."""
    problem: str | None = None
    near_words: tuple[str, ...] = ()
    """Of a fuzzy search: the words like those of the query that were looked for as well."""


class FoundMessage(NamedTuple):
    """Where a message is that was found."""

    session_id: str
    message_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionMatch:
    """A conversation in which something was found."""

    root_id: str
    """The session it began with; compressions, branches and delegated work belong to it."""
    best: SearchHit
    matches: int
    """How many messages of it were found, at least."""
    session_ids: tuple[str, ...]
    """The sessions of it in which they are."""
    found: tuple[FoundMessage, ...]
    """All of them, in their order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSearchResult:
    """The conversations of a search, the best one first."""

    sessions: tuple[SessionMatch, ...] = ()
    ranked_among: int | None = None
    degraded: bool = False
    problem: str | None = None
    near_words: tuple[str, ...] = ()


BEGIN: Final = ">>>"
END: Final = "<<<"
ELLIPSIS: Final = "..."
SIZE: Final = 40
"""Tokens; in a script without spaces these are characters."""
LEAD: Final = 12
"""So many of them stand before the first match, if the match is not at the beginning."""
MOST_CHARACTERS: Final = 600
"""A word may be as long as a file."""
MOST_MARKS: Final = 100
LONGEST_READ: Final = 20_000
"""Of a longer text only the surroundings of the first match are looked at."""


class Mark(NamedTuple):
    """A match: where it is in the text, and of what."""

    start: int
    end: int
    what: int


Finder: TypeAlias = Callable[[str, Sequence[Token]], list[Mark]]
"""Given a text and its tokens, the matches in it, in their order."""


def marks_of_query(query: SearchQuery, stems: Stems = NO_STEMS) -> Finder:
    """Finds the words and phrases that a query looks for, words in all their forms."""

    def find(text: str, tokens: Sequence[Token]) -> list[Mark]:
        document = [token.text for token in tokens]
        phrases = query.phrases
        most = max(MOST_MARKS // len(phrases), 2)
        found: list[Mark] = []
        for number, phrase in enumerate(phrases):
            places = _alike(phrase, text, tokens, stems) if phrase.others else occurrences(phrase, document)
            for at in islice(places, most):
                last = min(at + phrase.characters, len(tokens)) - 1
                found.append(Mark(tokens[at].start, tokens[last].end, number))
        return sorted(found)

    return find


def _alike(phrase: Phrase, text: str, tokens: Sequence[Token], stems: Stems) -> Iterator[int]:
    """Where a word stands, one of its forms, or another one that does as well."""
    wanted = {*phrase.tokens, *phrase.others}
    for at, token in enumerate(tokens):
        if token.text in wanted or not wanted.isdisjoint(stems.of_word(fold(text[token.start : token.end]))):
            yield at


def marks_of_literal(needle: str) -> Finder:
    """Finds a text as it stands, in any case."""
    wanted = fold(needle)

    def find(text: str, _tokens: Sequence[Token]) -> list[Mark]:
        folded, places = aligned(text)
        found: list[Mark] = []
        at = folded.find(wanted)
        while at >= 0 and wanted and len(found) < MOST_MARKS:
            found.append(Mark(places[at][0], places[at + len(wanted) - 1][1], 0))
            at = folded.find(wanted, at + len(wanted))
        return found

    return find


def snippet(text: str, find: Finder, hints: Sequence[str] = ()) -> str | None:
    """The part of *text* with most of what was looked for, marked; None if there is nothing of it.

    *hints* are tokens by which the place is found in a very long text.
    """
    text = _surroundings(text, hints)
    tokens = located(text)
    marks = find(text, tokens)
    if not marks:
        return None
    start, end = _window(text, tokens, marks)
    return _marked(text, start, end, [one for one in marks if one.start < end and one.end > start])


def beginning(text: str) -> str:
    """How a text begins, as long as a snippet."""
    text = text[:LONGEST_READ]
    tokens = located(text)
    end = tokens[SIZE - 1].end if len(tokens) > SIZE else len(text)
    return _marked(text, 0, min(end, MOST_CHARACTERS), [])


def _surroundings(text: str, hints: Sequence[str]) -> str:
    if len(text) <= LONGEST_READ:
        return text
    lowered = text.lower()
    places = [at for hint in hints if (at := lowered.find(hint)) >= 0]
    start = max(0, min(places, default=0) - LONGEST_READ // 4)
    return text[start : start + LONGEST_READ]


def _window(text: str, tokens: Sequence[Token], marks: Sequence[Mark]) -> tuple[int, int]:
    """The place, as long as a snippet, with the most different matches in it."""
    lead = max(marks, key=lambda mark: (_different_from(text, mark, marks, tokens), -mark.start))
    start, end = _around(text, tokens, lead.start)
    start = max(min(start, lead.start), lead.start - MOST_CHARACTERS // 3)
    return start, min(max(end, lead.end), start + MOST_CHARACTERS)


def _different_from(text: str, mark: Mark, marks: Sequence[Mark], tokens: Sequence[Token]) -> int:
    """How many different matches are shown if *mark* is."""
    start, end = _around(text, tokens, mark.start)
    return len({one.what for one in marks if start <= one.start and one.end <= end})


def _around(text: str, tokens: Sequence[Token], place: int) -> tuple[int, int]:
    """So many tokens with that place among them."""
    if not tokens:
        return place, place + MOST_CHARACTERS
    at = bisect_right(tokens, place, key=lambda token: token.start) - 1
    first = max(0, min(at - LEAD, len(tokens) - SIZE))
    end = tokens[first + SIZE - 1].end if first + SIZE < len(tokens) else len(text)
    return (tokens[first].start if first else 0), end


def _marked(text: str, start: int, end: int, marks: Sequence[Mark]) -> str:
    parts: list[str] = []
    at = start
    for first, last in _merged(marks):
        parts += [text[at : max(first, at)], BEGIN, text[max(first, at) : min(last, end)], END]
        at = min(last, end)
    parts.append(text[at:end])
    before = ELLIPSIS if text[:start].strip() else ""
    after = ELLIPSIS if text[end:].strip() else ""
    return before + " ".join("".join(parts).split()) + after


def _merged(marks: Sequence[Mark]) -> list[tuple[int, int]]:
    """Places that overlap or touch become one."""
    found: list[tuple[int, int]] = []
    for mark in sorted(marks):
        if found and mark.start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], mark.end))
        else:
            found.append((mark.start, mark.end))
    return found
