"""The fixtures of the database contract, and short functions that fill and read a database.

An engine gives one fixture, `open_db`. The functions use `SessionDB` alone.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from enum import StrEnum
from typing import Any, ClassVar, Final, TypeAlias

import pytest
import pytest_asyncio

from gateway_sessions import Message, Scope, SessionDB
from gateway_sessions.sessions import SessionRecord
from gateway_sessions.testing import FakeClock

OpenDB: TypeAlias = Callable[[], SessionDB]
"""Makes a `SessionDB` that is not open yet; all that one factory makes have the same data."""


class Capability(StrEnum):
    """Names what an engine may have or lack. Every engine promises all else."""

    ONE_OWNER = "one_owner"  # a second program that opens the data is refused; without it, many may write
    UPKEEP = (
        "upkeep"  # `vacuum`, `optimise` and `back_up` can be asked for; without it, a server sees to that
    )


class DatabaseContract:
    """Gives each test an open, empty database."""

    pytestmark: ClassVar[pytest.MarkDecorator] = pytest.mark.asyncio
    capabilities: ClassVar[frozenset[Capability]] = frozenset()

    @pytest.fixture
    def clock(self) -> FakeClock:
        """Return the clock of the database, which stands still until the test advances it."""
        return FakeClock()

    @pytest.fixture
    def open_db(self) -> OpenDB:
        """Override this fixture: a factory of databases with `clock`, on data that is empty at first."""
        raise NotImplementedError

    @pytest_asyncio.fixture
    async def db(self, open_db: OpenDB) -> AsyncIterator[SessionDB]:
        """Open the database."""
        async with open_db() as opened:
            yield opened

    @pytest_asyncio.fixture
    async def session(self, db: SessionDB) -> str:
        """Return a session of Alice's without messages."""
        return await db.create_session("s", "cli", user_id="alice")


EVERYTHING: Final = Scope.operator()
ALICE: Final = Scope(owners=frozenset({"main:cli:user:alice"}))
BOB: Final = Scope(owners=frozenset({"main:cli:user:bob"}))
SUMMARY: Final = [{"role": "user", "content": "what we said so far"}]

Settle: TypeAlias = Callable[[SessionDB], Awaitable[None]]


async def talk(db: SessionDB, session_id: str, *said: str, user: str = "alice", **more: Any) -> str:
    """Create a session with these messages of a person."""
    await db.create_session(session_id, more.pop("source", "cli"), user_id=user, **more)
    await db.append_messages(session_id, [Message("user", text) for text in said])
    return session_id


async def talks(db: SessionDB, clock: FakeClock, *ids: str, **more: Any) -> None:
    """Create sessions, each begun and used a minute after the one before."""
    for session_id in ids:
        clock.step(timedelta(minutes=1))
        await talk(db, session_id, f"hello {session_id}", **more)


async def split(db: SessionDB, *ids: str) -> None:
    """Compress the first session, then its continuation, and so on."""
    for old, new in itertools.pairwise(ids):
        await db.split_session(old, new, SUMMARY)


async def record(db: SessionDB, session_id: str) -> SessionRecord:
    """Return the record of a session that exists."""
    found = await db.get_session(session_id)
    assert found is not None, session_id
    return found


async def contents(db: SessionDB, session_id: str, **options: Any) -> list[Any]:
    """Return the texts of a session's messages."""
    return [one.content for one in await db.get_messages(session_id, **options)]


async def in_order(found: AsyncIterator[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return all that an asynchronous iterator yields."""
    return [one async for one in found]


async def everything(db: SessionDB) -> list[dict[str, Any]]:
    """Return all that an export shows of all sessions, to compare two states of a database."""
    return await in_order(db.export_all(scope=EVERYTHING))


async def there(db: SessionDB) -> set[str]:
    """Return the ids of all sessions."""
    return {one["id"] for one in await everything(db)}


async def found(db: SessionDB, query: str, *, scope: Scope = EVERYTHING, **options: Any) -> list[str]:
    """Return the snippets of the messages that a search finds, in their order."""
    result = await db.search_messages(query, scope=scope, **options)
    return [hit.snippet.replace(">>>", "").replace("<<<", "") for hit in result.hits]


async def listed(db: SessionDB, scope: Scope = EVERYTHING, **asked: Any) -> list[str]:
    """Return the ids of a list, in its order."""
    return [one.session_id for one in await db.list_sessions_rich(scope=scope, **asked)]
