"""From any session to where its conversation began, goes on, or spread; whatever the table holds."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from gateway_sessions import SessionNotFoundError
from tests.unit.storage.sessions.talks import execute, split, talk

pytestmark = pytest.mark.asyncio(loop_scope="module")


class TestLines:
    async def test_a_session_that_was_never_compressed_is_its_own_line(self, db):
        await talk(db, "a", "hello")
        assert await db.get_compression_tip("a") == await db.get_conversation_root("a") == "a"
        assert await db.get_compression_lineage("a") == ["a"]
        assert await db.get_session_family("a") == ["a"]

    async def test_an_unknown_session_is_its_own_line(self, db):
        assert await db.get_compression_tip("x") == await db.get_conversation_root("x") == "x"
        assert await db.get_compression_lineage("x") == ["x"]
        assert await db.get_session_family("x") == ["x"]
        assert await db.resolve_resume_session_id("x") == "x"

    async def test_all_sessions_of_a_line_know_all_of_it(self, db):
        await talk(db, "a", "hello")
        await split(db, "a", "b", "c", "d")
        for one in "abcd":
            assert await db.get_compression_lineage(one) == ["a", "b", "c", "d"]
            assert await db.get_compression_tip(one) == "d"
            assert await db.get_conversation_root(one) == "a"

    async def test_hundreds_of_compressions_are_followed(self, db):
        many(db, [(f"s{n:04}", f"s{n - 1:04}" if n else None) for n in range(1_500)])
        assert await db.get_compression_tip("s0000") == "s1499"
        assert await db.get_conversation_root("s1499") == "s0000"
        assert len(await db.get_compression_lineage("s0700")) == 1_500

    async def test_only_compressions_are_followed_to_the_tip(self, db):
        await talk(db, "a", "hello")
        await db.end_session("a", "session_reset")
        await talk(db, "b", parent_session_id="a", relation="succession")
        await talk(db, "c", parent_session_id="a", relation="branch")
        await talk(db, "d", parent_session_id="a", relation="delegate")
        assert await db.get_compression_tip("a") == "a"
        assert await db.resolve_resume_session_id("a") == "a"

    async def test_a_session_that_was_reopened_goes_on_by_itself(self, db):
        await talk(db, "a", "hello")
        await split(db, "a", "b")
        await db.reopen_session("a")
        assert await db.get_compression_tip("a") == "a"
        assert await db.get_compression_lineage("b") == ["b"]

    async def test_damage_is_survived(self, db):
        many(db, [("a", "b"), ("b", "a"), ("c", "c"), ("d", "gone"), ("e", "d")])
        for one, line in {"a": ["a", "b"], "b": ["a", "b"], "c": ["c"], "d": ["d", "e"]}.items():
            assert await db.get_compression_lineage(one) == line
            assert await db.get_conversation_root(one) == line[0]
            assert await db.get_session_family(one) == line
            assert await db.resolve_resume_session_id(one) == one

    async def test_a_session_made_by_hand_for_a_compressed_one_continues_it(self, db):
        await talk(db, "a", "hello")
        await db.end_session("a", "compression")
        await talk(db, "t", parent_session_id="a", source="tool")
        await talk(db, "d", parent_session_id="a", model_config={"_delegate_from": "a"})
        assert await db.get_compression_tip("a") == "a"
        await talk(db, "b", parent_session_id="a")
        await talk(db, "c", parent_session_id="a")
        assert await db.get_compression_tip("a") == "b"
        assert (await db.get_session("c")).relation == "succession"


class TestFamilies:
    async def test_a_family_is_all_that_came_from_one_session_but_for_resets(self, db):
        await talk(db, "a", "hello")
        await split(db, "a", "b")
        await db.branch_session("b", "c")
        await talk(db, "d", parent_session_id="c", relation="delegate")
        await talk(db, "e", parent_session_id="b", relation="succession")
        for one in "abcd":
            assert await db.get_session_family(one) == ["a", "b", "c", "d"]
            assert await db.get_conversation_root(one) == "a"
        assert await db.get_session_family("e") == ["e"]


class TestResuming:
    @pytest.mark.parametrize("nothing", [None, ""])
    async def test_nothing_is_given_back(self, db, nothing):
        assert await db.resolve_resume_session_id(nothing) == nothing

    async def test_the_latest_of_the_line_with_messages_is_resumed(self, db):
        await talk(db, "a", "hello")
        await split(db, "a", "b", "c")
        assert await db.resolve_resume_session_id("a") == "c"
        execute(db, "UPDATE totals SET message_count = 0 WHERE session_id = 'c'")
        assert await db.resolve_resume_session_id("a") == "b"
        assert await db.resolve_resume_session_id("c") == "c"


class TestArchive:
    async def test_the_whole_line_is_archived(self, db):
        await talk(db, "a", "hello")
        await split(db, "a", "b", "c")
        await db.branch_session("c", "d")
        for archived in (True, False):
            await db.set_session_archived("b", archived=archived)
            flags = execute(db, "SELECT archived FROM sessions ORDER BY session_id")
            assert flags == [(int(archived),)] * 3 + [(0,)]

    async def test_what_is_not_there_cannot_be_archived(self, db):
        with pytest.raises(SessionNotFoundError):
            await db.set_session_archived("x")


def many(db, rows) -> None:
    """Compressed sessions and what they say they continue, whether that makes sense or not."""
    with closing(sqlite3.connect(db.path)) as database:
        database.executemany(
            "INSERT INTO sessions"
            " (session_id, parent_session_id, owner, source, relation, started_at, end_reason)"
            " VALUES (?, ?, 'main:cli:user:alice', 'cli', 'continuation', 1, 'compression')",
            rows,
        )
        database.commit()
