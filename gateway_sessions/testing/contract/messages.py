"""What was said is stored in order, comes back as it was given, and adds up."""

from __future__ import annotations

import asyncio
import math
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from gateway_sessions import Hidden, InvalidInputError, Message, SessionDB, SessionNotFoundError
from gateway_sessions.testing.clock import FakeClock
from gateway_sessions.testing.contract.database import DatabaseContract
from gateway_sessions.testing.contract.talks import contents

CALLS: Final = [{"id": "call_1", "type": "function", "function": {"name": "terminal", "arguments": "{}"}}]
MEMBERS: Final[dict[str, Any]] = {
    "tool_calls": CALLS,
    "token_count": 150,
    "finish_reason": "stop",
    "reasoning": "Let me think",
    "reasoning_content": "",
    "reasoning_details": [{"type": "thinking", "signature": "x"}],
    "codex_reasoning_items": [{"a": 1}],
    "codex_message_items": [{"b": None}],
    "api_content": [{"type": "text", "text": "more"}],
    "platform_message_id": "77",
    "effect_disposition": "none",
    "extra": {"name": "bot"},
}
CONTENTS: Final[list[Any]] = [
    None,
    "",
    "text",
    '{"looks": "like JSON"}',
    [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "data:…"}}],
    {"type": "text", "text": "one part"},
    [],
    {},
    ["plain", 1, 2.5, True, None, 12345678901234567890123],
]


class MessagesContract(DatabaseContract):
    """Messages: appended, read by page, added up."""

    async def test_a_message_comes_back_with_everything_that_was_said_of_it(
        self, db: SessionDB, session: str
    ) -> None:
        at = datetime(2026, 1, 1, tzinfo=UTC)
        message_id = await db.append_message(session, "assistant", "Hi", timestamp=at, **MEMBERS)
        assert await db.get_messages(session) == [
            Message(
                "assistant", "Hi", message_id=message_id, session_id=session, seq=1, sent_at=at, **MEMBERS
            )
        ]

    async def test_any_content_comes_back_as_it_was_given(self, db: SessionDB, session: str) -> None:
        for content in CONTENTS:
            await db.append_message(session, "user", content)
        assert await contents(db, session) == CONTENTS

    async def test_members_that_nobody_knows_are_given_back(self, db: SessionDB, session: str) -> None:
        await db.append_messages(
            session,
            [{"role": "user", "content": "hi", "message_id": 5, "timestamp": 1.5, "weather": ["sun"]}],
        )
        (message,) = await db.get_messages(session)
        assert message.extra == {"weather": ["sun"]}
        assert message.platform_message_id == "5"
        assert message.sent_at == datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)

    async def test_without_a_time_a_message_was_sent_now(
        self, db: SessionDB, session: str, clock: FakeClock
    ) -> None:
        await db.append_message(session, "user", "hi")
        assert (await db.get_messages(session))[0].sent_at == clock.now()

    async def test_places_have_no_gaps_and_ids_rise_however_many_write_at_once(
        self, db: SessionDB, session: str
    ) -> None:
        ids = await asyncio.gather(*[db.append_message(session, "user", str(n)) for n in range(50)])
        await db.append_messages(session, [Message("user", str(n)) for n in range(5)])
        messages = await db.get_messages(session)
        assert [one.seq for one in messages] == list(range(1, 56))
        assert sorted(ids) == [one.message_id for one in messages[:50]]
        assert sorted({one.message_id for one in messages}) == [one.message_id for one in messages]

    async def test_many_messages_are_stored_all_or_none(self, db: SessionDB, session: str) -> None:
        with pytest.raises(InvalidInputError, match="JSON"):
            await db.append_messages(session, [Message("user", "a"), Message("user", [math.nan])])
        assert await contents(db, session) == []
        assert await db.append_messages(session, []) == []

    async def test_a_session_that_is_not_there_is_an_error_and_no_empty_answer(self, db: SessionDB) -> None:
        for call in (
            db.append_message("gone", "user", "x"),
            db.append_messages("gone", []),
            db.get_messages("gone"),
            db.message_count("gone"),
            db.end_session("gone", "x"),
            db.reopen_session("gone"),
            db.update_system_prompt("gone", "x"),
        ):
            with pytest.raises(SessionNotFoundError):
                await call

    async def test_messages_are_read_page_by_page(self, db: SessionDB, session: str) -> None:
        await db.append_messages(session, [Message("user", str(n)) for n in range(1, 8)])
        assert await contents(db, session, limit=3) == ["1", "2", "3"]
        assert await contents(db, session, after_seq=3, limit=3) == ["4", "5", "6"]
        assert await contents(db, session, after_seq=6, limit=3) == ["7"]
        assert await contents(db, session, after_seq=7) == []
        assert await contents(db, session, before_seq=8, limit=2) == ["6", "7"]
        assert await contents(db, session, before_seq=3) == ["1", "2"]
        assert await contents(db, session, after_seq=2, before_seq=6, limit=2) == ["3", "4"]

    async def test_hidden_messages_are_shown_only_to_those_who_ask(self, db: SessionDB, session: str) -> None:
        await db.append_messages(
            session, [Message("user", "a", hidden_because=Hidden.COMPACTED), Message("user", "b")]
        )
        assert await contents(db, session) == ["b"]
        assert await contents(db, session, include_hidden=True) == ["a", "b"]
        assert await db.message_count(session) == 1
        assert await db.message_count(session, include_hidden=True) == 2

    async def test_what_messages_add_up_to_is_known(
        self, db: SessionDB, session: str, clock: FakeClock
    ) -> None:
        clock.step(timedelta(hours=1))
        ahead = clock.now() + timedelta(hours=1)
        await db.append_message(session, "assistant", "ä", tool_calls=[*CALLS, *CALLS], timestamp=ahead)
        await db.append_message(session, "tool", "ok", tool_call_id="call_1")
        await db.append_message(session, "user", " first\nwords " + "x" * 60)
        await db.append_message(session, "user", "second")
        record = await db.get_session(session)
        assert record is not None
        assert (record.last_seq, record.message_count, record.tool_call_count) == (4, 4, 2)
        assert record.preview == "first words " + "x" * 48 + "..."
        assert record.last_active == clock.now()
        assert record.text_bytes > 80

    async def test_less_than_nothing_cannot_be_asked_for(self, db: SessionDB, session: str) -> None:
        for call in (
            db.get_messages(session, limit=-1),
            db.get_messages_as_conversation(session, limit=-1),
            db.list_recent_user_messages(session, -1),
        ):
            with pytest.raises(InvalidInputError, match="0 or more"):
                await call
        assert await contents(db, session, limit=0) == []

    async def test_thousands_of_messages_are_one_request(self, db: SessionDB, session: str) -> None:
        await db.append_messages(session, ({"role": "user", "content": str(n)} for n in range(2000)))
        assert await contents(db, session) == [str(n) for n in range(2000)]
