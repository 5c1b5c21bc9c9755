"""Lists of lineages that no call has left so: a session is gone, or has moved to somebody else."""

from __future__ import annotations

import pytest

from gateway_sessions.storage.transactions.sessions import lists
from tests.raw_sql import execute_sql
from tests.unit.storage.sessions.session_fixtures import (
    ALICE,
    BOB,
    EVERYTHING,
    compress_in_turn,
    session_saying,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(params=["recent", "recent_of_few"], autouse=True)
def way(request, monkeypatch) -> str:
    """Both ways to find a page, which must find the same."""
    if request.param == "recent":
        monkeypatch.setattr(lists, "FEW", 0)
    return request.param


async def test_a_continuation_whose_original_is_gone_stands_for_itself(db):
    await session_saying(db, "a", "hello")
    await compress_in_turn(db, "a", "b")
    execute_sql(db.path, "DELETE FROM sessions WHERE session_id = 'a'")
    for recent in (True, False):
        (left,) = await db.list_sessions_rich(scope=EVERYTHING, order_by_last_active=recent)
        assert (left.session_id, left.lineage_root) == ("b", "b")


async def test_when_a_tip_moved_away_each_side_sees_its_part(db):
    await session_saying(db, "a", "hello")
    await compress_in_turn(db, "a", "b", "c")
    execute_sql(db.path, "UPDATE sessions SET owner = 'main:cli:user:bob' WHERE session_id = 'c'")
    for recent in (True, False):
        (mine,) = await db.list_sessions_rich(scope=ALICE, order_by_last_active=recent)
        (theirs,) = await db.list_sessions_rich(scope=BOB, order_by_last_active=recent)
        assert (mine.session_id, mine.lineage_root) == ("b", "a")
        assert (theirs.session_id, theirs.lineage_root) == ("c", "c")
