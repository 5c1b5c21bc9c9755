"""A database with something said in it, and short ways to search it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from gateway_sessions import Scope, SessionDB, SystemClock
from gateway_sessions.storage.engines.sqlite.engine import SqliteEngine, Synchronous
from gateway_sessions.storage.listener import DatabaseListener

EVERYTHING = Scope.operator()


class FaultListener(DatabaseListener):
    """Keeps the faults of the search index that a database reports."""

    def __init__(self) -> None:
        self.faults: asyncio.Queue[tuple[str, Path | None]] = asyncio.Queue()

    def hear_index_fault(self, problem: str, place: Path | None) -> None:
        self.faults.put_nowait((problem, place))


def open_database(home: Path, listener: DatabaseListener | None = None) -> SessionDB:
    engine = SqliteEngine(home / "sessions.db", synchronous=Synchronous.NORMAL)
    return SessionDB(engine, SystemClock(), wait=0, listener=listener or DatabaseListener())


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[SessionDB]:
    async with open_database(tmp_path) as opened:
        yield opened


@pytest.fixture(params=["tail", "index"])
def settled(request: pytest.FixtureRequest) -> Callable[[SessionDB], Awaitable[None]]:
    """With "index", everything is in the index before it is searched; with "tail", nothing need be."""

    async def settle(db: SessionDB) -> None:
        if request.param == "index":
            await db.catch_up_search_index()

    return settle


async def append_words(
    db: SessionDB, session_id: str, *texts: str, role: str = "user", **session: Any
) -> list[int]:
    await db.create_session(session_id, **{"source": "cli", **session})
    return await db.append_messages(session_id, [{"role": role, "content": text} for text in texts])


async def found_snippets(db: SessionDB, query: str, **options: Any) -> list[str]:
    """The messages that a search finds, in their order, as their snippets show them."""
    result = await db.search_messages(query, **{"scope": EVERYTHING, **options})
    return [hit.snippet.replace(">>>", "").replace("<<<", "") for hit in result.hits]
