"""Spelling tolerance: words that share trigrams with a searched word or differ from it by one slip.

Two words are near if they share enough groups of three letters, counted as `pg_trgm` does, or if one slip
turns one into the other: an added, missing or wrong letter, or two swapped ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

SHORTEST: Final = 4
"""The letters of the shortest word with near words: shorter words resemble too many others."""
ALIKE: Final = 0.3
"""The least share of common groups among all groups of two near words, as in `pg_trgm`."""
ONE_SLIP: Final = 0.5
"""The least likeness of two words that differ by one slip."""
MOST_NEAR: Final = 20
"""The number of near words that a search looks for as well, the most similar ones."""
MOST_READ: Final = 200_000
"""The number of different words that are compared, so that a search stays bounded."""
_GROUP: Final = 3


class NearWords:
    """Collects the words of texts that are near some words."""

    def __init__(self, words: Iterable[str]) -> None:
        self._wanted = {one: trigrams(one) for one in words if has_near_words(one)}
        self._near: dict[str, dict[str, float]] = {one: {} for one in self._wanted}
        self._read: set[str] = set()

    @property
    def is_full(self) -> bool:
        """Whether the limit of compared words is reached."""
        return len(self._read) >= MOST_READ

    def compare_words(self, words: Collection[str]) -> None:
        """Compare those of the words that were not compared yet."""
        if self.is_full:
            return
        for word in set(words) - self._read:
            if has_near_words(word):
                self._compare_word(word)
        self._read.update(words)

    @property
    def found(self) -> Mapping[str, tuple[str, ...]]:
        """The near words of each word that has any, the most similar first."""
        return {word: tuple(_most_similar(near)) for word, near in self._near.items() if near}

    def _compare_word(self, word: str) -> None:
        own = trigrams(word)
        for searched, theirs in self._wanted.items():
            common = len(own & theirs)
            if common and word != searched:
                share = common / (len(own) + len(theirs) - common)
                likeness = max(share, ONE_SLIP) if is_one_slip(word, searched) else share
                if likeness >= ALIKE:
                    self._near[searched][word] = likeness


def has_near_words(word: str) -> bool:
    """Return whether a word has meaningful near words: a short word or a number has none."""
    return len(word) >= SHORTEST and not word.isdecimal()


def trigrams(word: str) -> frozenset[str]:
    """Return the groups of three letters of a word, padded with two spaces before it and one after it."""
    padded = f"  {word} "
    return frozenset(padded[at : at + _GROUP] for at in range(len(padded) - _GROUP + 1))


def is_one_slip(one: str, other: str) -> bool:
    """Return whether a single slip turns one word into the other."""
    if abs(len(one) - len(other)) > 1:
        return False
    start = _common_prefix_length(one, other)
    end = _common_prefix_length(one[start:][::-1], other[start:][::-1])
    one, other = one[start : len(one) - end], other[start : len(other) - end]
    return max(len(one), len(other)) <= 1 or (len(one) == len(other) == len("ab") and one == other[::-1])


def _common_prefix_length(one: str, other: str) -> int:
    """Return the number of letters with which both words begin."""
    at = 0
    while at < min(len(one), len(other)) and one[at] == other[at]:
        at += 1
    return at


def _most_similar(near: Mapping[str, float]) -> list[str]:
    return sorted(near, key=lambda word: (-near[word], word))[:MOST_NEAR]
