"""Contract tests of messages: append, rewind, edit, windows, and the conversation of a model."""

from __future__ import annotations

import asyncio
import math
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
import pytest_asyncio

from gateway_sessions import InvalidInputError, Message, SessionDB, SessionNotFoundError
from gateway_sessions.errors import NothingToUndoError
from gateway_sessions.sessions import Relation
from gateway_sessions.testing.clock import FakeClock
from gateway_sessions.testing.contract.database.bench import DatabaseContract, contents
from gateway_sessions.transcripts import AnchoredView, Hidden, MessageVersion, MessageWindow, Rewind, UserTurn

CALLS: Final[list[Any]] = [
    {"id": "call_1", "type": "function", "function": {"name": "terminal", "arguments": "{}"}}
]
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
    """Tests that messages are stored in order, read page by page, and counted."""

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

    async def test_one_call_takes_thousands_of_messages(self, db: SessionDB, session: str) -> None:
        await db.append_messages(session, ({"role": "user", "content": str(n)} for n in range(2000)))
        assert await contents(db, session) == [str(n) for n in range(2000)]


class ChangesContract(DatabaseContract):
    """Tests changes of a transcript: each is recorded, and most can be undone."""

    @pytest_asyncio.fixture
    async def three_turns(self, db: SessionDB, session: str) -> list[int]:
        """Return the ids of three turns and their answers."""
        return await db.append_messages(
            session, [Message(("user", "assistant")[at % 2], text) for at, text in enumerate("aAbBcC")]
        )

    async def test_the_last_turn_is_taken_back(
        self, db: SessionDB, session: str, three_turns: list[int]
    ) -> None:
        assert await db.rewind_session(session) == Rewind(2, 1, "c", three_turns[4], three_turns[3])
        assert await contents(db, session) == ["a", "A", "b", "B"]

    async def test_of_too_many_turns_all_are_taken_back(
        self, db: SessionDB, session: str, three_turns: list[int]
    ) -> None:
        assert await db.rewind_session(session, 9) == Rewind(6, 3, "a", three_turns[0], None)
        assert await db.rewind_session(session) is None
        assert (await db.get_messages(session, include_hidden=True))[0].hidden_because is Hidden.REWOUND

    async def test_a_message_is_taken_back_with_all_that_followed(
        self, db: SessionDB, session: str, three_turns: list[int]
    ) -> None:
        assert (await db.rewind_to_message(session, three_turns[2])).rewound_count == 4
        assert await db.rewind_to_message(session, three_turns[2]) == Rewind(
            0, 0, "b", three_turns[2], three_turns[1]
        )

    async def test_only_what_a_person_said_there_can_be_gone_back_to(
        self, db: SessionDB, session: str, three_turns: list[int]
    ) -> None:
        await db.create_session("other", "cli")
        for where, message_id in ((session, three_turns[1]), (session, 1), ("other", three_turns[0])):
            with pytest.raises(InvalidInputError):
                await db.rewind_to_message(where, message_id)

    async def test_rewinds_are_undone_one_by_one(
        self, db: SessionDB, session: str, three_turns: list[int]
    ) -> None:
        await db.rewind_session(session)
        await db.rewind_session(session)
        assert await db.restore_rewound(session) == 2
        assert await contents(db, session) == ["a", "A", "b", "B"]
        assert await db.restore_rewound(session) == 2
        assert await contents(db, session) == list("aAbBcC")
        with pytest.raises(NothingToUndoError):
            await db.restore_rewound(session)

    async def test_what_was_taken_back_stays_so_once_the_conversation_goes_on(
        self, db: SessionDB, session: str, three_turns: list[int]
    ) -> None:
        await db.rewind_session(session)
        await db.append_message(session, "user", "chatter", observed=True)
        await db.append_message(session, "session_meta", "{}")
        assert await db.restore_rewound(session) == 2
        await db.rewind_session(session)
        await db.append_message(session, "user", "d")
        with pytest.raises(NothingToUndoError, match="gone on"):
            await db.restore_rewound(session)
        said = "what was only observed is nobody's turn: it stays"
        assert await contents(db, session) == ["a", "A", "b", "B", "chatter", "d"], said

    async def test_what_was_retracted_meanwhile_does_not_come_back(self, db: SessionDB, session: str) -> None:
        await db.append_message(session, "user", "oops", platform_message_id="1")
        await db.append_message(session, "assistant", "A")
        await db.rewind_session(session)
        await db.retract_message(session, "1")
        assert await db.restore_rewound(session) == 1
        assert await contents(db, session) == ["A"]

    async def test_what_is_hidden_survives_a_replacement(
        self, db: SessionDB, session: str, three_turns: list[int]
    ) -> None:
        assert await db.archive_and_compact(session, [Message("user", "summary")]) == 6
        await db.append_message(session, "assistant", "D")
        await db.append_message(session, "user", "e")
        await db.rewind_session(session)
        await db.replace_messages(session, [{"role": "user", "content": "new"}])
        assert await contents(db, session) == ["new"]
        stored = await db.get_messages(session, include_hidden=True)
        assert [one.content for one in stored] == [*"aAbBcC", "e", "new"]
        assert [one.seq for one in stored] == list(range(1, len(stored) + 1))

    async def test_a_replacement_that_cannot_be_stored_changes_nothing(
        self, db: SessionDB, session: str, three_turns: list[int]
    ) -> None:
        for call in (db.replace_messages, db.archive_and_compact):
            with pytest.raises(InvalidInputError):
                await call(session, [Message("user", "x"), Message("user", [float("inf")])])
        assert await contents(db, session, include_hidden=True) == list("aAbBcC")

    async def test_nothing_is_left_of_what_is_cleared(
        self, db: SessionDB, session: str, three_turns: list[int]
    ) -> None:
        await db.rewind_session(session)
        assert await db.clear_messages(session) == 6
        assert await contents(db, session, include_hidden=True) == []
        assert await db.clear_messages(session) == 0

    async def test_an_edit_is_told_from_then_on_and_the_former_text_is_kept(
        self, db: SessionDB, session: str, clock: FakeClock
    ) -> None:
        message_id = await db.append_message(
            session, "user", "helo", platform_message_id="1", api_content="helo, today"
        )
        assert await db.edit_message(session, "1", "hello") is True
        assert await db.edit_message(session, "1", "hello") is False
        assert await db.edit_message(session, "1", [{"type": "text", "text": "hello!"}]) is True
        (message,) = await db.get_messages(session)
        assert (message.content, message.edited_at) == (
            [{"type": "text", "text": "hello!"}],
            clock.now(),
        )
        assert message.api_content is None
        assert await db.get_message_versions(session, message_id) == [
            MessageVersion(1, "helo", clock.now()),
            MessageVersion(2, "hello", clock.now()),
        ]

    async def test_what_nobody_has_stored_is_neither_edited_nor_retracted(
        self, db: SessionDB, session: str
    ) -> None:
        assert await db.edit_message(session, "1", "x") is False
        assert await db.retract_message(session, "1") is False
        assert await db.has_platform_message_id(session, "1") is False

    async def test_a_retracted_message_is_hidden_and_still_known(self, db: SessionDB, session: str) -> None:
        await db.append_messages(session, [Message("user", "x", platform_message_id="1")] * 2)
        assert await db.retract_message(session, "1") is True
        assert await db.retract_message(session, "1") is False
        assert await contents(db, session) == []
        assert await db.has_platform_message_id(session, "1") is True

    async def test_nothing_can_be_changed_in_a_session_that_is_not_there(self, db: SessionDB) -> None:
        for call in (
            db.rewind_session("gone"),
            db.rewind_to_message("gone", 1),
            db.restore_rewound("gone"),
            db.replace_messages("gone", []),
            db.archive_and_compact("gone", []),
            db.clear_messages("gone"),
            db.edit_message("gone", "1", "x"),
            db.retract_message("gone", "1"),
            db.has_platform_message_id("gone", "1"),
            db.get_messages_around("gone", 1),
            db.get_anchored_view("gone", 1),
            db.list_recent_user_messages("gone"),
        ):
            with pytest.raises(SessionNotFoundError):
                await call


