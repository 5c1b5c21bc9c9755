"""The bare machine at whole turns: what a person would write by hand, one commit per call, no event loop.

It decides nothing: no deduplication, no order, no token, no policy, and nothing is sent.
"""

from __future__ import annotations

import itertools
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any, TypeAlias

from tests.benchmarks import corpus
from tests.benchmarks.child import Figures, answer
from tests.benchmarks.contenders.bare import connected, key
from tests.benchmarks.message_timing import rate

Change: TypeAlias = tuple[str, tuple[Any, ...]]
SCHEMA = """
CREATE TABLE sessions (session_id TEXT PRIMARY KEY, updated_at INTEGER, tokens INTEGER NOT NULL DEFAULT 0)
    WITHOUT ROWID;
CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT NOT NULL, role TEXT NOT NULL, content TEXT,
    sent_at INTEGER NOT NULL);
CREATE INDEX by_session ON messages (session_id, id);
CREATE VIRTUAL TABLE found USING fts5 (content, content = '', tokenize = 'unicode61');
"""
SAY = "INSERT INTO messages (session_id, role, content, sent_at) VALUES (?, ?, ?, ?)"


def filled(folder: str, lanes: int) -> sqlite3.Connection:
    """A database with these sessions, in which nothing was said."""
    database = connected(folder)
    database.executescript(SCHEMA)
    database.execute("BEGIN")
    database.executemany(
        "INSERT INTO sessions (session_id, updated_at) VALUES (?, 0)",
        ((key(number),) for number in range(lanes)),
    )
    database.execute("COMMIT")
    return database


def commits_of_turn(lane: str, said: str, answered: str) -> Iterator[list[Change]]:
    """The session is touched with its use, the message is stored, then the answer with an index of both."""
    now = time.time_ns() // 1_000
    yield [
        ("UPDATE sessions SET updated_at = ?, tokens = tokens + 1000 WHERE session_id = ?", (now, lane)),
    ]
    yield [(SAY, (lane, "user", said, now))]
    yield [
        (SAY, (lane, "assistant", answered, now)),
        (
            "INSERT INTO found (rowid, content) VALUES (last_insert_rowid(), ?)",
            (f"{said}\n{answered}",),
        ),
    ]


def turn(database: sqlite3.Connection, lane: str, said: str, answered: str) -> None:
    """Write what a turn leaves."""
    for changes in commits_of_turn(lane, said, answered):
        database.execute("BEGIN IMMEDIATE")
        for sql, parameters in changes:
            database.execute(sql, parameters)
        database.execute("COMMIT")


def one_lane(folder: str, operations: int) -> Figures:
    """One turn after another on one lane, after as many to warm up."""
    texts = itertools.cycle(corpus.said(1_000))
    measured = []
    with closing(filled(folder, 1)) as database:
        for _ in range(2 * operations):
            text = next(texts)
            start = time.perf_counter_ns()
            turn(database, key(0), text, text)
            measured.append(time.perf_counter_ns() - start)
    return rate(measured[operations:])


def at_once(folder: str, together: int, lanes: int, seconds: float) -> Figures:
    """Turns on the first of these lanes, one lane after the other, from one loop."""
    texts = itertools.cycle(corpus.said(1_000))
    measured = []
    with closing(filled(folder, lanes)) as database:
        start = time.perf_counter()
        while (before := time.perf_counter()) - start < seconds:
            text = next(texts)
            turn(database, key(len(measured) % together), text, text)
            measured.append(int((time.perf_counter() - before) * 1e9))
    return rate(measured)


if __name__ == "__main__":
    answer({"one_lane": one_lane, "at_once": at_once})
