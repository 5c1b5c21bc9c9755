"""`python -m tests.benchmarks.moving [--sessions N] [--messages M] [--server NAME]`: a store moves, and back.

Prints how many rows a second go to PostgreSQL and to MariaDB or MySQL, with everything checked on both sides,
and the memory that it takes: for a tenth of the sessions first, to show that it does not grow with them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path
from typing import Any, Final

from gateway_sessions import SessionDB
from tests import mysql, postgresql

SERVERS: Final[dict[str, Callable[[], AbstractAsyncContextManager[str]]]] = {
    "postgresql": postgresql.empty_database,
    "mysql": mysql.empty_database,
}
"""By the name of their kind: an empty database, which is gone afterwards."""
TEXT: Final = "the quick brown fox jumps over the lazy dog, " * 5
MOVES: Final = """
import asyncio, json, sys, time
from gateway_sessions.operator import migrate_store
from tests.benchmarks.memory import resident_mb
begun = time.process_time()
at_rest = resident_mb()["resident MB"]
report = asyncio.run(migrate_store(sys.argv[1], sys.argv[2]))
print(json.dumps({"rows": sum(report.rows.values()), "seconds": report.seconds, "said": str(report),
                  "cpu": time.process_time() - begun, "mb": resident_mb()["peak MB"] - at_rest}))
"""
ROOT: Final = Path(__file__).parents[2]


def seed(path: Path, sessions: int, messages: int) -> None:
    """Fill a store past its methods, which would take longer than what is measured."""
    asyncio.run(_make(path))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany(
            "INSERT INTO sessions (session_id, owner, source, started_at) VALUES (?, 'main', 'cli', ?)",
            ((f"20260101_000000_{number:08x}", number) for number in range(sessions)),
        )
        connection.executemany(
            "INSERT INTO totals (session_id, last_active, last_seq, message_count) VALUES (?, ?, ?, ?)",
            ((f"20260101_000000_{number:08x}", number, messages, messages) for number in range(sessions)),
        )
        connection.executemany(
            "INSERT INTO messages (message_id, session_id, seq, role, content, sent_at)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            _messages(sessions, messages),
        )


async def _make(path: Path) -> None:
    async with SessionDB.open(path):
        pass


def _messages(sessions: int, messages: int) -> Iterator[tuple[Any, ...]]:
    for number in range(sessions):
        for seq in range(1, messages + 1):
            key = number * messages + seq
            yield key, f"20260101_000000_{number:08x}", seq, "user", f"{key} {TEXT}", key


def moved(source: str | Path, target: str | Path) -> dict[str, Any]:
    """Move a store in a process of its own."""
    command = [sys.executable, "-c", MOVES, source, target]
    told = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    return dict(json.loads(told.stdout))


def show(what: str, figures: dict[str, Any]) -> None:
    rate = figures["rows"] / figures["seconds"]
    print(
        f"{what}: {figures['said']}: {rate:,.0f} rows/s, {figures['cpu']:.1f} s of this process's CPU, "
        f"{figures['mb']:.0f} MB above the interpreter",
        flush=True,
    )


async def measure(folder: Path, sessions: int, messages: int, servers: Sequence[str]) -> None:
    source = folder / "one" / "sessions.db"
    await asyncio.to_thread(seed, source, sessions, messages)
    for server in servers:
        async with SERVERS[server]() as address:
            show(f"SQLite to {server}", await asyncio.to_thread(moved, source, address))
            back = folder / server / "sessions.db"
            show(f"{server} to SQLite", await asyncio.to_thread(moved, address, back))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.moving", description=__doc__)
    parser.add_argument("--sessions", type=int, default=100_000)
    parser.add_argument("--messages", type=int, default=10, help="in each session")
    parser.add_argument("--server", choices=SERVERS, help="default: one after the other")
    chosen = parser.parse_args()
    for sessions in (chosen.sessions // 10, chosen.sessions):
        with tempfile.TemporaryDirectory() as folder:
            servers = [chosen.server] if chosen.server else list(SERVERS)
            asyncio.run(measure(Path(folder), sessions, chosen.messages, servers))


if __name__ == "__main__":
    main()