def shown(window: MessageWindow) -> tuple[str, int, int]:
    """Return the texts of a window, and the counts before and after its message."""
    return " ".join(one.text for one in window.messages), window.messages_before, window.messages_after


class LookingContract(DatabaseContract):
    """Tests views of a part of a transcript."""

    @pytest_asyncio.fixture
    async def twelve(self, db: SessionDB, session: str) -> list[int]:
        """Return the ids of twelve messages, of which each third is a tool's."""
        roles = ("user", "assistant", "tool")
        return await db.append_messages(session, [Message(roles[n % 3], str(n)) for n in range(12)])

    async def test_a_window_ends_where_the_session_does(
        self, db: SessionDB, session: str, twelve: list[int]
    ) -> None:
        assert shown(await db.get_messages_around(session, twelve[5], 2)) == ("3 4 5 6 7", 2, 2)
        assert shown(await db.get_messages_around(session, twelve[1])) == ("0 1 2 3 4 5 6", 1, 5)
        assert shown(await db.get_messages_around(session, twelve[11], 1)) == ("10 11", 1, 0)
        assert shown(await db.get_messages_around(session, twelve[3], -1)) == ("3", 0, 0)

    async def test_around_a_message_that_is_not_there_is_nothing(
        self, db: SessionDB, session: str, twelve: list[int]
    ) -> None:
        await db.create_session("other", "cli")
        for where, message_id in (("other", twelve[0]), (session, 1)):
            assert await db.get_messages_around(where, message_id) == MessageWindow()
            assert await db.get_anchored_view(where, message_id) == AnchoredView()

    async def test_compacted_messages_are_shown_and_others_that_are_hidden_are_not(
        self, db: SessionDB, session: str, twelve: list[int]
    ) -> None:
        await db.archive_and_compact(session, [Message("user", "summary", platform_message_id="1")])
        await db.append_message(session, "user", "gone")
        await db.rewind_session(session)
        assert shown(await db.get_messages_around(session, twelve[11], 3)) == ("8 9 10 11 summary", 3, 1)
        asked = await db.get_messages_around(session, twelve[11], 3, include_hidden=True)
        assert shown(asked) == ("8 9 10 11 summary gone", 3, 2)
        gone = asked.messages[-1].message_id
        assert await db.get_messages_around(session, gone) == MessageWindow()
        assert shown(await db.get_messages_around(session, gone, 1, include_hidden=True)) == (
            "summary gone",
            1,
            0,
        )

    async def test_an_anchored_view_shows_both_ends_outside_the_window(
        self, db: SessionDB, session: str, twelve: list[int]
    ) -> None:
        await db.append_message(session, "user", "")
        view = await db.get_anchored_view(session, twelve[5], 1, 2)
        assert shown(view.window) == ("4 5 6", 1, 1)
        assert [one.text for one in view.bookend_start] == ["0", "1"]
        assert [one.text for one in view.bookend_end] == ["9", "10"]
        view = await db.get_anchored_view(session, twelve[6], 1, 2, keep_roles=("tool",))
        assert shown(view.window) == ("5 6", 1, 0)
        assert [one.text for one in (*view.bookend_start, *view.bookend_end)] == ["2", "8", "11"]
        view = await db.get_anchored_view(session, twelve[5], 1, 2, keep_roles=None)
        assert [one.text for one in view.bookend_end] == ["10", "11"]
        view = await db.get_anchored_view(session, twelve[5], 20, 2)
        assert (view.bookend_start, view.bookend_end) == ((), ())

    async def test_what_people_said_last_comes_first(
        self, db: SessionDB, session: str, clock: FakeClock
    ) -> None:
        ids = await db.append_messages(
            session,
            [
                Message("user", "first\n" + "x" * 90),
                Message("user", "seen", observed=True),
                Message("assistant", "hm"),
                Message("user", None),
            ],
        )
        now = clock.now()
        assert await db.list_recent_user_messages(session) == [
            UserTurn(ids[3], 4, now, ""),
            UserTurn(ids[0], 1, now, "first " + "x" * 71 + "..."),
        ]
        assert len(await db.list_recent_user_messages(session, 1)) == 1


async def said(db: SessionDB, session: str, **options: Any) -> list[Any]:
    """Return the messages that a model is sent."""
    return [row["content"] for row in await db.get_messages_as_conversation(session, **options)]


def exchange(*texts: str) -> list[Message]:
    """Return messages of a person and a model in turn."""
    return [Message(("user", "assistant")[at % 2], text) for at, text in enumerate(texts)]


async def continued(
    db: SessionDB, parent: str, child: str, relation: Relation = Relation.CONTINUATION
) -> str:
    """Create a session that comes from another."""
    return await db.create_session(child, "cli", parent_session_id=parent, relation=relation)


class ConversationsContract(DatabaseContract):
    """Tests the conversation that goes to a model."""

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
