"""Procrastinate at locked, ordered jobs: its lock is a lane, which has one job at a time, in order."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from typing import Any
from urllib.parse import urlsplit

import procrastinate  # type: ignore[import-not-found]  # only in the peer's environment
import psycopg  # type: ignore[import-not-found]  # only in the peer's environment

SERVER = os.environ.get("GATEWAY_SESSIONS_POSTGRESQL", "postgresql://postgres@127.0.0.1:5432/postgres")
CONNECTIONS = 8
Figures = dict[str, float]


def latencies(nanoseconds: list[int]) -> Figures:
    ordered = sorted(nanoseconds)
    shares = (("p50 ms", 0.5), ("p99 ms", 0.99))
    return {name: ordered[int(len(ordered) * share)] / 1e6 for name, share in shares}


async def enqueue(task: Any, lanes: int, each: int) -> Figures:
    """All lanes write at once, each one message after another."""
    measured: list[int] = []

    async def write(lane: int) -> None:
        for number in range(each):
            before = time.perf_counter_ns()
            await task.configure(lock=f"p{lane}").defer_async(number=number, text="x" * 200)
            measured.append(time.perf_counter_ns() - before)

    start = time.perf_counter()
    await asyncio.gather(*(write(lane) for lane in range(lanes)))
    return {"per second": len(measured) / (time.perf_counter() - start)} | latencies(measured)


async def queue(address: str, lanes: int, each: int) -> Figures:
    """Messages come in on all lanes at once; then a worker does one job after another on each."""
    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=address, max_size=CONNECTIONS))
    done = 0

    @app.task(name="turn")
    async def turn(number: int, text: str) -> None:
        nonlocal done
        done += 1

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        figures = {"enqueue": await enqueue(turn, lanes, each)}
        start = time.perf_counter()
        await app.run_worker_async(
            wait=False, concurrency=lanes, install_signal_handlers=False, listen_notify=False
        )
        figures["turns"] = {"per second": done / (time.perf_counter() - start)}
    assert done == lanes * each, f"{done} jobs were done"
    return {f"{kind}: {name}": value for kind, some in figures.items() for name, value in some.items()}


def main() -> None:
    """The last line of output is the figures."""
    task = json.loads(sys.argv[1])
    name = f"gateway_sessions_bench_{os.getpid()}"
    with psycopg.connect(SERVER, autocommit=True) as admin:
        admin.execute(f'CREATE DATABASE "{name}" TEMPLATE template0')
        try:
            address = urlsplit(SERVER)._replace(path=f"/{name}").geturl()
            print(json.dumps(asyncio.run(queue(address, task["lanes"], task["each"]))))
        finally:
            admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


if __name__ == "__main__":
    main()
