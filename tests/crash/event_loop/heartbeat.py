"""How long the event loop stands still while a store works; run as a program, on a disk that is slow.

A machine that is busy elsewhere lets every program stand still now and then, for longer than any limit that
could be set. So of the time between two beats only that counts in which something was done: by what the loop
runs, whether it computes or waits for the disk, or by any thread, which may have kept the loop from going on.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from gateway_sessions import Config, GatewaySessionsError, SessionStore
from gateway_sessions.errors import StorageError
from tests.crash.kills.store_workload import START
from tests.crash.store_calls import CALLS, prepare_for_call
from tests.crash.stores import SteppedClock

BEAT = 0.005
LONGEST_GAP = 0.1
TRIES = 3
"""A call that blocks the loop does it each time; what else happens on a machine does not."""


@dataclass(slots=True)
class Heartbeat:
    """The largest gap between two beats that was of this program's own making, in seconds."""

    largest: float = 0.0


class Beat(NamedTuple):
    """When it was, and what had been used until then, in seconds."""

    at: float
    idle: float
    """The loop had nothing to do."""
    worked: float
    """The processor worked for this program, in any thread."""

    def gap_until(self, later: Beat) -> float:
        """For how long the loop was kept from beating."""
        late = later.at - self.at - BEAT
        busy = (later.at - self.at) - (later.idle - self.idle)
        return min(late, max(busy, later.worked - self.worked))


@dataclass(slots=True)
class Idle:
    """How long a loop has had nothing to do, in seconds."""

    seconds: float = 0.0


@contextmanager
def noticing_idleness(loop: asyncio.AbstractEventLoop) -> Iterator[Idle]:
    """Whenever it has nothing to do, a loop asks its selector to wait."""
    selector, idle = loop._selector, Idle()  # type: ignore[attr-defined]  # noqa: SLF001 -- nobody else knows
    select = selector.select

    def noticed(timeout: float | None = None) -> object:
        begun = time.perf_counter()
        try:
            return select(timeout)
        finally:
            idle.seconds += time.perf_counter() - begun

    selector.select = noticed
    try:
        yield idle
    finally:
        del selector.select


@asynccontextmanager
async def heartbeat() -> AsyncIterator[Heartbeat]:
    """Beat while the block runs."""
    heart = Heartbeat()

    async def beat() -> None:
        last = now()
        while True:
            await asyncio.sleep(BEAT)
            this = now()
            heart.largest, last = max(heart.largest, last.gap_until(this)), this

    def now() -> Beat:
        return Beat(time.perf_counter(), idle.seconds, time.process_time())

    with noticing_idleness(asyncio.get_running_loop()) as idle:
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
        await prepare_for_call(store, clock)
        failures = await call_everything(store)
    return {"largest": heart.largest, "failures": failures}


if __name__ == "__main__":
    answer = asyncio.run(measure(Path(sys.argv[1])))
    os.write(1, json.dumps(answer).encode())
