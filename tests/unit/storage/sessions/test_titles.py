"""What somebody means where hundreds of sessions fit, and where a tip is out of sight."""

from __future__ import annotations

import pytest

from gateway_sessions.errors import AmbiguousSessionError
from tests.raw_sql import execute_sql
from tests.unit.storage.sessions.session_fixtures import ALICE, BOB, compress_in_turn, session_saying

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_many_sessions_of_one_conversation_are_one(db):
    ids = [f"2026_{n:03}" for n in range(202)]
    await session_saying(db, ids[0], "hello")
    await compress_in_turn(db, *ids)
    assert await db.resolve_session("2026", scope=ALICE) == ids[-1]
    await session_saying(db, "2026_z")
    with pytest.raises(AmbiguousSessionError):
        await db.resolve_session("2026", scope=ALICE)


async def test_a_tip_out_of_sight_does_not_lead_there(db):
    await session_saying(db, "a", "hello")
    await compress_in_turn(db, "a", "b", "c")
    execute_sql(db.path, "UPDATE sessions SET owner = 'main:cli:user:bob' WHERE session_id = 'c'")
    assert await db.resolve_session("a", scope=ALICE) == "b"
    assert await db.resolve_session("c", scope=BOB) == "c"
