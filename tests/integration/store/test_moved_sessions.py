"""A session that went to another lane has become that lane's business."""

import pytest

from gateway_sessions import Scope, SessionSource, SessionStore
from gateway_sessions.errors import NothingToUndoError

ANN = SessionSource(platform="telegram", chat_id="1", user_id="1")
BOB = SessionSource(platform="telegram", chat_id="2", user_id="2")


async def test_a_reset_is_not_undone_into_what_others_have_said_since(session_store: SessionStore):
    first = await session_store.get_or_create_session(ANN)
    await session_store.reset_session(first.session_key)
    bobs = await session_store.get_or_create_session(BOB)
    await session_store.switch_session(bobs.session_key, first.session_id, scope=Scope.operator(), move=True)
    await session_store.reset_session(bobs.session_key)
    with pytest.raises(NothingToUndoError, match="another lane"):
        await session_store.undo_reset(first.session_key)


async def test_the_lane_that_has_it_may_undo(session_store: SessionStore):
    first = await session_store.get_or_create_session(ANN)
    bobs = await session_store.get_or_create_session(BOB)
    await session_store.switch_session(bobs.session_key, first.session_id, scope=Scope.operator(), move=True)
    await session_store.reset_session(bobs.session_key)
    back = await session_store.undo_reset(bobs.session_key)
    assert back is not None
    assert (back.session_id, back.session_key) == (first.session_id, bobs.session_key)
