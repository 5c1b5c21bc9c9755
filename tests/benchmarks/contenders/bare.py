"""The bare machine: the standard library's `sqlite3`, fully durable; an idle loop."""

from __future__ import annotations

import asyncio
import itertools
import random
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from tests.benchmarks.child import Figures, answer, latencies
from tests.benchmarks.stalls import watched_loop

BODY = "x" * 400  # about what an entry takes
UPDATE = "UPDATE lane SET updated_at = ?, body = ? WHERE session_key = ?"


def filled(folder: str, lanes: int) -> sqlite3.Connection:
    """A database with one row per lane."""
    database = connected(folder)
    database.execute(
        "CREATE TABLE lane (session_key TEXT PRIMARY KEY, updated_at INTEGER, body TEXT) WITHOUT ROWID"
    )
    database.execute("BEGIN")
    database.executemany(
        "INSERT INTO lane VALUES (?, 0, ?)", ((key(number), BODY) for number in range(lanes))
    )
    database.execute("COMMIT")
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return database


def connected(folder: str) -> sqlite3.Connection:
    database = sqlite3.connect(Path(folder, "bare.db"), isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    return database


def key(number: int) -> str:
    return f"agent:main:telegram:dm:{100_000 + number}"


def commit(database: sqlite3.Connection, number: int) -> None:
    """One row, one transaction."""
    database.execute("BEGIN IMMEDIATE")
    database.execute(UPDATE, (time.monotonic_ns(), BODY, key(number)))
    database.execute("COMMIT")


def touch(folder: str, lanes: int, operations: int) -> Figures:
    """Update one of the lanes at random, one commit each."""
    choice = random.Random(7)
    measured = []
    with closing(filled(folder, lanes)) as database:
        for _ in range(operations):  # until the write-ahead log has reached its size and is reused
            commit(database, choice.randrange(lanes))
        for _ in range(operations):
            number = choice.randrange(lanes)
            start = time.perf_counter_ns()
            commit(database, number)
            measured.append(time.perf_counter_ns() - start)
    return latencies(measured)


def at_once(folder: str, lanes: int, together: int, seconds: float) -> Figures:
    """Serve that many lanes in turn from one loop, one commit each."""
    with closing(filled(folder, lanes)) as database:
        start = time.perf_counter()
        for done in itertools.count(1):
            commit(database, done % together)
            if (elapsed := time.perf_counter() - start) > seconds:
                break
    return {"per second": done / elapsed}


def seed(folder: str, lanes: int) -> Figures:
    """Leave a database for another process to open."""
    filled(folder, lanes).close()
    return {}


def opening(folder: str) -> Figures:
    """Open the database and serve one lane."""
    start = time.perf_counter()
    with closing(connected(folder)) as database:
        commit(database, 77)
        return {"first ms": (time.perf_counter() - start) * 1000}


def stall(folder: str, seconds: float) -> Figures:
    """An event loop with nothing to do: what the watch sees of the machine itself."""
    assert folder
    return asyncio.run(idle(seconds))


async def idle(seconds: float) -> Figures:
    async with watched_loop() as watch:
        await asyncio.sleep(seconds)
        return {"stall ms": watch.read_ms()}


if __name__ == "__main__":
    answer(
        {
            "touch": touch,
            "at_once": at_once,
            "seed": seed,
            "opening": opening,
            "stall": stall,
        }
    )
