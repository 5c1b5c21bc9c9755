"""Our own store, used as a gateway would use it: with its default configuration."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Coroutine, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from gateway_sessions import Config, SessionSource, SessionStore
from tests.benchmarks.child import Figures, answer, latencies
from tests.benchmarks.memory import resident_mb
from tests.benchmarks.seeding import seed_lanes, source_of
from tests.benchmarks.stalls import watched_loop


def opened(folder: str) -> Any:
    """The store in that folder, to be entered."""
    return SessionStore.open(Path(folder, "state"), Config())


def messages(lanes: int) -> Iterator[SessionSource]:
    """The origins of message after message, at random over the lanes."""
    choice = random.Random(7)
    while True:
        yield source_of(choice.randrange(lanes))


async def seed(folder: str, lanes: int) -> Figures:
    """Leave a store with that many lanes for another process to open."""
    async with opened(folder) as store:
        await seed_lanes(store, lanes)
    return {}


async def touch(folder: str, lanes: int, operations: int, updating: bool = False) -> Figures:
    """Touch one of the lanes at random, one after the other; *updating*, tell the turn's tokens as well."""
    async with opened(folder) as store:
        coming = messages(lanes)
        measured = []
        for source in islice(coming, 2 * operations):  # the first half warms up
            start = time.perf_counter_ns()
            entry = await store.get_or_create_session(source)
            if updating:
                await store.update_session(entry.session_key, last_prompt_tokens=len(measured))
            measured.append(time.perf_counter_ns() - start)
    return latencies(measured[operations:])


async def at_once(folder: str, lanes: int, together: int, seconds: float) -> Figures:
    """That many lanes, each of which sends its next message when the last was answered."""
    async with opened(folder) as store:
        start = time.perf_counter()

        async def lane(source: SessionSource) -> list[int]:
            measured = []
            while (before := time.perf_counter()) - start < seconds:
                await store.get_or_create_session(source)
                measured.append(int((time.perf_counter() - before) * 1e9))
            return measured

        measured = await asyncio.gather(
            *(lane(source_of(number * lanes // together)) for number in range(together))
        )
        elapsed = time.perf_counter() - start
    every = [one for some in measured for one in some]
    return {"per second": len(every) / elapsed} | latencies(every)


async def opening(folder: str, lanes: int) -> Figures:
    """Open the store and serve one message."""
    source = source_of(lanes // 2)
    start = time.perf_counter()
    async with opened(folder) as store:
        await store.get_or_create_session(source)
        return {"first ms": (time.perf_counter() - start) * 1000}


async def memory(folder: str, lanes: int, operations: int) -> Figures:
    """Open the store, touch some lanes, and look."""
    async with opened(folder) as store:
        for source in islice(messages(lanes), operations):
            await store.get_or_create_session(source)
        return resident_mb()


async def stall(folder: str, lanes: int, together: int, seconds: float) -> Figures:
    """The longest stall while opening, while lanes are touched and the snapshot is written, while closing."""
    coming = messages(lanes)
    async with watched_loop() as watch:
        async with opened(folder) as store:
            opening_ms = watch.read_ms()
            before = snapshot_time(folder)
            until = time.perf_counter() + seconds

            async def work() -> None:
                while time.perf_counter() < until:
                    await store.get_or_create_session(next(coming))

            await asyncio.gather(*(work() for _ in range(together)))
            touching_ms = watch.read_ms()
            written = snapshot_time(folder) != before
            watch.read_ms()
        closing_ms = watch.read_ms()
    longest = {"opening ms": opening_ms, "touching ms": touching_ms, "closing ms": closing_ms}
    return {"stall ms": max(longest.values()), **longest, "snapshot": float(written)}


def snapshot_time(folder: str) -> list[int]:
    """Changes whenever the store has written its snapshot."""
    return [path.stat().st_mtime_ns for path in Path(folder).rglob("sessions.json")]


def in_a_loop(task: Callable[..., Coroutine[Any, Any, Figures]]) -> Callable[..., Figures]:
    return lambda **arguments: asyncio.run(task(**arguments))


if __name__ == "__main__":
    answer({task.__name__: in_a_loop(task) for task in (seed, touch, at_once, opening, memory, stall)})
