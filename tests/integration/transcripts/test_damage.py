"""Rows that something has damaged are told as damage."""

from __future__ import annotations

import pytest

from gateway_sessions import Message, SessionDB
from gateway_sessions.errors import StorageCorruptError
from tests.raw_sql import execute_sql


async def test_a_damaged_row_is_told_as_damage(db: SessionDB, session: str):
    await db.append_messages(session, [Message("user", "fine"), Message("user", "hurt")])
    for damage in ("sent_at = 9223372036854775807", "parts = '{'", "extra = '[]x'", "tool_calls = '[1'"):
        execute_sql(db.path, f"UPDATE messages SET {damage} WHERE content = 'hurt'")  # noqa: S608 -- of this test
        with pytest.raises(StorageCorruptError, match="damaged"):
            await db.get_messages(session)
    with pytest.raises(StorageCorruptError, match="damaged"):
        await db.get_messages_as_conversation(session)


async def test_a_damaged_session_is_told_as_damage(db: SessionDB, session: str):
    execute_sql(db.path, "UPDATE sessions SET model_config = '{'")
    with pytest.raises(StorageCorruptError, match="damaged"):
        await db.get_session(session)
