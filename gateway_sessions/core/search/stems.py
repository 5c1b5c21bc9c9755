"""Stems of words by language, so that a search for `run` also finds `running`.

An index has the words of a message as they were written and, behind a sign that no text has, their stems. So
phrases and prefixes match the written words, and a word by itself matches all its forms. A word has two
stems: of its written form, and of its form without the accents that people leave out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import cached_property, lru_cache
from importlib import import_module
from typing import Final, Protocol

from gateway_sessions.core.search.tokenizer import LONGEST_WORD, folded_words, without_accents
from gateway_sessions.errors import InvalidInputError

FORM: Final = "\ue001"
"""The sign before a stem among tokens; no token of a text contains it."""
SNOWBALL: Final = "3.1"
"""The version of the rules. Another version would make other stems, and the index would have to be
rebuilt."""
_LETTERS: Final = re.compile(r"\D+")
MOST_KNOWN: Final = 20_000
"""The words whose stems are remembered: finding a stem takes 20 microseconds."""


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
"""The languages in which a stem may begin with another letter than its word; other languages change ends
only."""


class _Stemmer(Protocol):
    def stemWord(self, word: str) -> str: ...  # noqa: N802 -- its name


class Stems:
    """Finds the stems of words of one language; with `off`, no word has stems."""

    def __init__(self, stemming: Stemming = Stemming.OFF) -> None:
        self.stemming = stemming
        self._kept: Callable[[str], frozenset[str]] = lru_cache(maxsize=MOST_KNOWN)(
            self._stem_tokens_beside_word
        )

    @property
    def are_off(self) -> bool:
        """Whether words are found in their written form only."""
        return self.stemming is Stemming.OFF

    @property
    def made_by(self) -> str:
        """The rules by which an index was built, as text."""
        return str(self.stemming) if self.are_off else f"{self.stemming} {SNOWBALL}"

    def stem_tokens_of_texts(self, texts: Iterable[str]) -> list[str]:
        """Return the stem tokens of the words of these texts, each once."""
        return (
            []
            if self.are_off
            else sorted(self.stem_tokens_of_words(set[str]().union(*map(folded_words, texts))))
        )

    def stem_tokens_of_words(self, words: Iterable[str]) -> set[str]:
        """Return the stem tokens of folded words."""
        return set[str]().union(*map(self._kept, words))

    def words_with_stems(self, words: Iterable[str], stems: frozenset[str]) -> dict[str, set[str]]:
        """Return the folded words that have one of these stems, without accents, by stem.

        In languages where a word and its stem begin alike, only words with a matching first letter are
        stemmed.
        """
        letters = {one[len(FORM)] for one in stems}
        if self.stemming not in CHANGE_BEGINNINGS:
            words = (word for word in words if without_accents(word)[:1] in letters)
        found: dict[str, set[str]] = {}
        for word in words:
            for stem in self._kept(word) & stems:
                found.setdefault(stem, set()).add(without_accents(word))
        return found

    def stem_tokens_of_word(self, folded: str) -> frozenset[str]:
        """Return the stem tokens of one folded word."""
        return frozenset() if self.are_off else self._kept(folded)

    def other_forms(self, text: str) -> tuple[str, ...]:
        """Return the further tokens by which the forms of a word are found; none for several words."""
        words = set[str]() if self.are_off else folded_words(text)
        if len(words) != 1:
            return ()
        (word,) = words
        stems, token = self._stems_of(word), without_accents(word)
        whole = {one for one in stems if one != token and self._stem_of(one) == one}
        return tuple(sorted({FORM + one for one in stems} | whole))

    def _stem_tokens_beside_word(self, word: str) -> frozenset[str]:
        """Return the stem tokens of a word, without one that equals the word: its own token finds it."""
        token, stems = without_accents(word), self._stems_of(word)
        if token in stems and (word == token or self._stem_of(token) == token):
            stems = stems - {token}
        return frozenset(FORM + one for one in stems)

    def _stems_of(self, word: str) -> set[str]:
        token = without_accents(word)
        # A long word may be cut into several tokens, and a word with a digit is a name or a number: neither
        # is stemmed.
        if len(token) >= LONGEST_WORD or not _LETTERS.fullmatch(word):
            return set()
        return {without_accents(self._stem_of(one)) for one in {word, token}} - {""}

    def _stem_of(self, word: str) -> str:
        # A stemmer keeps the word that it works on: each call makes its own, since several threads call.
        return self._make_stemmer().stemWord(word)

    @cached_property
    def _make_stemmer(self) -> Callable[[], _Stemmer]:
        # The language's own module is imported: the package would import all languages, or a compiled stemmer
        # with other rules.
        module = import_module(f"snowballstemmer.{self.stemming}_stemmer")
        stemmer: Callable[[], _Stemmer] = getattr(module, f"{self.stemming.title()}Stemmer")
        return stemmer


def stemming_of(given: str) -> Stemming:
    """Return the language of that name, or raise `InvalidInputError`."""
    try:
        return Stemming(given)
    except ValueError:
        problem = f"stemming must be one of {', '.join(Stemming)}, not {given!r}"
        raise InvalidInputError(problem) from None


NO_STEMS: Final = Stems()
