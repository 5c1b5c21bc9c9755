"""The bare machine as a memory: `sqlite3`, fully durable, with its own full-text index, no event loop."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Iterable
from contextlib import closing
from functools import partial
from typing import Any, Final

from tests.benchmarks import corpus
from tests.benchmarks.child import Figures, answer
from tests.benchmarks.contenders.bare import connected
from tests.benchmarks.message_timing import in_turn, loaded, one_after_another
from tests.benchmarks.searching import Answer, compared, timed

SCHEMA: Final = """
CREATE TABLE totals (session_id TEXT PRIMARY KEY, last_seq INTEGER NOT NULL DEFAULT 0, last_active INTEGER,
    message_count INTEGER NOT NULL DEFAULT 0, text_bytes INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT NOT NULL, seq INTEGER NOT NULL,
    role TEXT NOT NULL, content TEXT, sent_at INTEGER NOT NULL, observed INTEGER NOT NULL DEFAULT 0,
    tool_call_id TEXT, tool_name TEXT, effect_disposition TEXT, token_count INTEGER, finish_reason TEXT,
    reasoning TEXT, reasoning_content TEXT, platform_message_id TEXT, tool_calls TEXT, reasoning_details TEXT,
    codex_reasoning_items TEXT, codex_message_items TEXT, api_content TEXT, parts TEXT, hidden_because TEXT,
    edited_at INTEGER, extra TEXT, UNIQUE (session_id, seq));
"""
INDEX: Final = """
CREATE VIRTUAL TABLE found
    USING fts5 (content, content = 'messages', content_rowid = 'id', tokenize = 'unicode61');
INSERT INTO found (found) VALUES ('rebuild');
"""
ADVANCE: Final = """
UPDATE totals SET last_seq = last_seq + 1, message_count = message_count + 1, text_bytes = text_bytes + ?,
    last_active = ? WHERE session_id = ?
"""
ADD: Final = """
INSERT INTO messages (session_id, seq, role, content, sent_at)
VALUES (?, (SELECT last_seq FROM totals WHERE session_id = ?), ?, ?, ?)
"""
FILL: Final = """
INSERT INTO messages (session_id, seq, role, content, sent_at, tool_call_id, tool_name, tool_calls)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
READ: Final = """
SELECT role, content, id, sent_at, tool_call_id, tool_name, tool_calls, reasoning
FROM messages WHERE session_id = ? ORDER BY seq
"""
"""What a person would read of a message."""
BY_WORDS: Final = """
SELECT messages.sent_at, session_id, role, snippet(found, 0, '>>>', '<<<', '...', 40)
FROM found JOIN messages ON messages.id = found.rowid WHERE found MATCH ?
"""
BY_TEXT: Final = "SELECT sent_at, session_id, role, content FROM messages WHERE content LIKE ?"


def filled(folder: str, sessions: Iterable[str]) -> sqlite3.Connection:
    """A database with these sessions, in which nothing was said."""
    database = connected(folder)
    database.executescript(SCHEMA)
    database.executemany(
        "INSERT INTO totals (session_id, last_active) VALUES (?, 0)", ((name,) for name in sessions)
    )
    return database


def commit(database: sqlite3.Connection, session_id: str, role: str, text: str) -> None:
    """A message and what its session adds up to, in one transaction."""
    now = time.time_ns() // 1_000
    database.execute("BEGIN IMMEDIATE")
    database.execute(ADVANCE, (len(text), now, session_id))
    database.execute(ADD, (session_id, session_id, role, text, now))
    database.execute("COMMIT")


def append(folder: str, operations: int) -> Figures:
    """Say one thing after another in one session."""
    with closing(filled(folder, ["only"])) as database:
        return one_after_another(partial(commit, database), "only", operations)


def append_at_once(folder: str, together: int, seconds: float) -> Figures:
    """As many sessions in turn from one loop, one commit for each message; nothing is indexed."""
    sessions = [f"session_{number}" for number in range(together)]
    with closing(filled(folder, sessions)) as database:
        return in_turn(partial(commit, database), sessions, seconds)


def seed_load(folder: str, messages: int) -> Figures:
    """Leave a database with one long session."""
    with closing(filled(folder, ["long"])) as database:
        rows = (row_of("long", number, said) for number, said in enumerate(corpus.transcript(messages)))
        fill(database, rows)
    return {}


def row_of(session_id: str, number: int, said: dict[str, Any]) -> tuple[object, ...]:
    calls = json.dumps(said["tool_calls"]) if "tool_calls" in said else None
    named = (said.get("tool_call_id"), said.get("tool_name"), calls)
    return (session_id, number + 1, said["role"], said["content"], corpus.sent_at(number), *named)


def fill(database: sqlite3.Connection, rows: Iterable[tuple[object, ...]]) -> None:
    database.execute("BEGIN")
    database.executemany(FILL, rows)
    database.execute("COMMIT")
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def load(folder: str, messages: int, times: int) -> Figures:
    """Read the rows of a session and decode what is JSON in them: no more than that."""
    with closing(connected(folder)) as database:
        read = partial(decoded, database)
        return loaded({"conversation": read, "messages": read}, messages, times)


def decoded(database: sqlite3.Connection) -> list[Any]:
    """The rows of a session, whose only JSON is the calls of tools."""
    return [
        row if row[6] is None else (*row[:6], json.loads(row[6]), row[7])
        for row in database.execute(READ, ("long",)).fetchall()
    ]


def seed_search(folder: str, messages: int) -> Figures:
    """Leave a database in which so much was said, with one index over it, made at the end."""
    texts = corpus.said(messages)
    corpus.write_questions(folder, corpus.questions(texts))
    with closing(filled(folder, ())) as database:
        start = time.perf_counter()
        for name, numbers in corpus.sessions(texts):
            rows = (
                (name, number + 1, corpus.role_of(number), texts[number], corpus.sent_at(number))
                for number in numbers
            )
            fill(database, ((*row, None, None, None) for row in rows))
        appended = time.perf_counter()
        database.executescript(INDEX)
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        indexed = time.perf_counter()
    return {
        "append s": appended - start,
        "index s": indexed - appended,
        "findable per second": messages / (indexed - start),
        "bytes each": corpus.bytes_each(folder, messages),
    }


def search(folder: str, times: int) -> Figures:
    """Words by the index, the best first; all else by a look at every text, the newest first."""
    return asyncio.run(searched(folder, times))


async def searched(folder: str, times: int) -> Figures:
    asked = corpus.read_questions(folder)
    with closing(connected(folder)) as database:

        async def best(kind: str, text: str) -> object:
            if kind in {corpus.CHINESE, corpus.SUBSTRING, corpus.INSIDE}:
                return database.execute(f"{BY_TEXT} ORDER BY id DESC LIMIT 20", (f"%{text}%",)).fetchall()
            return database.execute(f"{BY_WORDS} ORDER BY rank LIMIT 20", (text,)).fetchall()

        async def newest(kind: str, text: str, limit: int) -> Answer:
            if kind in {corpus.CHINESE, corpus.SUBSTRING, corpus.INSIDE}:
                query, asked_for = f"{BY_TEXT} ORDER BY id DESC LIMIT ?", f"%{text}%"
            else:
                query, asked_for = f"{BY_WORDS} ORDER BY found.rowid DESC LIMIT ?", text
            rows = database.execute(query, (asked_for, limit)).fetchall()
            return Answer([corpus.number_of(row[0]) for row in rows])

        return await timed(asked, times, best) | await compared(asked, newest, must_fit=True)


if __name__ == "__main__":
    answer({task.__name__: task for task in (append, append_at_once, seed_load, load, seed_search, search)})
