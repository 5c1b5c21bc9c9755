"""Our search beside a burst: many messages come in at once and are indexed while somebody searches on."""

from __future__ import annotations

import asyncio
import itertools
import statistics
import time
from collections.abc import Iterator
from typing import Final, NamedTuple

from gateway_sessions import SessionDB
from tests.benchmarks import corpus
from tests.benchmarks.child import Figures, answer, latencies
from tests.benchmarks.contenders.our_transcripts import EVERYTHING, opened, seed_search
from tests.benchmarks.contenders.ours import in_a_loop
from tests.benchmarks.searching import APPENDED, INDEXED, INDEXING
from tests.benchmarks.stalls import Watch, watched_loop

KINDS: Final = (corpus.COMMON, corpus.RARE, corpus.PHRASE, corpus.TWO_WORDS, corpus.CHINESE)
PAUSE: Final = 0.01
"""Between two searches: the index is polite to searches, and would wait for one that never ends."""
QUIET: Final = 10
"""So many searches of each kind are made before the burst, and after it."""


class Asked(NamedTuple):
    """A search, and how long it took."""

    kind: str
    nanoseconds: int


class Searcher:
    """Searches for one thing after another, and keeps the times by what went on meanwhile."""

    def __init__(self, database: SessionDB, questions: Iterator[tuple[str, str]]) -> None:
        self._database = database
        self._questions = questions
        self.times: dict[str, list[Asked]] = {APPENDED: [], INDEXING: [], INDEXED: []}

    async def ask(self, phase: str) -> None:
        """Search for the next thing; nothing may be missing from the answer."""
        kind, text = next(self._questions)
        start = time.perf_counter_ns()
        result = await self._database.search_messages(text, scope=EVERYTHING)
        self.times[phase].append(Asked(kind, time.perf_counter_ns() - start))
        assert not result.degraded, result.problem
        await asyncio.sleep(PAUSE)

    def figures(self) -> Figures:
        """The times of each phase, and how many times as long as once indexed the same kind has taken."""
        alone = {
            kind: statistics.median(one.nanoseconds for one in self.times[INDEXED] if one.kind == kind)
            for kind in KINDS
        }
        found: Figures = {}
        for phase, some in self.times.items():
            if not some:  # the index was quick
                continue
            slowest = max(some, key=lambda one: one.nanoseconds)
            ratios = [one.nanoseconds / alone[one.kind] for one in some]
            figures = latencies([one.nanoseconds for one in some]) | {
                "slowest ms": slowest.nanoseconds / 1e6,
                "x indexed": statistics.median(ratios),
                "slowest x indexed": slowest.nanoseconds / alone[slowest.kind],
                "searches": len(some),
            }
            found |= {f"{phase}: {name}": value for name, value in figures.items()}
        return found


async def beside(folder: str, messages: int, together: int) -> Figures:
    """Search while so many messages come in from some sessions, and until the index has them all."""
    asked = corpus.read_questions(folder)
    by_turns = zip(*([(kind, one.text) for one in asked[kind]] for kind in KINDS), strict=True)
    questions = itertools.cycle(itertools.chain.from_iterable(by_turns))
    texts = corpus.said(messages)
    stalls: Figures = {}
    async with opened(folder) as database:
        searcher = Searcher(database, questions)
        await database.catch_up_search_index()
        for _ in range(QUIET * len(KINDS)):
            await searcher.ask(INDEXED)
        async with watched_loop() as watch:
            last = await _search_beside(asyncio.ensure_future(burst(database, texts, together)), searcher)
            stalls[f"{APPENDED}: stall ms"] = watch.read_ms()
            stalls |= await _search_until_indexed(database, last, searcher, watch)
        for _ in range(QUIET * len(KINDS)):
            await searcher.ask(INDEXED)
    return searcher.figures() | stalls


async def _search_beside(coming: asyncio.Future[int], searcher: Searcher) -> int:
    while not coming.done():
        await searcher.ask(APPENDED)
    return await coming


async def _search_until_indexed(database: SessionDB, last: int, searcher: Searcher, watch: Watch) -> Figures:
    start = time.perf_counter()
    while database.search_index.watermark < last:
        await searcher.ask(INDEXING)
    return {f"{INDEXING}: stall ms": watch.read_ms(), f"{INDEXING}: s": time.perf_counter() - start}


async def burst(database: SessionDB, texts: list[str], together: int) -> int:
    """Say all this in as many sessions at once, one message after another in each; the last message's id."""
    coming = enumerate(texts)
    ids = [0]

    async def lane(name: str) -> None:
        for number, text in coming:
            ids.append(await database.append_message(name, corpus.role_of(number), text))

    names = [f"burst_{number}" for number in range(together)]
    for name in names:
        await database.create_session(name, "telegram", user_id=name)
    await asyncio.gather(*map(lane, names))
    return max(ids)


if __name__ == "__main__":
    answer({task.__name__: in_a_loop(task) for task in (seed_search, beside)})
