"""How long the event loop stands still while a store works; run as a program, on a disk that is slow."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from gateway_sessions import Config, GatewaySessionsError, SessionStore
from gateway_sessions.errors import StorageError
from tests.crash.calls import CALLS, set_the_stage
from tests.crash.stores import SteppedClock
from tests.crash.workload import START

BEAT = 0.005
LONGEST_GAP = 0.1
TRIES = 3
"""A call that blocks the loop does it each time; a machine that is busy elsewhere does not."""


@dataclass(slots=True)
class Heartbeat:
    """The largest gap between two beats, in seconds."""

    largest: float = 0.0


@asynccontextmanager
async def heartbeat() -> AsyncIterator[Heartbeat]:
    """Beat while the block runs."""
    heart = Heartbeat()
    loop = asyncio.get_running_loop()

    async def beat() -> None:
        last = loop.time()
        while True:
            await asyncio.sleep(BEAT)
            now = loop.time()
            heart.largest, last = max(heart.largest, now - last - BEAT), now

    beating = asyncio.create_task(beat())
    try:
        yield heart
    finally:
        beating.cancel()


async def smallest_gap(home: Path, measure: Callable[[Path], Awaitable[float]]) -> float:
    """The least of the largest gaps of a few tries; one that is small enough will do."""
    found: list[float] = []
    while len(found) < TRIES and min(found, default=LONGEST_GAP) >= LONGEST_GAP:
        found.append(await measure(home / f"try-{len(found)}"))
    return min(found)


async def call_everything(store: SessionStore) -> list[str]:
    """Every public call at once; the failures of storage among their outcomes."""
    outcomes = await asyncio.gather(*[call(store) for call in CALLS.values()], return_exceptions=True)
    unknown = [one for one in outcomes if isinstance(one, BaseException)]
    for error in unknown:
        if not isinstance(error, GatewaySessionsError):
            raise error
    return [type(error).__name__ for error in unknown if isinstance(error, StorageError)]


async def measure(home: Path) -> dict[str, object]:
    """Open, use and close a store; the heart beats all the time."""
    clock = SteppedClock(START)
    store = SessionStore.open(home, Config(timezone="UTC"), clock=clock)
    async with heartbeat() as heart, store:
        await set_the_stage(store, clock)
        failures = await call_everything(store)
    return {"largest": heart.largest, "failures": failures}


if __name__ == "__main__":
    answer = asyncio.run(measure(Path(sys.argv[1])))
    os.write(1, json.dumps(answer).encode())
