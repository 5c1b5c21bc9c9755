"""The transcript of a session, by the names that gateways use."""

import pytest

from gateway_sessions import Message, SessionNotFoundError
from tests.unit.runtime.store_fixtures import dm_source

UNKNOWN = "20260101_000000_gone"


@pytest.fixture
async def session_id(store) -> str:
    return (await store.get_or_create_session(dm_source())).session_id


async def test_what_was_said_goes_to_the_model(store, session_id):
    assert await store.load_transcript(session_id) == []
    await store.append_to_transcript(session_id, {"role": "user", "content": "hi", "timestamp": 5})
    await store.append_to_transcript(session_id, Message("assistant", "hello"))
    assert [(row["role"], row["content"]) for row in await store.load_transcript(session_id)] == [
        ("user", "hi"),
        ("assistant", "hello"),
    ]
    assert len(await store.load_transcript(session_id, limit=1)) == 2  # the first row is a user's


async def test_what_the_agent_has_stored_itself_is_not_stored_again(store, session_id):
    assert (
        await store.append_to_transcript(session_id, {"role": "user", "content": "hi"}, skip_db=True) is None
    )
    assert await store.load_transcript(session_id) == []


async def test_a_turn_is_taken_back_and_tried_again(store, session_id):
    for text in ("one", "two"):
        await store.append_to_transcript(session_id, {"role": "user", "content": text})
        await store.append_to_transcript(session_id, {"role": "assistant", "content": text.upper()})
    taken = await store.rewind_session(session_id)
    assert (taken.rewound_count, taken.turns_undone, taken.target_text) == (2, 1, "two")
    assert len(await store.load_transcript(session_id)) == 2
    assert await store.db.restore_rewound(session_id) == 2
    assert (await store.rewind_session(session_id, 5)).turns_undone == 2
    assert await store.rewind_session(session_id) is None


async def test_a_transcript_that_is_stored_again_is_what_it_was(store, session_id):
    await store.append_to_transcript(session_id, {"role": "user", "content": "hi", "mood": "good"})
    await store.append_to_transcript(session_id, Message("assistant", "hello", reasoning="hm"))
    loaded = await store.load_transcript(session_id)
    assert await store.rewrite_transcript(session_id, loaded) is True
    assert await store.load_transcript(session_id) == loaded


async def test_a_reset_leaves_the_transcript_behind_and_its_undoing_brings_it_back(store, session_id):
    await store.append_to_transcript(session_id, {"role": "user", "content": "hi"})
    entry = await store.reset_session((await store.get_or_create_session(dm_source())).session_key)
    assert await store.load_transcript(entry.session_id) == []
    assert len(await store.load_transcript(session_id)) == 1
    assert (await store.undo_reset(entry.session_key)).session_id == session_id


async def test_a_session_that_is_not_there_has_no_empty_transcript(store):
    for call in (
        store.load_transcript(UNKNOWN),
        store.append_to_transcript(UNKNOWN, {"role": "user"}),
        store.rewrite_transcript(UNKNOWN, []),
        store.rewind_session(UNKNOWN),
    ):
        with pytest.raises(SessionNotFoundError):
            await call
