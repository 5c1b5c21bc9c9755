"""Messages are taken back, brought back, replaced, and changed where they were said."""

from __future__ import annotations

from typing import Any

import pytest

from gateway_sessions import (
    Hidden,
    InvalidInputError,
    Message,
    MessageVersion,
    NothingToUndoError,
    Rewind,
    SessionDB,
    SessionNotFoundError,
)
from gateway_sessions.testing import FakeClock


async def contents(db: SessionDB, session: str, **options: Any) -> list[Any]:
    return [one.content for one in await db.get_messages(session, **options)]


@pytest.fixture
async def talk(db: SessionDB, session: str) -> list[int]:
    """Three turns with their answers."""
    return await db.append_messages(
        session, [Message(("user", "assistant")[at % 2], text) for at, text in enumerate("aAbBcC")]
    )


class TestRewinding:
    async def test_the_last_turn_is_taken_back(self, db: SessionDB, session: str, talk: list[int]):
        assert await db.rewind_session(session) == Rewind(2, 1, "c", talk[4], talk[3])
        assert await contents(db, session) == ["a", "A", "b", "B"]

    async def test_of_too_many_turns_all_are_taken_back(self, db: SessionDB, session: str, talk: list[int]):
        assert await db.rewind_session(session, 9) == Rewind(6, 3, "a", talk[0], None)
        assert await db.rewind_session(session) is None
        assert (await db.get_messages(session, include_hidden=True))[0].hidden_because is Hidden.REWOUND

    async def test_a_message_is_taken_back_with_all_that_followed(
        self, db: SessionDB, session: str, talk: list[int]
    ):
        assert (await db.rewind_to_message(session, talk[2])).rewound_count == 4
        assert await db.rewind_to_message(session, talk[2]) == Rewind(0, 0, "b", talk[2], talk[1])

    async def test_only_what_a_person_said_there_can_be_gone_back_to(
        self, db: SessionDB, session: str, talk: list[int]
    ):
        await db.create_session("other", "cli")
        for where, message_id in ((session, talk[1]), (session, 1), ("other", talk[0])):
            with pytest.raises(InvalidInputError):
                await db.rewind_to_message(where, message_id)

    async def test_rewinds_are_undone_one_by_one(self, db: SessionDB, session: str, talk: list[int]):
        await db.rewind_session(session)
        await db.rewind_session(session)
        assert await db.restore_rewound(session) == 2
        assert await contents(db, session) == ["a", "A", "b", "B"]
        assert await db.restore_rewound(session) == 2
        assert await contents(db, session) == list("aAbBcC")
        with pytest.raises(NothingToUndoError):
            await db.restore_rewound(session)

    async def test_what_was_taken_back_stays_so_once_the_conversation_goes_on(
        self, db: SessionDB, session: str, talk: list[int]
    ):
        await db.rewind_session(session)
        await db.append_message(session, "user", "chatter", observed=True)
        await db.append_message(session, "session_meta", "{}")
        assert await db.restore_rewound(session) == 2
        await db.rewind_session(session)
        await db.append_message(session, "user", "d")
        with pytest.raises(NothingToUndoError, match="gone on"):
            await db.restore_rewound(session)
        assert await contents(db, session) == ["a", "A", "b", "B", "d"]

    async def test_what_was_retracted_meanwhile_does_not_come_back(self, db: SessionDB, session: str):
        await db.append_message(session, "user", "oops", platform_message_id="1")
        await db.append_message(session, "assistant", "A")
        await db.rewind_session(session)
        await db.retract_message(session, "1")
        assert await db.restore_rewound(session) == 1
        assert await contents(db, session) == ["A"]


class TestReplacing:
    async def test_what_is_hidden_survives_a_replacement(self, db: SessionDB, session: str, talk: list[int]):
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
        self, db: SessionDB, session: str, talk: list[int]
    ):
        for call in (db.replace_messages, db.archive_and_compact):
            with pytest.raises(InvalidInputError):
                await call(session, [Message("user", "x"), Message("user", [float("inf")])])
        assert await contents(db, session, include_hidden=True) == list("aAbBcC")

    async def test_nothing_is_left_of_what_is_cleared(self, db: SessionDB, session: str, talk: list[int]):
        await db.rewind_session(session)
        assert await db.clear_messages(session) == 6
        assert await contents(db, session, include_hidden=True) == []
        assert await db.clear_messages(session) == 0


class TestPlatforms:
    async def test_an_edit_is_told_from_then_on_and_the_former_text_is_kept(
        self, db: SessionDB, session: str, fake_clock: FakeClock
    ):
        message_id = await db.append_message(
            session, "user", "helo", platform_message_id="1", api_content="helo, today"
        )
        assert await db.edit_message(session, "1", "hello") is True
        assert await db.edit_message(session, "1", "hello") is False
        assert await db.edit_message(session, "1", [{"type": "text", "text": "hello!"}]) is True
        (message,) = await db.get_messages(session)
        assert (message.content, message.edited_at) == (
            [{"type": "text", "text": "hello!"}],
            fake_clock.now(),
        )
        assert message.api_content is None
        assert await db.get_message_versions(session, message_id) == [
            MessageVersion(1, "helo", fake_clock.now()),
            MessageVersion(2, "hello", fake_clock.now()),
        ]

    async def test_what_nobody_has_stored_is_neither_edited_nor_retracted(self, db: SessionDB, session: str):
        assert await db.edit_message(session, "1", "x") is False
        assert await db.retract_message(session, "1") is False
        assert await db.has_platform_message_id(session, "1") is False

    async def test_a_retracted_message_is_hidden_and_still_known(self, db: SessionDB, session: str):
        await db.append_messages(session, [Message("user", "x", platform_message_id="1")] * 2)
        assert await db.retract_message(session, "1") is True
        assert await db.retract_message(session, "1") is False
        assert await contents(db, session) == []
        assert await db.has_platform_message_id(session, "1") is True


async def test_a_session_that_is_not_there_is_an_error(db: SessionDB):
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
