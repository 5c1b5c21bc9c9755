"""From any session to where its conversation began, goes on, or spread."""

from __future__ import annotations

import pytest

from gateway_sessions import SessionDB, SessionNotFoundError
from gateway_sessions.testing.contract.database import DatabaseContract
from gateway_sessions.testing.contract.talks import record, split, talk


class LineageContract(DatabaseContract):
    """Roots, tips, lines and families of sessions."""

    async def test_a_session_that_was_never_compressed_is_its_own_line(self, db: SessionDB) -> None:
        await talk(db, "a", "hello")
        assert await db.get_compression_tip("a") == await db.get_conversation_root("a") == "a"
        assert await db.get_compression_lineage("a") == ["a"]
        assert await db.get_session_family("a") == ["a"]

    async def test_an_unknown_session_is_its_own_line(self, db: SessionDB) -> None:
        assert await db.get_compression_tip("x") == await db.get_conversation_root("x") == "x"
        assert await db.get_compression_lineage("x") == ["x"]
        assert await db.get_session_family("x") == ["x"]
        assert await db.resolve_resume_session_id("x") == "x"

    async def test_all_sessions_of_a_line_know_all_of_it(self, db: SessionDB) -> None:
        await talk(db, "a", "hello")
        await split(db, "a", "b", "c", "d")
        for one in "abcd":
            assert await db.get_compression_lineage(one) == ["a", "b", "c", "d"]
            assert await db.get_compression_tip(one) == "d"
            assert await db.get_conversation_root(one) == "a"

    async def test_only_compressions_are_followed_to_the_tip(self, db: SessionDB) -> None:
        await talk(db, "a", "hello")
        await db.end_session("a", "session_reset")
        await talk(db, "b", parent_session_id="a", relation="succession")
        await talk(db, "c", parent_session_id="a", relation="branch")
        await talk(db, "d", parent_session_id="a", relation="delegate")
        assert await db.get_compression_tip("a") == "a"
        assert await db.resolve_resume_session_id("a") == "a"

    async def test_a_session_that_was_reopened_goes_on_by_itself(self, db: SessionDB) -> None:
        await talk(db, "a", "hello")
        await split(db, "a", "b")
        await db.reopen_session("a")
        assert await db.get_compression_tip("a") == "a"
        assert await db.get_compression_lineage("b") == ["b"]

    async def test_a_session_made_by_hand_for_a_compressed_one_continues_it(self, db: SessionDB) -> None:
        await talk(db, "a", "hello")
        await db.end_session("a", "compression")
        await talk(db, "t", parent_session_id="a", source="tool")
        await talk(db, "d", parent_session_id="a", model_config={"_delegate_from": "a"})
        assert await db.get_compression_tip("a") == "a"
        await talk(db, "b", parent_session_id="a")
        await talk(db, "c", parent_session_id="a")
        assert await db.get_compression_tip("a") == "b"
        assert (await record(db, "c")).relation == "succession"

    async def test_a_family_is_all_that_came_from_one_session_but_for_resets(self, db: SessionDB) -> None:
        await talk(db, "a", "hello")
        await split(db, "a", "b")
        await db.branch_session("b", "c")
        await talk(db, "d", parent_session_id="c", relation="delegate")
        await talk(db, "e", parent_session_id="b", relation="succession")
        for one in "abcd":
            assert await db.get_session_family(one) == ["a", "b", "c", "d"]
            assert await db.get_conversation_root(one) == "a"
        assert await db.get_session_family("e") == ["e"]

    @pytest.mark.parametrize("nothing", [None, ""])
    async def test_for_nothing_there_is_nothing_to_resume(self, db: SessionDB, nothing: str | None) -> None:
        assert await db.resolve_resume_session_id(nothing) == nothing

    async def test_the_latest_of_the_line_with_messages_is_resumed(self, db: SessionDB) -> None:
        await talk(db, "a", "hello")
        await split(db, "a", "b", "c")
        assert await db.resolve_resume_session_id("a") == "c"
        await db.clear_messages("c")
        assert await db.resolve_resume_session_id("a") == "b"
        assert await db.resolve_resume_session_id("c") == "c"

    async def test_the_whole_line_is_archived(self, db: SessionDB) -> None:
        await talk(db, "a", "hello")
        await split(db, "a", "b", "c")
        await db.branch_session("c", "d")
        for archived in (True, False):
            await db.set_session_archived("b", archived=archived)
            flags = [(await record(db, one)).archived for one in "abcd"]
            assert flags == [archived, archived, archived, False]

    async def test_what_is_not_there_cannot_be_archived(self, db: SessionDB) -> None:
        with pytest.raises(SessionNotFoundError):
            await db.set_session_archived("x")
