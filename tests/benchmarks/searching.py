"""Times searches of every kind, and compares what they find with what a look at every text finds.

Nothing of ours is imported here: the peer is measured in the same way.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from tests.benchmarks.child import Figures, latencies
from tests.benchmarks.corpus import MOST_COMPARED, Question

Questions = dict[str, list[Question]]
APPENDED, INDEXING, INDEXED = "while messages come in", "while they are indexed", "once they are indexed"
"""What a search is asked beside."""


@dataclass(frozen=True)
class Answer:
    """The messages that were found, by their numbers, the newest first."""

    numbers: list[int]
    admits_gaps: bool = False
    """Whether the answer itself says that something may be missing."""


async def timed(asked: Questions, times: int, ask: Callable[[str, str], Awaitable[object]]) -> Figures:
    """How long the answers took, kind by kind; each question is asked that often, after one to warm up."""
    figures: Figures = {}
    for kind, some in asked.items():
        await ask(kind, some[0].text)
        measured = []
        for question in [*some] * times:
            start = time.perf_counter_ns()
            await ask(kind, question.text)
            measured.append(time.perf_counter_ns() - start)
        figures |= {f"{kind}: {name}": value for name, value in latencies(measured).items()}
    return figures


async def compared(
    asked: Questions, ask: Callable[[str, str, int], Awaitable[Answer]], *, must_fit: bool = False
) -> Figures:
    """Of each kind, which share of what the scan finds was found; with *must_fit*, anything else raises."""
    figures: Figures = {}
    for kind, some in asked.items():
        shares = []
        for text, newest in some:
            if newest is not None:
                found = await ask(kind, text, MOST_COMPARED)
                shares.append(share(newest, found.numbers))
                if must_fit:
                    check(text, newest, found)
        figures[f"{kind}: found %"] = 100 * sum(shares) / len(shares)
    return figures


def share(wanted: list[int], found: Iterable[int]) -> float:
    """How much of what is wanted was found."""
    return len(set(wanted) & set(found)) / len(wanted) if wanted else 1.0


def check(text: str, wanted: list[int], answer: Answer) -> None:
    """Raise unless the answer is the scan's, or is a part of it and says so."""
    extra, missing = set(answer.numbers) - set(wanted), set(wanted) - set(answer.numbers)
    if extra or (missing and not answer.admits_gaps):
        problem = f"{text!r}: {len(extra)} messages too many and {len(missing)} too few of {len(wanted)}"
        raise AssertionError(problem)
