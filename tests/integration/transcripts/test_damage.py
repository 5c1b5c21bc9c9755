"""Rows that something has damaged are told as damage."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from gateway_sessions import Message, SessionDB
from gateway_sessions.errors import StorageCorruptError


async def test_a_damaged_row_is_told_as_damage(db: SessionDB, session: str):
    await db.append_messages(session, [Message("user", "fine"), Message("user", "hurt")])
    for damage in ("sent_at = 9223372036854775807", "parts = '{'", "extra = '[]x'", "tool_calls = '[1'"):
        with closing(sqlite3.connect(db.path)) as connection:
            connection.execute(f"UPDATE messages SET {damage} WHERE content = 'hurt'")  # noqa: S608
            connection.commit()
        with pytest.raises(StorageCorruptError, match="damaged"):
            await db.get_messages(session)
    with pytest.raises(StorageCorruptError, match="damaged"):
        await db.get_messages_as_conversation(session)


async def test_a_damaged_session_is_told_as_damage(db: SessionDB, session: str):
    with closing(sqlite3.connect(db.path)) as connection:
        connection.execute("UPDATE sessions SET model_config = '{'")
        connection.commit()
    with pytest.raises(StorageCorruptError, match="damaged"):
        await db.get_session(session)
