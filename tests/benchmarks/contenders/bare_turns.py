"""The bare machine at whole turns: the same rows in two commits, no event loop, no agent, nothing sent."""

from __future__ import annotations

import itertools
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any, TypeAlias

from tests.benchmarks import corpus
from tests.benchmarks.child import Figures, answer
from tests.benchmarks.contenders.bare import BODY, connected, key
from tests.benchmarks.contenders.bare_transcripts import ADD, ADVANCE, SCHEMA
from tests.benchmarks.message_timing import rate

Change: TypeAlias = tuple[str, tuple[Any, ...]]
MORE = """
CREATE TABLE lanes (session_key TEXT PRIMARY KEY, next_seq INTEGER NOT NULL, token INTEGER NOT NULL,
    epoch INTEGER) WITHOUT ROWID;
CREATE TABLE clocks (session_key TEXT PRIMARY KEY, version INTEGER, updated_at INTEGER) WITHOUT ROWID;
CREATE TABLE entries (session_key TEXT PRIMARY KEY, body TEXT) WITHOUT ROWID;
CREATE TABLE inbox (item INTEGER PRIMARY KEY, session_key TEXT, seq INTEGER, event TEXT UNIQUE, payload TEXT,
    outcome TEXT);
CREATE INDEX inbox_open ON inbox (session_key, seq) WHERE outcome IS NULL;
CREATE TABLE outbox (reply INTEGER PRIMARY KEY, session_key TEXT, content TEXT, state TEXT);
CREATE INDEX outbox_owed ON outbox (session_key, reply) WHERE state <> 'sent';
"""


def filled(folder: str, lanes: int) -> sqlite3.Connection:
    """A database with these lanes, each with a session in which nothing was said."""
    database = connected(folder)
    database.executescript(SCHEMA + MORE)
    keys = [key(number) for number in range(lanes)]
    database.executemany(
        "INSERT INTO totals (session_id, last_active) VALUES (?, 0)", ((one,) for one in keys)
    )
    database.executemany("INSERT INTO lanes VALUES (?, 1, 0, NULL)", ((one,) for one in keys))
    database.executemany("INSERT INTO clocks VALUES (?, 1, 0)", ((one,) for one in keys))
    database.executemany("INSERT INTO entries VALUES (?, ?)", ((one, BODY) for one in keys))
    return database


def commits_of_turn(lane: str, number: int, said: str, answered: str) -> Iterator[list[Change]]:
    """A message comes in and its lane is leased; then it is answered and the lane is free again."""
    now = time.time_ns() // 1_000
    yield [
        ("UPDATE clocks SET version = version + 1, updated_at = ? WHERE session_key = ?", (now, lane)),
        (
            "UPDATE lanes SET next_seq = next_seq + 1, token = token + 1, epoch = 1 WHERE session_key = ?",
            (lane,),
        ),
        (
            "INSERT INTO inbox (session_key, seq, event, payload) VALUES (?, ?, ?, ?)",
            (lane, number, f"{lane}{number}", BODY + said),
        ),
    ]
    yield [
        (ADVANCE, (len(said), now, lane)),
        (ADD, (lane, lane, "user", said, now)),
        (ADVANCE, (len(answered), now, lane)),
        (ADD, (lane, lane, "assistant", answered, now)),
        ("UPDATE inbox SET outcome = 'turned', payload = NULL WHERE event = ?", (f"{lane}{number}",)),
        ("UPDATE entries SET body = ? WHERE session_key = ?", (BODY, lane)),
        ("UPDATE clocks SET version = version + 1, updated_at = ? WHERE session_key = ?", (now, lane)),
        ("UPDATE lanes SET epoch = NULL WHERE session_key = ?", (lane,)),
        ("INSERT INTO outbox (session_key, content, state) VALUES (?, ?, 'sending')", (lane, answered)),
    ]


def turn(database: sqlite3.Connection, lane: str, number: int, said: str, answered: str) -> None:
    """Write what a turn leaves."""
    for changes in commits_of_turn(lane, number, said, answered):
        database.execute("BEGIN IMMEDIATE")
        for sql, parameters in changes:
            database.execute(sql, parameters)
        database.execute("COMMIT")


def one_lane(folder: str, operations: int) -> Figures:
    """One turn after another on one lane, after as many to warm up."""
    texts = itertools.cycle(corpus.said(1_000))
    measured = []
    with closing(filled(folder, 1)) as database:
        for number in range(2 * operations):
            said, answered = next(texts), next(texts)
            start = time.perf_counter_ns()
            turn(database, key(0), number, said, answered)
            measured.append(time.perf_counter_ns() - start)
    return rate(measured[operations:])


def at_once(folder: str, together: int, lanes: int, seconds: float) -> Figures:
    """Turns on the first of these lanes, one lane after the other, from one loop."""
    texts = itertools.cycle(corpus.said(1_000))
    measured = []
    with closing(filled(folder, lanes)) as database:
        start = time.perf_counter()
        while (before := time.perf_counter()) - start < seconds:
            number = len(measured)
            turn(database, key(number % together), number, next(texts), next(texts))
            measured.append(int((time.perf_counter() - before) * 1e9))
    return rate(measured)


if __name__ == "__main__":
    answer({"one_lane": one_lane, "at_once": at_once})
