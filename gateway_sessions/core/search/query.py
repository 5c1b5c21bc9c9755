"""The parser of search queries, and the tree of phrases that a message must match.

- A message must have all words: `docker deployment`. With `OR` between them it needs one of the two sides.
  `AND` changes nothing.
- `"exact phrase"`: the words in that order, with nothing between them. Curly quotes count, an unclosed one
  does not.
- `NOT word`, `-word`, `-"a phrase"`: messages without it. The exclusion counts for its side of an `OR`.
- `deploy*`: words with that beginning.
- Punctuation is ignored, wherever it stands. Words that it holds together, such as `user@host`, are a phrase.
- Where words have stems, a word by itself stands for all its forms. In quotes, with a star or within such a
  phrase it stands for itself only.
- Operators are capital letters. One at the end is ignored, and repeated ones count once; of `OR` and `AND` in
  a row, `OR` counts.
- A side that would only exclude is searched for instead, and so are operators that stand alone: the person
  can have meant nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from gateway_sessions.core.search.near_words import has_near_words
from gateway_sessions.core.search.stems import NO_STEMS, Stems
from gateway_sessions.core.search.tokenizer import is_pair, is_unspaced, tokens_of_text
from gateway_sessions.errors import InvalidInputError

# More is a pasted text, not a query.
MAX_CHARACTERS: Final = 2_048
# Each phrase costs a pass over the candidates.
MAX_PHRASES: Final = 64
MAX_TOKENS: Final = 512
"""The tokens of all phrases together: a query in Chinese has a token for each character."""

_QUOTES: Final = str.maketrans(dict.fromkeys("“”„‟\uff02«»", '"'))
_LEXEME: Final = re.compile(r'(?P<minus>(?<!\S)-)?"(?P<phrase>[^"]*)"(?P<star>\*?)|(?P<word>[^\s"]+)')
_OPERATORS: Final = frozenset({"AND", "OR", "NOT"})


@dataclass(frozen=True, slots=True)
class Phrase:
    """Tokens next to each other; a single word is the shortest phrase."""

    tokens: tuple[str, ...]
    prefix: bool = False
    """Whether the last token is a prefix."""
    others: tuple[str, ...] = ()
    """The further tokens that match instead of a single word: its stems, or words with nearly its
    spelling."""
    fuzzy: bool = False
    """Whether words with nearly this spelling may match too."""

    @property
    def characters(self) -> int:
        """The number of positions that the phrase covers: the second character of a last pair is one more."""
        return len(self.tokens) + (is_pair(self.tokens[-1]) and not self.prefix)


@dataclass(frozen=True, slots=True)
class Branch:
    """The phrases that a message must have, and the phrases that it must not have."""

    required: tuple[Phrase, ...]
    excluded: tuple[Phrase, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """The branches of a query; a message must match one of them. Without branches, the query had no word."""

    branches: tuple[Branch, ...] = ()

    @property
    def phrases(self) -> tuple[Phrase, ...]:
        """The phrases that the query requires, each once."""
        return tuple(dict.fromkeys(one for branch in self.branches for one in branch.required))

    @property
    def fuzzy_words(self) -> frozenset[str]:
        """The words that may match with nearly their spelling."""
        return frozenset(phrase.tokens[0] for phrase in self.phrases if phrase.fuzzy)

    def widened(self, near: Mapping[str, tuple[str, ...]]) -> SearchQuery:
        """Return the query with near words as alternatives; excluded phrases stay as they are."""

        def widen(phrase: Phrase) -> Phrase:
            more = near.get(phrase.tokens[0], ()) if phrase.fuzzy else ()
            return replace(phrase, others=tuple(dict.fromkeys((*phrase.others, *more))))

        branches = (replace(one, required=tuple(map(widen, one.required))) for one in self.branches)
        return SearchQuery(tuple(branches))

    @property
    def all_phrases(self) -> Iterator[Phrase]:
        """The required and the excluded phrases."""
        return (one for branch in self.branches for one in (*branch.required, *branch.excluded))


@dataclass(slots=True)
class _Side:
    """A side of an `OR` while it is parsed."""

    required: list[Phrase] = field(default_factory=list[Phrase])
    excluded: list[Phrase] = field(default_factory=list[Phrase])

    def make_branch(self) -> Branch:
        if not self.required:
            return Branch(tuple(dict.fromkeys(self.excluded)))
        return Branch(tuple(dict.fromkeys(self.required)), tuple(dict.fromkeys(self.excluded)))


@dataclass(frozen=True, slots=True)
class _Lexeme:
    text: str
    operator: bool = False
    excluded: bool = False
    prefix: bool = False
    quoted: bool = False


def parse_query(text: str, stems: Stems = NO_STEMS, *, fuzzy: bool = False) -> SearchQuery:
    """Return the tree of a query, or raise `InvalidInputError` if it is too long or has too many words."""
    if len(text) > MAX_CHARACTERS:
        problem = f"the query has {len(text)} characters, {MAX_CHARACTERS} are allowed"
        raise InvalidInputError(problem)
    lexemes = list(_split_lexemes(text))
    if not any(_parse_phrase(one, stems) for one in lexemes if not one.operator):
        lexemes = [_Lexeme(one.text) for one in lexemes]
    sides = _parse_sides(lexemes, stems, fuzzy=fuzzy)
    query = SearchQuery(tuple(side.make_branch() for side in sides if side.required or side.excluded))
    _check_query_size(query)
    return query


def document_matches(query: SearchQuery, document: Sequence[str]) -> bool:
    """Return whether a document of these tokens matches: every database's answer must agree with this."""
    return any(
        all(phrase_occurs(phrase, document) for phrase in branch.required)
        and not any(phrase_occurs(phrase, document) for phrase in branch.excluded)
        for branch in query.branches
    )


