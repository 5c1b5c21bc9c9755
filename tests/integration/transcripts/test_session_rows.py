"""Sessions made by hand beside those of lanes."""

from __future__ import annotations

import pytest

from gateway_sessions import SessionSource, SessionStore
from gateway_sessions.errors import SessionOnLaneError


async def test_the_session_of_a_lane_is_not_ended_behind_its_back(store: SessionStore):
    entry = await store.get_or_create_session(
        SessionSource(platform="telegram", chat_id="1", user_id="alice")
    )
    for call in (store.db.end_session(entry.session_id, "x"), store.db.reopen_session(entry.session_id)):
        with pytest.raises(SessionOnLaneError) as caught:
            await call
        assert caught.value.session_key == entry.session_key
    await store.reset_session(entry.session_key)
    assert await store.db.reopen_session(entry.session_id) is True
    assert await store.db.end_session(entry.session_id, "done") is True
    back = await store.undo_reset(entry.session_key)
    assert back is not None
    assert back.session_id == entry.session_id


async def test_a_session_made_for_a_lane_belongs_to_its_owner(store: SessionStore):
    entry = await store.get_or_create_session(
        SessionSource(platform="telegram", chat_id="1", user_id="alice")
    )
    await store.db.create_session("side", "tool", session_key=entry.session_key)
    side = await store.db.get_session("side")
    assert side is not None
    assert side.owner == entry.owner
