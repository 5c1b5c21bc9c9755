"""Procrastinate at locked, ordered jobs: its lock is a lane, which has one job at a time, in order."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import procrastinate  # type: ignore[import-not-found]  # only in the peer's environment
import psycopg  # type: ignore[import-not-found]  # only in the peer's environment

SERVER = os.environ.get("GATEWAY_SESSIONS_POSTGRESQL", "postgresql://postgres@127.0.0.1:5432/postgres")
CONNECTIONS = 8
TEXT = "x" * 200
IDLE_LANES = """
    INSERT INTO procrastinate_jobs (queue_name, task_name, lock, args, status, attempts)
        SELECT 'default', 'turn', 'idle-' || n, jsonb_build_object('lane', 0, 'number', n, 'text', %s::text),
            'succeeded', 1 FROM generate_series(1, %s) AS n
"""
"""What lanes leave that nobody uses any more: one job each, which was done."""
WAITING = """
    INSERT INTO procrastinate_jobs (queue_name, task_name, lock, args)
        SELECT 'default', 'turn', 'p0', jsonb_build_object('lane', 0, 'number', n, 'text', %s::text)
            FROM generate_series(1, %s) AS n
"""
Figures = dict[str, float]


def latencies(nanoseconds: list[int]) -> Figures:
    ordered = sorted(nanoseconds)
    shares = (("p50 ms", 0.5), ("p99 ms", 0.99))
    return {name: ordered[int(len(ordered) * share)] / 1e6 for name, share in shares}


class Turns:
    """Notes when jobs begin: on a lane that has more of them, a turn lasts until the next one begins."""

    def __init__(self) -> None:
        self.begin(0)

    def begin(self, enough: int) -> None:
        self._begun: dict[int, int] = {}
        self._left = enough
        self.measured: list[int] = []
        self.enough = asyncio.Event()

    def note(self, lane: int) -> None:
        now = time.perf_counter_ns()
        if lane in self._begun:
            self.measured.append(now - self._begun[lane])
        self._begun[lane] = now
        self._left -= 1
        if self._left < 0:
            self.enough.set()


class Peer:
    """An application with one kind of job."""

    def __init__(self, address: str) -> None:
        connector = procrastinate.PsycopgConnector(conninfo=address, max_size=CONNECTIONS)
        self.app = procrastinate.App(connector=connector)
        self.noted = noted = Turns()

        @self.app.task(name="turn")
        async def turn(lane: int, number: int, text: str) -> None:
            noted.note(lane)

        self._turn = turn

    async def enqueue(self, lanes: int, each: int) -> Figures:
        """All lanes write at once, each one message after another."""
        measured: list[int] = []

        async def write(lane: int) -> None:
            for number in range(each):
                before = time.perf_counter_ns()
                job = self._turn.configure(lock=f"p{lane}")
                await job.defer_async(lane=lane, number=number, text=TEXT)
                measured.append(time.perf_counter_ns() - before)

        start = time.perf_counter()
        await asyncio.gather(*(write(lane) for lane in range(lanes)))
        return {"per second": len(measured) / (time.perf_counter() - start)} | latencies(measured)

    async def turns(self, lanes: int, count: int, *, more: bool = False) -> Figures:
        """A worker does one job after another on each lane, so many in all; *more*: others wait behind."""
        self.noted.begin(count if more else sys.maxsize)
        start = time.perf_counter()
        working = asyncio.create_task(
            self.app.run_worker_async(
                wait=False, concurrency=lanes, install_signal_handlers=False, listen_notify=False
            )
        )
        enough = asyncio.create_task(self.noted.enough.wait())
        await asyncio.wait({working, enough}, return_when=asyncio.FIRST_COMPLETED)
        seconds = time.perf_counter() - start
        for one in (enough, working):
            one.cancel()
            with suppress(asyncio.CancelledError):
                await one
        assert len(self.noted.measured) >= count - lanes, f"{len(self.noted.measured)} jobs were measured"
        return {"per second": count / seconds} | latencies(self.noted.measured)


@asynccontextmanager
async def opened(address: str) -> AsyncGenerator[Peer]:
    peer = Peer(address)
    async with peer.app.open_async():
        await peer.app.schema_manager.apply_schema_async()
        yield peer


async def queue(address: str, lanes: int, each: int, idle: int = 0) -> Figures:
    """Messages come in on all lanes at once; then a worker does one job after another on each."""
    async with opened(address) as peer:
        if idle:
            fill(address, IDLE_LANES, idle)
        figures = {
            "enqueue": await peer.enqueue(lanes, each),
            "turns": await peer.turns(lanes, lanes * each),
        }
    return {f"{kind}: {name}": value for kind, some in figures.items() for name, value in some.items()}


async def backlog(address: str, waiting: int, each: int) -> Figures:
    """One lane on which so many messages wait: more come in, and then as many have their turn."""
    async with opened(address) as peer:
        await peer.enqueue(1, 1)
        before = {"enqueue": await peer.enqueue(1, each), "turns": await peer.turns(1, each, more=True)}
        fill(address, WAITING, waiting)
        after = {"enqueue": await peer.enqueue(1, each), "turns": await peer.turns(1, each, more=True)}
    figures = {f"{kind}: {name}": value for kind, some in after.items() for name, value in some.items()}
    slower = {kind: some["p50 ms"] / before[kind]["p50 ms"] for kind, some in after.items()}
    return figures | {f"{kind}: slower": ratio for kind, ratio in slower.items()}


def fill(address: str, statement: str, count: int) -> None:
    """Past its methods, which would take longer than what is measured."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(statement, (TEXT, count))
        connection.execute("VACUUM ANALYZE")


def main() -> None:
    """The last line of output is the figures."""
    task = json.loads(sys.argv[1])
    tasks: dict[str, Callable[..., Coroutine[Any, Any, Figures]]] = {"queue": queue, "backlog": backlog}
    do, _ = tasks[task.pop("do")], task.pop("folder")
    name = f"gateway_sessions_bench_{os.getpid()}"
    with psycopg.connect(SERVER, autocommit=True) as admin:
        admin.execute(f'CREATE DATABASE "{name}" TEMPLATE template0')
        try:
            address = urlsplit(SERVER)._replace(path=f"/{name}").geturl()
            print(json.dumps(asyncio.run(do(address, **task))))
        finally:
            admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


if __name__ == "__main__":
    main()
