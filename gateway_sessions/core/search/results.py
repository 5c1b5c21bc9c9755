"""Results of a search: hits, matching conversations, and snippets with the matches marked."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Final, NamedTuple, TypeAlias

from gateway_sessions.core.search.query import Phrase, SearchQuery, phrase_positions
from gateway_sessions.core.search.stems import NO_STEMS, Stems
from gateway_sessions.core.search.tokenizer import Token, fold, fold_with_places, tokens_with_places
from gateway_sessions.core.transcript.messages import Hidden


@dataclass(frozen=True, slots=True)
class ContextLine:
    """A message near a hit, shortened."""

    role: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """A message that matches a search."""

    id: int
    """The id of the message."""
    session_id: str
    session_key: str | None
    seq: int
    """The place of the message in its session."""
    role: str
    snippet: str
    """The text of about forty words around the match, which stands between `>>>` and `<<<`."""
    context: tuple[ContextLine, ...]
    """The message before the hit, the hit, and the message after it; each at most 200 characters."""
    timestamp: datetime
    tool_name: str | None
    source: str
    """The platform on which the session began."""
    model: str | None
    session_started: datetime
    """The instant at which the session began."""
    title: str | None
    score: float | None = None
    """The score: the higher, the better the match; None without ranking. Comparable within one result
    only."""
    hidden_because: Hidden | None = None
    """The reason why the message is hidden; None: it is not hidden."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The hits of a search, and how far they can be relied on."""

    hits: tuple[SearchHit, ...] = ()
    """The matches of this page, in the order that was asked for."""
    matches: int = 0
    """The number of matches, at least; `hits` is a page of them."""
    ranked_among: int | None = None
    """The number of the newest matches that were ranked; None: the hits are ordered by time."""
    degraded: bool = False
    """Whether matches may be missing; `problem` says why."""
    problem: str | None = None
    """The reason why matches may be missing, in words."""
    near_words: tuple[str, ...] = ()
    """The words with nearly the spelling of a query's word that a fuzzy search looked for as well."""


