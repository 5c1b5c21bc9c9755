"""How well messages fit a query, among those that were found: BM25 with these as the collection.

The same messages get the same order whichever database found them. Words are counted as plain text, in the
beginning of a message only: an order is wanted, not a census.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from gateway_sessions.core.search_query import Query
from gateway_sessions.core.search_text import fold

READ_CHARACTERS: Final = 2_000
"""How much of a message counts."""
SATURATION: Final = 1.2
LENGTH_WEIGHT: Final = 0.75


class Features(NamedTuple):
    """What the order is made from."""

    counts: tuple[int, ...]
    """How often each phrase of the query occurs."""
    length: int


Counter: TypeAlias = Callable[[str], Features]


def counter_of(query: Query) -> Counter:
    """Counts the phrases of a query in a text."""
    wanted = [phrase.tokens for phrase in query.phrases]

    def count(text: str) -> Features:
        folded = fold(text[:READ_CHARACTERS])
        return Features(tuple(min(map(folded.count, tokens)) for tokens in wanted), len(folded))

    return count


def scores(found: Sequence[Features]) -> list[float]:
    """A number for each message; the higher, the better it fits."""
    if not found:
        return []
    total = len(found)
    mean = sum(one.length for one in found) / total or 1.0
    containing = [
        sum(count > 0 for count in column) for column in zip(*(one.counts for one in found), strict=True)
    ]
    weights = [math.log(1 + (total - df + 0.5) / (df + 0.5)) for df in containing]
    result: list[float] = []
    for counts, length in found:
        norm = SATURATION * (1 - LENGTH_WEIGHT + LENGTH_WEIGHT * length / mean)
        result.append(
            sum(
                weight * count * (SATURATION + 1) / (count + norm)
                for weight, count in zip(weights, counts, strict=True)
                if count
            )
        )
    return result
