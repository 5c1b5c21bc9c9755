"""The peer at the same work as our store: it runs in its own environment."""

from __future__ import annotations

import asyncio
import os
import random
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.benchmarks.child import Figures, answer, latencies
from tests.benchmarks.memory import resident_mb
from tests.benchmarks.stalls import watched_loop

NEVER = {"mode": "none"}


def filled(folder: str, lanes: int) -> Any:
    """The peer's store over a file with that many lanes. It reads its home at import, so that comes first."""
    os.environ["HERMES_HOME"] = folder
    from tests.benchmarks.peers.hermes_store import open_store, stored_entry  # noqa: PLC0415

    now = datetime.now()  # noqa: DTZ005  # the peer is naive
    entries = (stored_entry(str(number), now) for number in range(lanes))
    return open_store(Path(folder, "sessions"), entries, NEVER)


def source_of(number: int) -> Any:
    from tests.benchmarks.peers.hermes_store import direct_chat  # noqa: PLC0415

    return direct_chat(str(number))


def touch(folder: str, lanes: int, operations: int) -> Figures:
    """Touch one of the lanes at random, by a direct call."""
    store = filled(folder, lanes)
    choice = random.Random(7)
    store.get_or_create_session(source_of(0))
    measured = []
    for _ in range(operations):
        source = source_of(choice.randrange(lanes))
        start = time.perf_counter_ns()
        store.get_or_create_session(source)
        measured.append(time.perf_counter_ns() - start)
    return latencies(measured)


def seed(folder: str, lanes: int) -> Figures:
    """Leave a home that the peer itself has written, for another process to open."""
    filled(folder, lanes).get_or_create_session(source_of(0))
    return {}


def memory(folder: str, operations: int) -> Figures:
    """Open that home, touch some lanes, and look."""
    os.environ["HERMES_HOME"] = folder
    from tests.benchmarks.peers.hermes_store import reopened_store  # noqa: PLC0415

    store = reopened_store(Path(folder, "sessions"), NEVER)
    for number in range(operations):
        store.get_or_create_session(source_of(number))
    return resident_mb()


def at_once(folder: str, lanes: int, together: int, operations: int) -> Figures:
    """Touches of that many lanes at once, through the peer's own threads."""
    return asyncio.run(touched_at_once(filled(folder, lanes), lanes // together, together, operations))


async def touched_at_once(store: Any, apart: int, together: int, operations: int) -> Figures:
    from gateway.session import AsyncSessionStore  # type: ignore[import-not-found]  # noqa: PLC0415

    facade = AsyncSessionStore(store)
    await facade.get_or_create_session(source_of(0))
    coming, measured = iter(range(operations)), list[int]()

    async def lane(source: Any) -> None:
        for _ in coming:
            before = time.perf_counter_ns()
            await facade.get_or_create_session(source)
            measured.append(time.perf_counter_ns() - before)

    start = time.perf_counter()
    await asyncio.gather(*(lane(source_of(number * apart)) for number in range(together)))
    return {"per second": len(measured) / (time.perf_counter() - start)} | latencies(measured)


def opening(folder: str, lanes: int) -> Figures:
    """Open a home that the peer itself has written, and serve one message."""
    filled(folder, lanes).get_or_create_session(source_of(0))
    from tests.benchmarks.peers.hermes_store import reopened_store  # noqa: PLC0415

    start = time.perf_counter()
    reopened_store(Path(folder, "sessions"), NEVER).get_or_create_session(source_of(lanes // 2))
    return {"first ms": (time.perf_counter() - start) * 1000}


def stall(folder: str, lanes: int, seconds: float) -> Figures:
    """The longest stall of the loop while lanes are touched through the peer's own threads."""
    return asyncio.run(stalled(filled(folder, lanes), lanes, seconds))


async def stalled(store: Any, lanes: int, seconds: float) -> Figures:
    from gateway.session import AsyncSessionStore  # type: ignore[import-not-found]  # noqa: PLC0415

    facade = AsyncSessionStore(store)
    choice = random.Random(7)
    await facade.get_or_create_session(source_of(0))
    async with watched_loop() as watch:
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            await facade.get_or_create_session(source_of(choice.randrange(lanes)))
        return {"stall ms": watch.read_ms()}


if __name__ == "__main__":
    tasks = (seed, touch, at_once, opening, memory, stall)
    answer({task.__name__: task for task in tasks})
