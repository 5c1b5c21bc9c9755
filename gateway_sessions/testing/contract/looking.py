"""Looking around a message, at both ends of a session, and at what people said last."""

from __future__ import annotations

import pytest_asyncio

from gateway_sessions import AnchoredView, Message, MessageWindow, SessionDB, UserTurn
from gateway_sessions.testing.clock import FakeClock
from gateway_sessions.testing.contract.database import DatabaseContract


def shown(window: MessageWindow) -> tuple[str, int, int]:
    """What a window shows, and how much of it stands before and after the message."""
    return " ".join(one.text for one in window.messages), window.messages_before, window.messages_after


class LookingContract(DatabaseContract):
    """Views of a part of a transcript."""

    @pytest_asyncio.fixture
    async def twelve(self, db: SessionDB, session: str) -> list[int]:
        """The ids of twelve messages, of which each third is a tool's."""
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