class FoundMessage(NamedTuple):
    """The ids of a matching message and its session."""

    session_id: str
    message_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionMatch:
    """A conversation with matches."""

    root_id: str
    """The id of the conversation's first session; compressions, branches and delegated work belong to it."""
    best: SearchHit
    """The best hit."""
    matches: int
    """The number of matches in the conversation, at least."""
    session_ids: tuple[str, ...]
    """The ids of the conversation's sessions with matches."""
    found: tuple[FoundMessage, ...]
    """All matches, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSearchResult:
    """The conversations of a search, the best one first."""

    sessions: tuple[SessionMatch, ...] = ()
    ranked_among: int | None = None
    """The number of the newest matches that were ranked; None: ordered by time."""
    degraded: bool = False
    """Whether matches may be missing; `problem` says why."""
    problem: str | None = None
    """The reason why matches may be missing, in words."""
    near_words: tuple[str, ...] = ()
    """The words with nearly the spelling of a word of the query that a fuzzy search looked for as well."""


BEGIN: Final = ">>>"
END: Final = "<<<"
ELLIPSIS: Final = "..."
SIZE: Final = 40
"""The tokens of a snippet; in a script without spaces a token is a character."""
LEAD: Final = 12
"""The tokens before the first match, if the match is not at the beginning."""
MOST_CHARACTERS: Final = 600
"""The characters of a snippet: a single word may be as long as a file."""
# More marks than a snippet can show; a text full of matches must not take long.
MOST_MARKS: Final = 100
LONGEST_READ: Final = 20_000
"""The characters of a text that are read: of a longer text, those around the first match."""


class Mark(NamedTuple):
    """A match: its begin and end in the text, and the number of the phrase that matches."""

    start: int
    end: int
    what: int


Finder: TypeAlias = Callable[[str, Sequence[Token]], list[Mark]]
"""A function that returns the matches in a text, given the text and its tokens, in order."""


def marks_of_query(query: SearchQuery, stems: Stems = NO_STEMS) -> Finder:
    """Return the finder of a query's words and phrases, words in all their forms."""

    def find(text: str, tokens: Sequence[Token]) -> list[Mark]:
        document = [token.text for token in tokens]
        phrases = query.phrases
        most = max(MOST_MARKS // len(phrases), 2)
        found: list[Mark] = []
        for number, phrase in enumerate(phrases):
            places = (
                _places_of_forms(phrase, text, tokens, stems)
                if phrase.others
                else phrase_positions(phrase, document)
            )
            for at in islice(places, most):
                last = min(at + phrase.characters, len(tokens)) - 1
                found.append(Mark(tokens[at].start, tokens[last].end, number))
        return sorted(found)

    return find


def _places_of_forms(phrase: Phrase, text: str, tokens: Sequence[Token], stems: Stems) -> Iterator[int]:
    """Yield the positions of a word, of one of its forms, or of an alternative."""
    alternatives = {*phrase.tokens, *phrase.others}
    for at, token in enumerate(tokens):
        if token.text in alternatives or not alternatives.isdisjoint(
            stems.stem_tokens_of_word(fold(text[token.start : token.end]))
        ):
            yield at


def marks_of_literal(needle: str) -> Finder:
    """Return the finder of a literal text, in any case."""
    folded_needle = fold(needle)

    def find(text: str, _tokens: Sequence[Token]) -> list[Mark]:
        folded, places = fold_with_places(text)
        found: list[Mark] = []
        at = folded.find(folded_needle)
        while at >= 0 and folded_needle and len(found) < MOST_MARKS:
            found.append(Mark(places[at][0], places[at + len(folded_needle) - 1][1], 0))
            at = folded.find(folded_needle, at + len(folded_needle))
        return found

    return find


def snippet(text: str, find: Finder, hints: Sequence[str] = ()) -> str | None:
    """Return the part of *text* with the most different matches, marked; None without a match.

    *hints* are tokens that find the place in a very long text.
    """
    text = _text_around_hints(text, hints)
    tokens = tokens_with_places(text)
    marks = find(text, tokens)
    if not marks:
        return None
    start, end = _snippet_bounds(text, tokens, marks)
    return _mark_matches(text, start, end, [one for one in marks if one.start < end and one.end > start])


def text_beginning(text: str) -> str:
    """Return the beginning of a text, as long as a snippet."""
    text = text[:LONGEST_READ]
    tokens = tokens_with_places(text)
    end = tokens[SIZE - 1].end if len(tokens) > SIZE else len(text)
    return _mark_matches(text, 0, min(end, MOST_CHARACTERS), [])


def _text_around_hints(text: str, hints: Sequence[str]) -> str:
    if len(text) <= LONGEST_READ:
        return text
    lowered = text.lower()
    places = [at for hint in hints if (at := lowered.find(hint)) >= 0]
    start = max(0, min(places, default=0) - LONGEST_READ // 4)
    return text[start : start + LONGEST_READ]


def _snippet_bounds(text: str, tokens: Sequence[Token], marks: Sequence[Mark]) -> tuple[int, int]:
    """Return the begin and end of the snippet with the most different matches."""
    lead = max(marks, key=lambda mark: (_count_different_matches(text, mark, marks, tokens), -mark.start))
    start, end = _bounds_around(text, tokens, lead.start)
    start = max(min(start, lead.start), lead.start - MOST_CHARACTERS // 3)
    return start, min(max(end, lead.end), start + MOST_CHARACTERS)


def _count_different_matches(text: str, mark: Mark, marks: Sequence[Mark], tokens: Sequence[Token]) -> int:
    """Return the number of different matches in a snippet around *mark*."""
    start, end = _bounds_around(text, tokens, mark.start)
    return len({one.what for one in marks if start <= one.start and one.end <= end})


def _bounds_around(text: str, tokens: Sequence[Token], place: int) -> tuple[int, int]:
    """Return the begin and end of `SIZE` tokens around a place."""
    if not tokens:
        return place, place + MOST_CHARACTERS
    at = bisect_right(tokens, place, key=lambda token: token.start) - 1
    first = max(0, min(at - LEAD, len(tokens) - SIZE))
    end = tokens[first + SIZE - 1].end if first + SIZE < len(tokens) else len(text)
    return (tokens[first].start if first else 0), end


def _mark_matches(text: str, start: int, end: int, marks: Sequence[Mark]) -> str:
    parts: list[str] = []
    at = start
    for first, last in _merge_places(marks):
        parts += [text[at : max(first, at)], BEGIN, text[max(first, at) : min(last, end)], END]
        at = min(last, end)
    parts.append(text[at:end])
    before = ELLIPSIS if text[:start].strip() else ""
    after = ELLIPSIS if text[end:].strip() else ""
    return before + " ".join("".join(parts).split()) + after


def _merge_places(marks: Sequence[Mark]) -> list[tuple[int, int]]:
    """Return the places of matches, with places that overlap or touch merged."""
    found: list[tuple[int, int]] = []
    for mark in sorted(marks):
        if found and mark.start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], mark.end))
        else:
            found.append((mark.start, mark.end))
    return found
