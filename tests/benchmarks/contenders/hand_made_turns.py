"""What a program with an event loop would write itself: the bare rows through aiosqlite, one by one."""

from __future__ import annotations

import asyncio
import itertools
import time
from pathlib import Path

import aiosqlite

from tests.benchmarks import corpus
from tests.benchmarks.child import Figures, answer
from tests.benchmarks.contenders.bare import key
from tests.benchmarks.contenders.bare_turns import commits_of_turn, filled
from tests.benchmarks.message_timing import rate
from tests.benchmarks.stalls import watched_loop


class Keeper:
    """One connection, which one transaction at a time may use."""

    def __init__(self, database: aiosqlite.Connection) -> None:
        self._database = database
        self._alone = asyncio.Lock()

    async def turn(self, lane: str, said: str, answered: str) -> None:
        """Write what a turn leaves."""
        for changes in commits_of_turn(lane, said, answered):
            async with self._alone:
                await self._database.execute("BEGIN IMMEDIATE")
                for sql, parameters in changes:
                    await self._database.execute(sql, parameters)
                await self._database.execute("COMMIT")


async def one_lane(folder: str, operations: int) -> Figures:
    """One turn after another on one lane, after as many to warm up."""
    texts = itertools.cycle(corpus.said(1_000))
    measured = []
    filled(folder, 1).close()
    async with aiosqlite.connect(Path(folder, "bare.db"), isolation_level=None) as database:
        await database.execute("PRAGMA synchronous = FULL")
        keeper = Keeper(database)
        for _ in range(2 * operations):
            text = next(texts)
            start = time.perf_counter_ns()
            await keeper.turn(key(0), text, text)
            measured.append(time.perf_counter_ns() - start)
    return rate(measured[operations:])


async def at_once(folder: str, together: int, lanes: int, seconds: float) -> Figures:
    """Each of these lanes has a turn when the one before is written."""
    texts = corpus.said(1_000)
    measured: list[int] = []
    filled(folder, lanes).close()
    async with aiosqlite.connect(Path(folder, "bare.db"), isolation_level=None) as database:
        await database.execute("PRAGMA synchronous = FULL")
        keeper = Keeper(database)
        async with watched_loop() as watch:
            start = time.perf_counter()

            async def lane(number: int) -> None:
                coming = itertools.cycle(texts[number:])
                while (before := time.perf_counter()) - start < seconds:
                    text = next(coming)
                    await keeper.turn(key(number), text, text)
                    measured.append(int((time.perf_counter() - before) * 1e9))

            await asyncio.gather(*(lane(number) for number in range(together)))
            elapsed, stall = time.perf_counter() - start, watch.read_ms()
    return rate(measured) | {"per second": len(measured) / elapsed, "stall ms": stall}


if __name__ == "__main__":
    answer(
        {
            "one_lane": lambda **task: asyncio.run(one_lane(**task)),
            "at_once": lambda **task: asyncio.run(at_once(**task)),
        }
    )
