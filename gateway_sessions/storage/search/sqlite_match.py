"""Translation of a search query to an FTS5 match expression."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from gateway_sessions.core.search.criteria import Certain
from gateway_sessions.core.search.documents import UNLISTED
from gateway_sessions.core.search.filters import SearchFilter, excluding, narrowing
from gateway_sessions.core.search.query import Branch, Phrase, SearchQuery
from gateway_sessions.core.search.tokenizer import CharacterKind, pieces

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
        if self.certain.query is not None:
            return FEW_WORDS
        return MANY_WORDS if self.patient else SOME_WORDS

    def expression(self, words: Sequence[str] | None = None) -> str | None:
        """All of it, with the words that have the part (None: too many); None if that says nothing."""
        query, part = self.certain
        found = [*self.labels] if query is None else [f"({{text}} : {_any_branch(query)})", *self.labels]
        if part is not None and words is not None:
            found.append(_one_of(words))
        if not found:
            return None
        together = " AND ".join(found)
        return f"({together}) NOT ({' OR '.join(self.excluded)})" if self.excluded else together


def match_of(certain: Certain, wanted: SearchFilter) -> Match | None:
    """What to ask the index for: the text, narrowed as far as labels go; None if this says nothing."""
    labels = tuple(map(_any_of, narrowing(wanted)))
    if certain == Certain() and not labels:
        return None
    return Match(certain, labels, tuple(map(_any_of, excluding(wanted))))


def parts_of(word: str) -> str | None:
    """How to ask for words with all letters of *word* in their order; None if it has not enough of them."""
    parts = dict.fromkeys(word[at : at + PART] for at in range(len(word) - PART + 1))
    return " AND ".join(f'"{one}"' for one in list(parts)[:MOST_PARTS]) or None


def _any_branch(query: SearchQuery) -> str:
    return f"({' OR '.join(map(_branch, query.branches))})"


def _branch(branch: Branch) -> str:
    required = f"({' AND '.join(map(_phrase, branch.required))})"
    if not branch.excluded:
        return required
    return f"({required} NOT ({' OR '.join(map(_phrase, branch.excluded))}))"


def _phrase(phrase: Phrase) -> str:
    if phrase.others:
        return f"({' OR '.join(_phrase(Phrase((one,))) for one in (*phrase.tokens, *phrase.others))})"
    return f'"{" ".join(phrase.tokens)}"{" *" if phrase.prefix else ""}'


def _one_of(words: Iterable[str]) -> str:
    """Any of these words, or one that is not listed."""
    found = " OR ".join(_phrase(Phrase(tuple(pieces(word, CharacterKind.WORD)))) for word in words)
    unlisted = f'({{labels}} : "{UNLISTED}")'
    return f"(({{text}} : ({found})) OR {unlisted})" if found else unlisted


def _any_of(labels: Iterable[Phrase]) -> str:
    return f"({{labels}} : ({' OR '.join(map(_phrase, labels))}))"
