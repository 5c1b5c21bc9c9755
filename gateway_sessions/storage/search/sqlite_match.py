"""Translation of a search query to an FTS5 match expression."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from gateway_sessions.core.search.criteria import CertainTerms
from gateway_sessions.core.search.documents import UNLISTED
from gateway_sessions.core.search.filters import SearchFilter, excluded_label_groups, required_label_groups
from gateway_sessions.core.search.query import Branch, Phrase, SearchQuery
from gateway_sessions.core.search.tokenizer import CharacterKind, tokens_of_run

PART: Final = 3
"""The length of the parts of words that the index lists; longer ones are found without reading all words."""
MOST_PARTS: Final = 32
"""The most parts in a query: more of them narrow nothing further."""
FEW_WORDS: Final = 200
"""The most words that narrow a query which also has whole words."""
SOME_WORDS: Final = 1_000
"""The most words in one query. If a part is in more words, most messages have one of them."""
MANY_WORDS: Final = 5_000
"""The most words in a query if the newest messages have too few matches."""


@dataclass(frozen=True, slots=True)
class Fts5Match:
    """Holds a query in the terms of the index; the index knows which words have the wanted part."""

    certain: CertainTerms
    labels: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    patient: bool = False
    """True if the query may take long, because a scan found too little."""

    @property
    def most_words(self) -> int:
        """Return how many words with the wanted part the query can hold."""
        if self.certain.query is not None:
            return FEW_WORDS
        return MANY_WORDS if self.patient else SOME_WORDS

    def fts5_expression(self, words: Sequence[str] | None = None) -> str | None:
        """Return the FTS5 expression with these *words* (None: too many); None if it would be empty."""
        query, part = self.certain
        found = (
            [*self.labels] if query is None else [f"({{text}} : {_query_expression(query)})", *self.labels]
        )
        if part is not None and words is not None:
            found.append(_any_word_expression(words))
        if not found:
            return None
        together = " AND ".join(found)
        return f"({together}) NOT ({' OR '.join(self.excluded)})" if self.excluded else together


def fts5_match_of(certain: CertainTerms, wanted: SearchFilter) -> Fts5Match | None:
    """Return the query for the index, narrowed by the labels of sessions; None if it would be empty."""
    labels = tuple(map(_any_label_expression, required_label_groups(wanted)))
    if certain == CertainTerms() and not labels:
        return None
    return Fts5Match(certain, labels, tuple(map(_any_label_expression, excluded_label_groups(wanted))))


def containing_expression(word: str) -> str | None:
    """Return the expression for words that contain *word*; None if *word* is shorter than a part."""
    parts = dict.fromkeys(word[at : at + PART] for at in range(len(word) - PART + 1))
    return " AND ".join(f'"{one}"' for one in list(parts)[:MOST_PARTS]) or None


def _query_expression(query: SearchQuery) -> str:
    return f"({' OR '.join(map(_branch_expression, query.branches))})"


def _branch_expression(branch: Branch) -> str:
    required = f"({' AND '.join(map(_phrase_expression, branch.required))})"
    if not branch.excluded:
        return required
    return f"({required} NOT ({' OR '.join(map(_phrase_expression, branch.excluded))}))"


def _phrase_expression(phrase: Phrase) -> str:
    if phrase.others:
        return (
            f"({' OR '.join(_phrase_expression(Phrase((one,))) for one in (*phrase.tokens, *phrase.others))})"
        )
    return f'"{" ".join(phrase.tokens)}"{" *" if phrase.prefix else ""}'


def _any_word_expression(words: Iterable[str]) -> str:
    """Return the expression for any of these words, or for a message whose words are not listed."""
    found = " OR ".join(
        _phrase_expression(Phrase(tuple(tokens_of_run(word, CharacterKind.WORD)))) for word in words
    )
    unlisted = f'({{labels}} : "{UNLISTED}")'
    return f"(({{text}} : ({found})) OR {unlisted})" if found else unlisted


def _any_label_expression(labels: Iterable[Phrase]) -> str:
    return f"({{labels}} : ({' OR '.join(map(_phrase_expression, labels))}))"
