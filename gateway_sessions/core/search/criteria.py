"""Criteria of a search: tests for a message, and the tokens that every match is certain to have.

What a search looks for: the words of a query, or a text as it stands.

What a message certainly has if it is wanted: what an index is asked for, whatever its language.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

from gateway_sessions.core.search.near_words import NearWords
from gateway_sessions.core.search.query import Branch, Phrase, SearchQuery, matches, parse_query
from gateway_sessions.core.search.ranking import READ_CHARACTERS, Counter, Features, counter_of
from gateway_sessions.core.search.results import Finder, marks_of_literal, marks_of_query
from gateway_sessions.core.search.stems import FORM, NO_STEMS, Stems
from gateway_sessions.core.search.tokenizer import (
    CharacterKind,
    bare,
    fold,
    folded_words,
    join_fields,
    pieces,
    runs,
    words_of_folded,
)

SEPARATOR: Final = "\x1e"
"""Stands between texts that are looked at together: it is in no token."""


@dataclass(frozen=True)
class Words:
    """Messages that fit a query."""

    query: SearchQuery
    stems: Stems = NO_STEMS

    def found_in(self, fields: Sequence[str]) -> bool:
        """Whether a message with these texts is wanted."""
        document = join_fields(fields)
        if self._stems and not (self._only_requires and matches(self.query, document)):
            document += self.stems.among(set[str]().union(*map(folded_words, fields)), self._stems)
        return matches(self.query, document)

    def promising(self, texts: Sequence[str]) -> list[int]:
        """The places of the texts that have all letters of what is wanted: a hundredth of a closer look.

        They are looked at as one text, for each step through Python takes longer than to read a text.
        """
        folded = fold(SEPARATOR.join(texts))
        page = bare(folded)
        sides = self._sides_in(page, folded)
        if not sides:
            return []
        parts = page.split(SEPARATOR)
        if len(parts) != len(texts):  # somebody has written a separator
            parts = [bare(fold(text)) for text in texts]
        return sorted(set[int]().union(*(_having_all(side, parts) for side in sides)))

    def _sides_in(self, page: str, folded: str) -> list[_Side]:
        """For each side of the query that may be in the page, its tokens: of each group, one is needed."""
        forms = self._forms_in(folded)
        sides = [
            [[one for one in group if one in page] for group in _groups(branch, forms)]
            for branch in self.query.branches
        ]
        return [side for side in sides if all(side)]

    def _forms_in(self, folded: str) -> Mapping[str, set[str]]:
        """The words of a page that have one of the stems that are wanted, by that stem."""
        return self.stems.among(words_of_folded(folded), self._stems) if self._stems else {}

    @cached_property
    def _stems(self) -> frozenset[str]:
        """The stems among what the query looks for."""
        others = chain.from_iterable(phrase.others for phrase in self.query.all_phrases)
        return frozenset(one for one in others if one.startswith(FORM))

    @cached_property
    def _only_requires(self) -> bool:
        """Whether a message that is wanted stays so, whatever else it has."""
        return not any(branch.excluded for branch in self.query.branches)

    @cached_property
    def features(self) -> Counter:
        """Counts what the order is made from."""
        return counter_of(self.query)

    @property
    def finder(self) -> Finder:
        """Finds what is to be marked."""
        return marks_of_query(self.query, self.stems)

    @property
    def hints(self) -> tuple[str, ...]:
        """Texts of which one stands near the match."""
        others = chain.from_iterable(phrase.others for phrase in self.query.phrases)
        return (
            *(phrase.tokens[0] for phrase in self.query.phrases),
            *(other.removeprefix(FORM) for other in others),
        )


@dataclass(frozen=True)
class Literal:
    """Messages that contain a text, in any case."""

    needle: str

    def found_in(self, fields: Sequence[str]) -> bool:
        """Whether a message with these texts is wanted."""
        wanted = self.folded
        return any(wanted in fold(field) for field in fields)

    def promising(self, texts: Sequence[str]) -> list[int]:
        """The places of the texts that have it."""
        folded = fold(SEPARATOR.join(texts))
        if self.folded not in folded:
            return []
        return [at for at, text in enumerate(texts) if self.folded in fold(text)]

    def features(self, texts: Sequence[str]) -> list[Features]:
        """Counts what the order is made from."""
        folded = [fold(text[:READ_CHARACTERS]) for text in texts]
        return [Features((text.count(self.folded),), len(text)) for text in folded]

    @property
    def finder(self) -> Finder:
        """Finds what is to be marked."""
        return marks_of_literal(self.needle)

    @property
    def hints(self) -> tuple[str, ...]:
        """Texts of which one stands near the match."""
        return (self.needle.lower(),)

    @cached_property
    def folded(self) -> str:
        """The text as it is compared."""
        return fold(self.needle)


@dataclass(frozen=True)
class Vocabulary:
    """Any message: its words are compared with some, to learn which of them are like these."""

    near: NearWords

    def found_in(self, fields: Sequence[str]) -> bool:
        """Compare the words of these texts; they are as good as any."""
        for text in fields:
            self.near.read({bare(word) for word in folded_words(text)})
        return True

    def promising(self, texts: Sequence[str]) -> list[int]:
        """All of them."""
        return list(range(len(texts)))

    def features(self, texts: Sequence[str]) -> list[Features]:
        """Nothing makes an order of them."""
        return [_ANY] * len(texts)


_ANY: Final = Features((), 0)
Wanted: TypeAlias = Words | Literal
_Side: TypeAlias = list[list[str]]


def wanted_of(text: str, *, literal: bool, stems: Stems = NO_STEMS, fuzzy: bool = False) -> Wanted | None:
    """What a query asks for; None: nothing at all. Without any word in it, it is looked for as it stands."""
    query = parse_query(text, stems, fuzzy=fuzzy)  # also refuses what is too long
    if not text.strip():
        return None
    if literal:
        return Literal(text)
    return Words(query, stems) if query.branches else Literal(text.strip())


def _groups(branch: Branch, forms: Mapping[str, set[str]]) -> Iterator[Iterable[str]]:
    """Groups of tokens, of each of which a message needs one."""
    for phrase in branch.required:
        if phrase.others:
            yield {*phrase.tokens, *chain.from_iterable(forms.get(one, (one,)) for one in phrase.others)}
        else:
            yield from ((token,) for token in phrase.tokens)


def _having_all(side: _Side, texts: Sequence[str]) -> list[int]:
    """The places of texts that have a token of each group. After the first group, few are left to look at."""
    left = list(range(len(texts)))
    for first, *others in side:
        left = [at for at in left if first in texts[at] or any(token in texts[at] for token in others)]
    return left


class WordPart(NamedTuple):
    """Letters that some word has."""

    letters: str
    at_end: bool

    @property
    def text(self) -> str:
        """What stands in such a word, a space being put behind it."""
        return f"{self.letters} " if self.at_end else self.letters


class Certain(NamedTuple):
    """What a message certainly has."""

    query: SearchQuery | None = None
    part: WordPart | None = None


def certain_of(wanted: Wanted | Vocabulary) -> Certain:
    """The words of a query, of which it has at least one, or what is certain of a text."""
    match wanted:
        case Words():
            return Certain(wanted.query)
        case Literal():
            return certain_of_literal(wanted.needle)
        case Vocabulary():
            return Certain()


def certain_of_literal(needle: str) -> Certain:
    """What a message has that contains *needle* somewhere.

    The tokens of *needle* stand next to each other in it as well, but for letters at its beginning, which may
    be the end of a longer word, and what stands last, which may go on.
    """
    folded = fold(needle)
    part: WordPart | None = None
    tokens: list[str] = []
    prefix = False
    for start, end, kind in runs(folded):
        found, is_last = pieces(folded[start:end], kind), end == len(folded)
        if kind is CharacterKind.WORD and start == 0:
            part = WordPart(bare(folded[start:end]), not is_last) if found else None
            continue
        if kind is CharacterKind.PAIRED and is_last and found[1:]:
            found.pop()
        elif found:
            prefix = is_last and kind is not CharacterKind.SIGN
        tokens += found
    return Certain(_of_phrase(Phrase(tuple(tokens), prefix)) if tokens else None, part)


def _of_phrase(phrase: Phrase) -> SearchQuery:
    return SearchQuery((Branch((phrase,)),))
