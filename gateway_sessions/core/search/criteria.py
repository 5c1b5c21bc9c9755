"""Criteria of a search: tests for a message, and the tokens that every match is certain to have.

An index is asked for the certain tokens; the tests then decide about each candidate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

from gateway_sessions.core.search.near_words import NearWords
from gateway_sessions.core.search.query import Branch, Phrase, SearchQuery, document_matches, parse_query
from gateway_sessions.core.search.ranking import READ_CHARACTERS, Counter, ScoreFeatures, feature_counter
from gateway_sessions.core.search.results import Finder, marks_of_literal, marks_of_query
from gateway_sessions.core.search.stems import FORM, NO_STEMS, Stems
from gateway_sessions.core.search.tokenizer import (
    CharacterKind,
    fold,
    folded_words,
    join_fields,
    token_runs,
    tokens_of_run,
    without_accents,
    words_of_folded,
)

SEPARATOR: Final = "\x1e"
"""The character between texts that are tested together: no token contains it."""


@dataclass(frozen=True)
class Words:
    """The criterion of a query: messages that match its words."""

    query: SearchQuery
    stems: Stems = NO_STEMS

    def matches_fields(self, fields: Sequence[str]) -> bool:
        """Return whether a message with these texts matches."""
        document = join_fields(fields)
        if self._stems and not (self._excludes_nothing and document_matches(self.query, document)):
            document += self.stems.words_with_stems(set[str]().union(*map(folded_words, fields)), self._stems)
        return document_matches(self.query, document)

    def preselect(self, texts: Sequence[str]) -> list[int]:
        """Return the indexes of the texts with all letters of a match: a hundredth of the test's cost.

        The texts are searched as one text, because a step of Python takes longer than reading a text.
        """
        folded = fold(SEPARATOR.join(texts))
        page = without_accents(folded)
        sides = self._token_groups_in(page, folded)
        if not sides:
            return []
        parts = page.split(SEPARATOR)
        if len(parts) != len(texts):  # one of the texts contains the separator
            parts = [without_accents(fold(text)) for text in texts]
        return sorted(set[int]().union(*(_texts_with_all(side, parts) for side in sides)))

    def _token_groups_in(self, page: str, folded: str) -> list[_Side]:
        """Return the tokens of each side that may be in the page; of each group, one is needed."""
        forms = self._forms_in(folded)
        sides = [
            [[one for one in group if one in page] for group in _token_groups(branch, forms)]
            for branch in self.query.branches
        ]
        return [side for side in sides if all(side)]

    def _forms_in(self, folded: str) -> Mapping[str, set[str]]:
        """Return the words of a page that have one of the query's stems, by stem."""
        return self.stems.words_with_stems(words_of_folded(folded), self._stems) if self._stems else {}

    @cached_property
    def _stems(self) -> frozenset[str]:
        """The stems among the query's alternatives."""
        others = chain.from_iterable(phrase.others for phrase in self.query.all_phrases)
        return frozenset(one for one in others if one.startswith(FORM))

    @cached_property
    def _excludes_nothing(self) -> bool:
        """Whether further tokens can never make a matching message fail."""
        return not any(branch.excluded for branch in self.query.branches)

    @cached_property
    def features(self) -> Counter:
        """The counter of the features that order the matches."""
        return feature_counter(self.query)

    @property
    def finder(self) -> Finder:
        """The finder of the places to mark."""
        return marks_of_query(self.query, self.stems)

    @property
    def hints(self) -> tuple[str, ...]:
        """The texts of which one stands near every match."""
        others = chain.from_iterable(phrase.others for phrase in self.query.phrases)
        return (
            *(phrase.tokens[0] for phrase in self.query.phrases),
            *(other.removeprefix(FORM) for other in others),
        )


@dataclass(frozen=True)
class Literal:
    """The criterion of a literal text: messages that contain it, in any case."""

    needle: str

    def matches_fields(self, fields: Sequence[str]) -> bool:
        """Return whether a message with these texts matches."""
        needle = self.folded
        return any(needle in fold(field) for field in fields)

    def preselect(self, texts: Sequence[str]) -> list[int]:
        """Return the indexes of the texts that contain the literal."""
        folded = fold(SEPARATOR.join(texts))
        if self.folded not in folded:
            return []
        return [at for at, text in enumerate(texts) if self.folded in fold(text)]

    def features(self, texts: Sequence[str]) -> list[ScoreFeatures]:
        """Return the features that order the matches."""
        folded = [fold(text[:READ_CHARACTERS]) for text in texts]
        return [ScoreFeatures((text.count(self.folded),), len(text)) for text in folded]

    @property
    def finder(self) -> Finder:
        """The finder of the places to mark."""
        return marks_of_literal(self.needle)

    @property
    def hints(self) -> tuple[str, ...]:
        """The texts of which one stands near every match."""
        return (self.needle.lower(),)

    @cached_property
    def folded(self) -> str:
        """The literal in the form for comparisons."""
        return fold(self.needle)


