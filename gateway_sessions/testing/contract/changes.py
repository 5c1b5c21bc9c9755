"""Messages are taken back, brought back, replaced, and changed where they were said."""

from __future__ import annotations

import pytest
import pytest_asyncio

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
from gateway_sessions.testing.clock import FakeClock
from gateway_sessions.testing.contract.database import DatabaseContract
from gateway_sessions.testing.contract.talks import contents


class ChangesContract(DatabaseContract):
    """Changes of a transcript: each of them can be told, and most of them undone."""

    @pytest_asyncio.fixture
    async def three_turns(self, db: SessionDB, session: str) -> list[int]:
        """The ids of three turns and their answers."""
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
        assert await contents(db, session) == ["a", "A", "b", "B", "d"]

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
