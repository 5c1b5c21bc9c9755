from gateway_sessions import SessionSource, SessionStore


async def test_a_conversation_keeps_its_session(session_store: SessionStore) -> None:
    source = SessionSource(platform="telegram", chat_id="5", user_id="5")
    first = await session_store.get_or_create_session(source)
    assert (await session_store.get_or_create_session(source)).session_id == first.session_id