@dataclass(frozen=True)
class Vocabulary:
    """The criterion that matches every message and collects words that are near a query's words."""

    near: NearWords

    def matches_fields(self, fields: Sequence[str]) -> bool:
        """Collect the words of these texts, and match."""
        for text in fields:
            self.near.compare_words({without_accents(word) for word in folded_words(text)})
        return True

    def preselect(self, texts: Sequence[str]) -> list[int]:
        """Return the indexes of all texts."""
        return list(range(len(texts)))

    def features(self, texts: Sequence[str]) -> list[ScoreFeatures]:
        """Return equal features: no order is needed."""
        return [_ANY] * len(texts)


_ANY: Final = ScoreFeatures((), 0)
Criterion: TypeAlias = Words | Literal
_Side: TypeAlias = list[list[str]]


def criterion_of(
    text: str, *, literal: bool, stems: Stems = NO_STEMS, fuzzy: bool = False
) -> Criterion | None:
    """Return the criterion of a query; None for a blank one. A query without words is taken as a literal."""
    query = parse_query(text, stems, fuzzy=fuzzy)  # parsing also refuses a query that is too long
    if not text.strip():
        return None
    if literal:
        return Literal(text)
    return Words(query, stems) if query.branches else Literal(text.strip())


def _token_groups(branch: Branch, forms: Mapping[str, set[str]]) -> Iterator[Iterable[str]]:
    """Yield groups of tokens; a message needs one token of each group."""
    for phrase in branch.required:
        if phrase.others:
            yield {*phrase.tokens, *chain.from_iterable(forms.get(one, (one,)) for one in phrase.others)}
        else:
            yield from ((token,) for token in phrase.tokens)


def _texts_with_all(side: _Side, texts: Sequence[str]) -> list[int]:
    """Return the indexes of the texts with a token of each group; the first group leaves few to test."""
    left = list(range(len(texts)))
    for first, *others in side:
        left = [at for at in left if first in texts[at] or any(token in texts[at] for token in others)]
    return left


class WordPart(NamedTuple):
    """Letters that some word of every match contains."""

    letters: str
    """The folded letters, without accents."""
    at_end: bool
    """Whether a word must end with the letters."""

    @property
    def text(self) -> str:
        """The letters as they stand in a list of words with a space after each."""
        return f"{self.letters} " if self.at_end else self.letters


class CertainTerms(NamedTuple):
    """The tokens and letters that every match is certain to have."""

    query: SearchQuery | None = None
    part: WordPart | None = None


def certain_terms_of(wanted: Criterion | Vocabulary) -> CertainTerms:
    """Return the query's words, of which every match has one branch, or the certain tokens of a literal."""
    match wanted:
        case Words():
            return CertainTerms(wanted.query)
        case Literal():
            return certain_terms_of_literal(wanted.needle)
        case Vocabulary():
            return CertainTerms()


def certain_terms_of_literal(needle: str) -> CertainTerms:
    """Return the tokens and letters of every message that contains *needle*.

    The tokens of *needle* stand next to each other in the message as well, with two exceptions: letters at
    the beginning of *needle* may be the end of a longer word, and its last token may go on.
    """
    folded = fold(needle)
    part: WordPart | None = None
    tokens: list[str] = []
    prefix = False
    for start, end, kind in token_runs(folded):
        found, is_last = tokens_of_run(folded[start:end], kind), end == len(folded)
        if kind is CharacterKind.WORD and start == 0:
            part = WordPart(without_accents(folded[start:end]), not is_last) if found else None
            continue
        if kind is CharacterKind.PAIRED and is_last and found[1:]:
            found.pop()
        elif found:
            prefix = is_last and kind is not CharacterKind.SIGN
        tokens += found
    return CertainTerms(_query_of_phrase(Phrase(tuple(tokens), prefix)) if tokens else None, part)


def _query_of_phrase(phrase: Phrase) -> SearchQuery:
    return SearchQuery((Branch((phrase,)),))
