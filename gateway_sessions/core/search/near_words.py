"""Spelling tolerance: words that share trigrams with a searched word or differ from it by one slip.

Two words are alike if they share enough groups of three letters, counted as `pg_trgm` does, or if one slip
makes one of the other: a letter too many, too few or another one, or two that changed places.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

SHORTEST: Final = 4
"""Letters. Shorter words have too many others that are like them."""
ALIKE: Final = 0.3
"""The share of common groups among all groups of two words; that of `pg_trgm`."""
ONE_SLIP: Final = 0.5
"""What one slip counts at least."""
MOST_NEAR: Final = 20
"""So many words like one are looked for as well, the likest."""
MOST_READ: Final = 200_000
"""So many different words are compared, no more."""
_GROUP: Final = 3


class NearWords:
    """Collects the words of texts that are like some words."""

    def __init__(self, words: Iterable[str]) -> None:
        self._wanted = {one: groups(one) for one in words if can_be_missed(one)}
        self._near: dict[str, dict[str, float]] = {one: {} for one in self._wanted}
        self._read: set[str] = set()

    @property
    def is_full(self) -> bool:
        """Whether no further words are compared."""
        return len(self._read) >= MOST_READ

    def read(self, words: Collection[str]) -> None:
        """Compare these words, those among them that were not compared yet."""
        if self.is_full:
            return
        for word in set(words) - self._read:
            if can_be_missed(word):
                self._compare(word)
        self._read.update(words)

    @property
    def found(self) -> Mapping[str, tuple[str, ...]]:
        """For each word that has any, the words that are like it, the likest first."""
        return {word: tuple(_likest(near)) for word, near in self._near.items() if near}

    def _compare(self, word: str) -> None:
        own = groups(word)
        for wanted, theirs in self._wanted.items():
            common = len(own & theirs)
            if common and word != wanted:
                share = common / (len(own) + len(theirs) - common)
                likeness = max(share, ONE_SLIP) if is_one_slip(word, wanted) else share
                if likeness >= ALIKE:
                    self._near[wanted][word] = likeness


def can_be_missed(word: str) -> bool:
    """Whether words like this one say something of it: of short words, and of numbers, they do not."""
    return len(word) >= SHORTEST and not word.isdecimal()


def groups(word: str) -> frozenset[str]:
    """The groups of three letters of a word; it begins after two spaces and ends before one."""
    padded = f"  {word} "
    return frozenset(padded[at : at + _GROUP] for at in range(len(padded) - _GROUP + 1))


def is_one_slip(one: str, other: str) -> bool:
    """Whether a single slip makes one word of the other."""
    if abs(len(one) - len(other)) > 1:
        return False
    start = _common(one, other)
    end = _common(one[start:][::-1], other[start:][::-1])
    one, other = one[start : len(one) - end], other[start : len(other) - end]
    return max(len(one), len(other)) <= 1 or (len(one) == len(other) == len("ab") and one == other[::-1])


def _common(one: str, other: str) -> int:
    """With how many letters both begin."""
    at = 0
    while at < min(len(one), len(other)) and one[at] == other[at]:
        at += 1
    return at


def _likest(near: Mapping[str, float]) -> list[str]:
    return sorted(near, key=lambda word: (-near[word], word))[:MOST_NEAR]
