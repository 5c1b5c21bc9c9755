"""A session as it goes to a model, with what was said before it was compressed."""

from __future__ import annotations

from typing import Any

import pytest

from gateway_sessions import Message, Relation, SessionDB, SessionNotFoundError
from gateway_sessions.testing.contract.database import DatabaseContract


async def said(db: SessionDB, session: str, **options: Any) -> list[Any]:
    """What a model is told."""
    return [row["content"] for row in await db.get_messages_as_conversation(session, **options)]


def exchange(*texts: str) -> list[Message]:
    """Messages of a person and a model in turn."""
    return [Message(("user", "assistant")[at % 2], text) for at, text in enumerate(texts)]


async def continued(
    db: SessionDB, parent: str, child: str, relation: Relation = Relation.CONTINUATION
) -> str:
    """A session that comes from another."""
    return await db.create_session(child, "cli", parent_session_id=parent, relation=relation)


class ConversationsContract(DatabaseContract):
    """What goes to a model."""

    async def test_a_conversation_shows_what_is_active_and_meant_for_a_model(
        self, db: SessionDB, session: str
    ) -> None:
        await db.append_messages(session, [Message("session_meta", "{}"), *exchange("1", "2", "3", "4")])
        await db.rewind_session(session)
        assert await said(db, session) == ["1", "2"]

    async def test_a_limit_counts_the_latest_messages_that_a_model_is_shown(
        self, db: SessionDB, session: str
    ) -> None:
        await db.append_messages(session, [*exchange("1", "2", "3", "4"), Message("system", "x")])
        assert await said(db, session, limit=2) == ["3", "4"]

    async def test_a_session_without_messages_has_an_empty_conversation(
        self, db: SessionDB, session: str
    ) -> None:
        assert await said(db, session) == []
        with pytest.raises(SessionNotFoundError):
            await said(db, "gone")

    async def test_ancestors_are_the_compressed_originals_and_no_others(
        self, db: SessionDB, session: str
    ) -> None:
        await db.append_messages(session, exchange("1", "2"))
        second = await continued(db, session, "second")
        await db.append_messages(second, exchange("3", "4"))
        third = await continued(db, second, "third")
        await db.append_messages(third, exchange("5", "6"))
        other = await continued(db, third, "other", Relation.SUCCESSION)
        await db.append_messages(other, exchange("7", "8"))
        assert await said(db, third) == ["5", "6"]
        assert await said(db, third, include_ancestors=True) == ["1", "2", "3", "4", "5", "6"]
        assert await said(db, third, include_ancestors=True, limit=3) == [
            "[The beginning of this conversation is not shown.]",
            "4",
            "5",
            "6",
        ]
        assert await said(db, other, include_ancestors=True) == ["7", "8"]

    async def test_what_a_continuation_repeats_is_said_once(self, db: SessionDB, session: str) -> None:
        await db.append_messages(session, exchange("1", "2", "3", "4"))
        child = await continued(db, session, "child")
        await db.append_messages(child, exchange("3", "4", "5", "6"))
        assert await said(db, child, include_ancestors=True) == ["1", "2", "3", "4", "5", "6"]
