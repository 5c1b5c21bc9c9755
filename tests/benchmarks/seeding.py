"""Fills a store quickly: with lanes, where what arrives together is committed together, or with sessions."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from gateway_sessions import SessionSource, SessionStore, SystemClock
from gateway_sessions.core.instants import to_micros

TOGETHER: Final = 2_000
WORDS: Final = (
    "train", "garden", "invoice", "火车", "budget", "recipe",
    "deploy", "holiday", "Größe", "contract", "report", "🚂",
)  # fmt: skip
SOURCES: Final = ("telegram", "discord", "slack", "cli")
RARE: Final = "a needle in a haystack"
"""Said in one session, in the middle."""
SECONDS_APART: Final = 600


def source_of(number: int) -> SessionSource:
    """The origin that names one lane."""
    return SessionSource(
        platform="telegram",
        chat_id=str(100_000 + number),
        user_id=str(100_000 + number),
        user_name=f"Person {number}",
    )


async def seed_lanes(store: SessionStore, lanes: int) -> None:
    """Make that many lanes, each with a session."""
    for first in range(0, lanes, TOGETHER):
        numbers = range(first, min(first + TOGETHER, lanes))
        await asyncio.gather(*(store.get_or_create_session(source_of(number)) for number in numbers))


def id_of(number: int) -> str:
    """The id of a session that `seed_sessions` makes; the highest number was active last."""
    return f"20260101_000000_{number:08x}"


def said_in(number: int, sessions: int) -> str:
    """How such a session begins."""
    first, second = WORDS[number % len(WORDS)], WORDS[number // 7 % len(WORDS)]
    about = RARE if number == sessions // 2 else f"the {first} and my {second}"
    return f"What about {about}? I have asked {number} times before."


def seed_sessions(home: Path, sessions: int) -> None:
    """Fill a store past its methods, with that many conversations of two messages; some have titles."""
    asyncio.run(_make(home))
    now = SystemClock().now()
    with closing(sqlite3.connect(home / "sessions.db")) as connection, connection:
        connection.executemany(
            "INSERT INTO sessions (session_id, owner, source, started_at, title, title_by)"
            " VALUES (?, 'main', ?, ?, ?, ?)",
            _sessions(sessions, now),
        )
        connection.executemany(
            "INSERT INTO totals (session_id, last_active, last_seq, message_count, preview)"
            " VALUES (?, ?, 2, 2, ?)",
            ((id_of(one), _active(one, sessions, now), said_in(one, sessions)) for one in range(sessions)),
        )
        connection.executemany(
            "INSERT INTO messages (session_id, seq, role, content, sent_at) VALUES (?, ?, ?, ?, ?)",
            _messages(sessions, now),
        )


async def _make(home: Path) -> None:
    async with SessionStore.open(home):
        pass


def _active(number: int, sessions: int, now: datetime) -> int:
    return to_micros(now) - (sessions - number) * SECONDS_APART * 1_000_000


def _sessions(sessions: int, now: datetime) -> Iterator[tuple[Any, ...]]:
    for one in range(sessions):
        title = f"{WORDS[one % len(WORDS)]} no. {one}" if one % 3 == 0 else None
        source = SOURCES[one % len(SOURCES)]
        yield id_of(one), source, _active(one, sessions, now), title, title and "person"


def _messages(sessions: int, now: datetime) -> Iterator[tuple[Any, ...]]:
    for one in range(sessions):
        at = _active(one, sessions, now)
        yield id_of(one), 1, "user", said_in(one, sessions), at
        yield id_of(one), 2, "assistant", "I shall look into it.", at
