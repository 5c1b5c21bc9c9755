"""What the tests of lineage, titles and lists share: short ways to make sessions, and to look behind them."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

from gateway_sessions import Scope, SessionDB
from gateway_sessions.testing import FakeClock

EVERYTHING = Scope.operator()
ALICE = Scope(owners=frozenset({"main:cli:user:alice"}))
BOB = Scope(owners=frozenset({"main:cli:user:bob"}))
WRITTEN = ("sessions", "totals", "messages", "entries", "clocks", "lanes", "transitions")
SUMMARY = [{"role": "user", "content": "what we said so far"}]


@asynccontextmanager
async def open_database(home: Path, clock: FakeClock | None = None) -> AsyncIterator[SessionDB]:
    """A database whose commits need not survive a power cut."""
    async with SessionDB.open(
        home / "sessions.db", clock=clock or FakeClock(), survives_power_cut=False
    ) as db:
        yield db


async def session_saying(db: SessionDB, session_id: str, *said: str, user: str = "alice", **more) -> str:
    """A session in which a person said those things."""
    await db.create_session(session_id, more.pop("source", "cli"), user_id=user, **more)
    for text in said:
        await db.append_message(session_id, "user", text)
    return session_id


async def compress_in_turn(db: SessionDB, *ids: str) -> None:
    """Compress the first session, its continuation, and so on."""
    for old, new in itertools.pairwise(ids):
        await db.split_session(old, new, SUMMARY)


def delete_all_rows(db: SessionDB) -> None:
    """Leave nothing to the next test, which is much faster than to make a new database for it."""
    with closing(sqlite3.connect(db.path, timeout=10)) as database:
        for table in WRITTEN:
            database.execute(f"DELETE FROM {table}")  # noqa: S608 -- names from above
        database.commit()
