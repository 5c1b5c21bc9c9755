"""Stems of words by language, so that a search for `run` also finds `running`.

An index has the words of a message as they were written and, behind a sign that no text has, their stems. So
phrases and beginnings of words mean what was written, and a word by itself all its forms. A word has the stem
that it has as it was written and the one that it has without accents, which people leave out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import cached_property, lru_cache
from importlib import import_module
from typing import Final, Protocol

from gateway_sessions.core.search.tokenizer import LONGEST_WORD, bare, folded_words
from gateway_sessions.errors import InvalidInputError

FORM: Final = "\ue001"
"""In front of a stem among tokens. No text has a token with it."""
SNOWBALL: Final = "3.1"
"""The version of the rules. Another one would make other stems, and the index has to be made anew for it."""
_LETTERS: Final = re.compile(r"\D+")
MOST_KNOWN: Final = 20_000
"""So many words are remembered with their stems: to find a stem takes 20 microseconds."""


class Stemming(StrEnum):
    """The language whose words are found in all their forms."""

    OFF = "off"  # words are found as they were written
    ARABIC = "arabic"
    ARMENIAN = "armenian"
    BASQUE = "basque"
    CATALAN = "catalan"
    CZECH = "czech"
    DANISH = "danish"
    DUTCH = "dutch"
    ENGLISH = "english"
    ESPERANTO = "esperanto"
    ESTONIAN = "estonian"
    FINNISH = "finnish"
    FRENCH = "french"
    GERMAN = "german"
    GREEK = "greek"
    HINDI = "hindi"
    HUNGARIAN = "hungarian"
    INDONESIAN = "indonesian"
    IRISH = "irish"
    ITALIAN = "italian"
    LITHUANIAN = "lithuanian"
    NEPALI = "nepali"
    NORWEGIAN = "norwegian"
    PERSIAN = "persian"
    POLISH = "polish"
    PORTUGUESE = "portuguese"
    ROMANIAN = "romanian"
    RUSSIAN = "russian"
    SERBIAN = "serbian"
    SPANISH = "spanish"
    SWEDISH = "swedish"
    TAMIL = "tamil"
    TURKISH = "turkish"
    YIDDISH = "yiddish"


CHANGE_BEGINNINGS: Final = frozenset(
    {
        Stemming.ARABIC,
        Stemming.DUTCH,
        Stemming.GREEK,
        Stemming.INDONESIAN,
        Stemming.IRISH,
        Stemming.LITHUANIAN,
        Stemming.PERSIAN,
        Stemming.SERBIAN,
        Stemming.TAMIL,
        Stemming.TURKISH,
        Stemming.YIDDISH,
    }
)
"""Languages in which a stem may begin with another letter than its word; others change ends of words only."""


class _Stemmer(Protocol):
    def stemWord(self, word: str) -> str: ...  # noqa: N802 -- its name


class Stems:
    """Finds the stems of words of one language; with `off`, there are none."""

    def __init__(self, stemming: Stemming = Stemming.OFF) -> None:
        self.stemming = stemming
        self._kept: Callable[[str], frozenset[str]] = lru_cache(maxsize=MOST_KNOWN)(self._find_kept)

    @property
    def are_off(self) -> bool:
        """Whether words are found as they were written only."""
        return self.stemming is Stemming.OFF

    @property
    def made_by(self) -> str:
        """The rules, as an index is told which ones it was made by."""
        return str(self.stemming) if self.are_off else f"{self.stemming} {SNOWBALL}"

    def of_texts(self, texts: Iterable[str]) -> list[str]:
        """Return the tokens that stand for the forms of the words of these texts, each once."""
        return [] if self.are_off else sorted(self.of_words(set[str]().union(*map(folded_words, texts))))

    def of_words(self, words: Iterable[str]) -> set[str]:
        """Return the same of folded words."""
        return set[str]().union(*map(self._kept, words))

    def among(self, words: Iterable[str], stems: frozenset[str]) -> dict[str, set[str]]:
        """Return which of the folded words have one of these stems, without accents, by that stem.

        Where a word and its stem begin alike, only words that may have one of them are asked for theirs.
        """
        letters = {one[len(FORM)] for one in stems}
        if self.stemming not in CHANGE_BEGINNINGS:
            words = (word for word in words if bare(word)[:1] in letters)
        found: dict[str, set[str]] = {}
        for word in words:
            for stem in self._kept(word) & stems:
                found.setdefault(stem, set()).add(bare(word))
        return found

    def of_word(self, folded: str) -> frozenset[str]:
        """Return the same of one folded word."""
        return frozenset() if self.are_off else self._kept(folded)

    def others(self, text: str) -> tuple[str, ...]:
        """Return the tokens besides itself by which the forms of a word are found; of several words none."""
        words = set[str]() if self.are_off else folded_words(text)
        if len(words) != 1:
            return ()
        (word,) = words
        stems, token = self._stems(word), bare(word)
        whole = {one for one in stems if one != token and self._stem(one) == one}
        return tuple(sorted({FORM + one for one in stems} | whole))

    def _find_kept(self, word: str) -> frozenset[str]:
        """The stems of a word, but for one that is the word itself: that is found as it was written."""
        token, stems = bare(word), self._stems(word)
        if token in stems and (word == token or self._stem(token) == token):
            stems = stems - {token}
        return frozenset(FORM + one for one in stems)

    def _stems(self, word: str) -> set[str]:
        token = bare(word)
        # Of a long word the tokens may be pieces, and what has a digit in it is a name or a number.
        if len(token) >= LONGEST_WORD or not _LETTERS.fullmatch(word):
            return set()
        return {bare(self._stem(one)) for one in {word, token}} - {""}

    def _stem(self, word: str) -> str:
        # A stemmer keeps the word that it works on: each call has one of its own, for several threads call.
        return self._stemmer().stemWord(word)

    @cached_property
    def _stemmer(self) -> Callable[[], _Stemmer]:
        # Only the module of the language: the package would import all of them, or a compiled one with rules
        # of its own.
        module = import_module(f"snowballstemmer.{self.stemming}_stemmer")
        stemmer: Callable[[], _Stemmer] = getattr(module, f"{self.stemming.title()}Stemmer")
        return stemmer


def stemming_of(given: str) -> Stemming:
    """The language of that name."""
    try:
        return Stemming(given)
    except ValueError:
        problem = f"stemming must be one of {', '.join(Stemming)}, not {given!r}"
        raise InvalidInputError(problem) from None


NO_STEMS: Final = Stems()