def phrase_occurs(phrase: Phrase, document: Sequence[str]) -> bool:
    """Return whether a phrase is somewhere in a document."""
    return next(phrase_positions(phrase, document), None) is not None


def phrase_positions(phrase: Phrase, document: Sequence[str]) -> Iterator[int]:
    """Yield the positions at which a phrase begins."""
    if phrase.others:
        alternatives = {*phrase.tokens, *phrase.others}
        yield from (at for at, token in enumerate(document) if token in alternatives)
        return
    *whole, last = phrase.tokens
    length = len(whole)
    for at in _possible_positions(whole[0] if whole else None, phrase, document):
        end = at + length
        if end >= len(document) or any(document[at + i] != whole[i] for i in range(length)):
            continue
        if document[end].startswith(last) if phrase.prefix else document[end] == last:
            yield at


def _possible_positions(first: str | None, phrase: Phrase, document: Sequence[str]) -> Iterable[int]:
    """Return the positions at which a phrase could begin."""
    if first is None and phrase.prefix:
        return range(len(document))
    token = phrase.tokens[0] if first is None else first
    return _positions_of_token(token, document)


def _positions_of_token(token: str, document: Sequence[str]) -> Iterator[int]:
    at = -1
    while True:
        try:
            at = document.index(token, at + 1)
        except ValueError:
            return
        yield at


def _split_lexemes(text: str) -> Iterator[_Lexeme]:
    for found in _LEXEME.finditer(text.translate(_QUOTES)):
        if found["phrase"] is not None:
            minus, star = bool(found["minus"]), bool(found["star"])
            yield _Lexeme(found["phrase"], excluded=minus, prefix=star, quoted=True)
        elif found["word"] in _OPERATORS:
            yield _Lexeme(found["word"], operator=True)
        else:
            yield _word_lexeme(found["word"])


def _word_lexeme(word: str) -> _Lexeme:
    minus = word[0] == "-" and len(word) > 1 and bool(tokens_of_text(word[1]))
    stars = re.search(r"\*[^\w]*$", word)
    return _Lexeme(word.removeprefix("-") if minus else word, excluded=minus, prefix=stars is not None)


def _parse_sides(lexemes: Iterable[_Lexeme], stems: Stems, *, fuzzy: bool) -> list[_Side]:
    sides = [_Side()]
    excluding = starting = False
    for one in lexemes:
        if one.operator:
            excluding |= one.text == "NOT"
            starting |= one.text == "OR"
        elif phrase := _parse_phrase(one, stems, fuzzy=fuzzy and not (excluding or one.excluded)):
            if starting:
                sides.append(_Side())
            (sides[-1].excluded if excluding or one.excluded else sides[-1].required).append(phrase)
            excluding = starting = False
    return sides


def _parse_phrase(lexeme: _Lexeme, stems: Stems, *, fuzzy: bool = False) -> Phrase | None:
    found = tokens_of_text(lexeme.text)
    if not found:
        return None
    last = found[-1]
    if not is_unspaced(last):
        if lexeme.prefix or lexeme.quoted or len(found) > 1:  # these mean what is written
            return Phrase(tuple(found), lexeme.prefix)
        return Phrase(
            tuple(found), others=stems.other_forms(lexeme.text), fuzzy=fuzzy and has_near_words(last)
        )
    if len(found) > 1 and is_pair(found[-2]) and found[-2][1] == last:
        return Phrase(tuple(found[:-1]))  # what follows the last pair does not matter
    return Phrase(tuple(found), prefix=True)


def _check_query_size(query: SearchQuery) -> None:
    phrases = list(query.all_phrases)
    if len(phrases) > MAX_PHRASES:
        problem = f"the query has {len(phrases)} words and phrases, {MAX_PHRASES} are allowed"
        raise InvalidInputError(problem)
    size = sum(len(phrase.tokens) for phrase in phrases)
    if size > MAX_TOKENS:
        problem = f"the query has {size} words and pairs of characters, {MAX_TOKENS} are allowed"
        raise InvalidInputError(problem)
