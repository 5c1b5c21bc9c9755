"""BM25 scores of the messages that a search found, the same for every database.

Equal messages get equal scores whichever database found them. Phrases are counted as plain text, and only in
the beginning of a message: an estimate is enough for an order.
"""

from __future__ import annotations

import collections
import math
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import msgspec

from gateway_sessions.core.search.query import Phrase, SearchQuery
from gateway_sessions.core.search.stems import FORM
from gateway_sessions.core.search.tokenizer import fold

READ_CHARACTERS: Final = 2_000
"""The characters of a message in which phrases are counted."""
SATURATION: Final = 1.2
"""The usual k1 of BM25: how fast further occurrences stop counting."""
LENGTH_WEIGHT: Final = 0.75


class ScoreFeatures(msgspec.Struct, frozen=True, gc=False):
    """The numbers that a score is made from."""

    counts: tuple[int, ...]
    """The number of occurrences of each phrase of the query."""
    length: int
    """The length of the counted text, in characters."""


Counter: TypeAlias = Callable[[Sequence[str]], list[ScoreFeatures]]


def feature_counter(query: SearchQuery) -> Counter:
    """Return a counter of a query's phrases in texts.

    It counts column by column, so that each step of Python goes through thousands of texts.
    """
    phrases = query.phrases

    def count(texts: Sequence[str]) -> list[ScoreFeatures]:
        folded = [fold(text[:READ_CHARACTERS]) for text in texts]
        columns = (_phrase_counts(phrase, folded) for phrase in phrases)
        return list(map(ScoreFeatures, zip(*columns, strict=True), map(len, folded)))

    return count


def bm25_scores(found: Sequence[ScoreFeatures]) -> list[float]:
    """Return the score of each message; the higher, the better the match."""
    if not found:
        return []
    kinds = collections.Counter(found)  # many messages have equal features, so each score is computed once
    total = len(found)
    mean = sum(one.length * times for one, times in kinds.items()) / total or 1.0
    containing = [
        sum(times for one, times in kinds.items() if one.counts[at]) for at in range(len(found[0].counts))
    ]
    weights = [math.log(1 + (total - df + 0.5) / (df + 0.5)) for df in containing]
    known = {one: _bm25_score(one, weights, mean) for one in kinds}
    return [known[one] for one in found]


def _phrase_counts(phrase: Phrase, texts: Sequence[str]) -> list[int]:
    """Return the number of occurrences of a phrase in each text.

    A word counts twice where it stands as written in the query: most forms of a word begin with its stem, and
    so does the word itself.
    """
    columns = [_least_counts(phrase.tokens, texts)]
    columns += [[text.count(other) for text in texts] for other in _written_form(phrase)]
    return list(map(sum, zip(*columns, strict=True))) if phrase.others else columns[0]


def _written_form(phrase: Phrase) -> set[str]:
    return {other.removeprefix(FORM) for other in phrase.others}


def _least_counts(tokens: Sequence[str], texts: Sequence[str]) -> list[int]:
    """Return the number of occurrences of the rarest token in each text."""
    first, *others = ([text.count(token) for text in texts] for token in tokens)
    return list(map(min, first, *others)) if others else first


def _bm25_score(one: ScoreFeatures, weights: Sequence[float], mean: float) -> float:
    norm = SATURATION * (1 - LENGTH_WEIGHT + LENGTH_WEIGHT * one.length / mean)
    return sum(
        weight * count * (SATURATION + 1) / (count + norm)
        for weight, count in zip(weights, one.counts, strict=True)
        if count
    )
