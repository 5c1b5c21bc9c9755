"""Contract tests of session records, lineage, compressions and branches."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, Final

import pytest

from gateway_sessions import InvalidInputError, Message, Scope, SessionDB, SessionNotFoundError
from gateway_sessions.errors import InvalidSessionIdError, SessionEndedError
from gateway_sessions.sessions import Relation, SessionRecord
from gateway_sessions.testing.clock import FakeClock
from gateway_sessions.testing.contract.database.bench import (
    EVERYTHING,
    SUMMARY,
    DatabaseContract,
    contents,
    everything,
    record,
    split,
    talk,
    there,
)


class SessionRowsContract(DatabaseContract):
    """Tests that sessions are created once, ended once, and counted as far as a scope shows them."""

    async def test_a_session_is_what_it_was_made_as(self, db: SessionDB, clock: FakeClock) -> None:
        settings = {"temperature": 0.5}
        await db.create_session(
            "s",
            "cli",
            model="m",
            model_config=settings,
            system_prompt="be kind",
            user_id="a:b",
            extra={"cwd": "/"},
        )
        assert await db.get_session("s") == SessionRecord(
            "s",
            "cli",
            "main:cli:user:a%3Ab",
            clock.now(),
            clock.now(),
            user_id="a:b",
            model="m",
            model_config=settings,
            system_prompt="be kind",
            extra={"cwd": "/"},
        )
        assert await db.get_session("other") is None

    async def test_making_a_session_again_only_fills_in_what_was_not_known(
        self, db: SessionDB, session: str
    ) -> None:
        await db.create_session("parent", "cli")
        assert await db.ensure_session(session) == session
        await db.create_session(session, "web", user_id="mallory", model="m", parent_session_id="parent")
        await db.create_session(
            session, "web", model="n", system_prompt="p", session_key="agent:main:cli:dm:x"
        )
        found = await record(db, session)
        assert (found.source, found.user_id, found.owner) == ("cli", "alice", "main:cli:user:alice")
        assert (found.model, found.system_prompt, found.session_key) == ("m", "p", "agent:main:cli:dm:x")
        assert (found.parent_session_id, found.relation) == ("parent", Relation.SUCCESSION)
        await db.create_session("third", "cli")
        await db.create_session(session, "cli", parent_session_id="third", relation=Relation.BRANCH)
        found = await record(db, session)
        assert (found.parent_session_id, found.relation) == ("parent", Relation.SUCCESSION)

    async def test_a_session_of_nobody_belongs_to_whoever_sits_there(self, db: SessionDB) -> None:
        assert await db.ensure_session("s") == "s"
        assert (await record(db, "s")).owner == "main:unknown:local"

    @pytest.mark.parametrize(
        ("marker", "relation"), [("_branched_from", Relation.BRANCH), ("_delegate_from", Relation.DELEGATE)]
    )
    async def test_a_marker_in_the_settings_says_how_a_session_came_about(
        self, db: SessionDB, session: str, marker: str, relation: Relation
    ) -> None:
        await db.create_session("child", "cli", parent_session_id=session, model_config={marker: session})
        assert (await record(db, "child")).relation is relation

    async def test_descent_stays_a_tree(self, db: SessionDB, session: str) -> None:
        await db.create_session("child", "cli", parent_session_id=session, relation="continuation")
        for parent in ("child", session):
            with pytest.raises(InvalidInputError, match="descendant"):
                await db.create_session(session, "cli", parent_session_id=parent)
        with pytest.raises(SessionNotFoundError):
            await db.create_session("x", "cli", parent_session_id="gone")
        with pytest.raises(InvalidInputError, match="goes on in 'child'"):
            await db.create_session("x", "cli", parent_session_id=session, relation="continuation")
        assert (
            await db.create_session("child", "cli", parent_session_id=session, relation="continuation")
            == "child"
        )
        assert await db.get_session("x") is None

    async def test_a_session_that_cannot_be_stored_is_refused(self, db: SessionDB, session: str) -> None:
        for call in (
            db.create_session("../x", "cli"),
            db.create_session("x", ""),
            db.create_session("x", "cli", user_id="a\nb"),
            db.create_session("x", "cli", session_key=""),
            db.create_session("x", "cli", model_config={"a": float("nan")}),
            db.create_session("x", "cli", started_at="soon"),  # type: ignore[arg-type]  # what a caller gets wrong
            db.create_session("x", "cli", parent_session_id=session, relation="cousin"),
            db.end_session(session, "two\nlines"),
        ):
            with pytest.raises(InvalidInputError):
                await call
        assert await db.session_count(scope=EVERYTHING) == 1

    async def test_the_first_end_of_a_session_stands_until_it_goes_on(
        self, db: SessionDB, session: str, clock: FakeClock
    ) -> None:
        assert await db.reopen_session(session) is False
        assert await db.end_session(session, "user_exit") is True
        assert await db.end_session(session, "other") is False
        found = await record(db, session)
        assert (found.end_reason, found.ended_at) == ("user_exit", clock.now())
        assert await db.reopen_session(session) is True
        assert await db.end_session(session, "again") is True
        assert (await record(db, session)).end_reason == "again"

    async def test_settings_can_be_changed_at_any_time(self, db: SessionDB, session: str) -> None:
        await db.update_system_prompt(session, "p")
        await db.update_session_model(session, "m", {"t": 1})
        await db.update_session_model(session, "n")
        await db.set_session_pinned(session)
        await db.set_session_archived(session)
        found = await record(db, session)
        assert (found.system_prompt, found.model, found.model_config) == ("p", "n", {"t": 1})
        assert (found.pinned, found.archived) == (True, True)
        await db.set_session_pinned(session, pinned=False)
        await db.set_session_archived(session, archived=False)
        await db.update_system_prompt(session, None)
        found = await record(db, session)
        assert (found.system_prompt, found.pinned, found.archived) == (None, False, False)

    async def test_the_first_prompt_of_a_session_is_noted_once(self, db: SessionDB, session: str) -> None:
        assert await db.note_system_prompt(session, "first") is True
        assert await db.note_system_prompt(session, "second") is False
        assert (await record(db, session)).system_prompt == "first"
        assert await db.note_system_prompt("gone", "first") is False

    async def test_sessions_are_counted_as_far_as_one_may_see_them(self, db: SessionDB, session: str) -> None:
        await db.append_message(session, "user", "x")
        await db.create_session("b", "web", user_id="bob", session_key="lane")
        await db.create_session("c", "cli")
        await db.set_session_archived("c")
        assert await db.session_count(scope=EVERYTHING) == 2
        assert await db.session_count(scope=EVERYTHING, include_archived=True) == 3
        assert await db.session_count("cli", scope=EVERYTHING) == 1
        assert await db.session_count(scope=EVERYTHING, min_message_count=1) == 1
        assert await db.session_count(scope=Scope(owners=frozenset({"main:cli:user:alice"}))) == 1
        assert await db.session_count(scope=Scope.lane("lane")) == 1
        assert await db.session_count("cli", scope=Scope.lane("lane")) == 0

    async def test_a_session_began_when_its_maker_says(self, db: SessionDB, clock: FakeClock) -> None:
        await db.create_session("old", "cli", started_at=1_000_000_000)
        await db.append_message("old", "user", "x", timestamp=1_000_000_005)
        found = await record(db, "old")
        assert found.last_active - found.started_at == timedelta(seconds=5)
        await db.append_messages("old", [Message("user", "y")])
        assert (await record(db, "old")).last_active == clock.now()


class LineageContract(DatabaseContract):
    """Tests roots, tips, conversations and families of sessions."""

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


KEPT: Final = (
    "session_key",
    "owner",
    "source",
    "user_id",
    "model",
    "model_config",
    "system_prompt",
    "pinned",
    "extra",
)


class SplittingContract(DatabaseContract):
    """Tests compressions and branches: each is done as a whole or not at all, and loses no message."""

    async def test_a_summary_goes_on_in_a_new_session(self, db: SessionDB, clock: FakeClock) -> None:
        await talk(db, "a", "one", "two")
        clock.step(timedelta(minutes=1))
        assert await db.split_session("a", "b", SUMMARY) == "b"
        old, new = await record(db, "a"), await record(db, "b")
        assert (old.end_reason, old.ended_at) == ("compression", clock.now())
        assert (new.parent_session_id, new.relation, new.ended_at) == ("a", "continuation", None)
        assert new.started_at == new.last_active == clock.now()
        assert await contents(db, "b") == ["what we said so far"]

    async def test_a_split_leaves_the_original_as_it_was(self, db: SessionDB) -> None:
        await talk(db, "a", "one", "two")
        before = await db.get_messages("a")
        await split(db, "a", "b")
        assert await db.get_messages("a") == before
        assert (await record(db, "a")).message_count == 2

    async def test_a_split_keeps_all_that_says_where_a_session_belongs(self, db: SessionDB) -> None:
        await talk(
            db, "a", "hello", session_key="lane:a", model="m", model_config={"t": 1}, system_prompt="be kind",
            extra={"cwd": "/home"},
        )  # fmt: skip
        await db.set_session_pinned("a")
        await split(db, "a", "b")
        old, new = await record(db, "a"), await record(db, "b")
        assert [getattr(new, one) for one in KEPT] == [getattr(old, one) for one in KEPT]
        assert new.preview == "hello"

    async def test_model_and_prompt_may_change_with_a_split(self, db: SessionDB) -> None:
        await talk(db, "a", "hello", model="m", system_prompt="be kind")
        await db.split_session("a", "b", SUMMARY, model="n", system_prompt="be brief")
        new = await record(db, "b")
        assert (new.model, new.system_prompt) == ("n", "be brief")

    async def test_a_split_numbers_titles(self, db: SessionDB) -> None:
        await talk(db, "a", "hello")
        await db.set_session_title("a", "Trip")
        await split(db, "a", "b", "c")
        assert [await db.get_session_title(one) for one in "abc"] == ["Trip", "Trip #2", "Trip #3"]
        assert (await record(db, "c")).title_by == "lineage"

    async def test_without_a_title_there_is_none_to_number(self, db: SessionDB) -> None:
        await talk(db, "a", "hello")
        await split(db, "a", "b")
        assert await db.get_session_title("b") is None

    async def test_of_many_splits_at_once_one_makes_the_continuation_and_all_learn_of_it(
        self, db: SessionDB
    ) -> None:
        await talk(db, "a", "hello")
        await db.set_session_title("a", "Trip")
        children = await asyncio.gather(*(db.split_session("a", f"b{n}", SUMMARY) for n in range(16)))
        assert len(set(children)) == 1
        assert await there(db) == {"a", children[0]}
        assert await db.get_compression_tip("a") == children[0]

    async def test_splitting_again_changes_nothing(self, db: SessionDB) -> None:
        await talk(db, "a", "hello")
        await split(db, "a", "b")
        before = await everything(db)
        assert await db.split_session("a", "b", SUMMARY) == "b"
        assert await db.split_session("a", "c", SUMMARY) == "b"
        assert await everything(db) == before

    async def test_who_goes_back_to_the_original_may_compress_it_again(self, db: SessionDB) -> None:
        await talk(db, "a", "hello")
        await split(db, "a", "b")
        await db.reopen_session("a")
        assert await db.split_session("a", "c", SUMMARY) == "c"
        assert await db.split_session("a", "d", SUMMARY) == "c"
        assert await db.get_compression_lineage("a") == ["a", "c"]
        assert (await record(db, "b")).relation == "branch"
        assert await db.get_session_family("b") == ["a", "b", "c"]

    async def test_an_original_whose_continuation_was_deleted_may_be_compressed_again(
        self, db: SessionDB
    ) -> None:
        await talk(db, "a", "hello")
        await split(db, "a", "b")
        await db.delete_session("b")
        assert await db.split_session("a", "c", SUMMARY) == "c"
        assert await db.get_compression_tip("a") == "c"

    async def test_an_unknown_session_is_not_split(self, db: SessionDB) -> None:
        with pytest.raises(SessionNotFoundError):
            await db.split_session("x", "b", SUMMARY)

    async def test_a_session_that_ended_otherwise_is_not_split(self, db: SessionDB) -> None:
        await talk(db, "a", "hello")
        await db.end_session("a", "session_reset")
        before = await everything(db)
        with pytest.raises(SessionEndedError) as caught:
            await db.split_session("a", "b", SUMMARY)
        assert (caught.value.session_id, caught.value.end_reason) == ("a", "session_reset")
        assert await everything(db) == before

    @pytest.mark.parametrize("new_id", ["", "../b", "a b", "taken", "a"])
    async def test_a_bad_or_taken_id_is_refused_by_splits_and_branches(
        self, db: SessionDB, new_id: str
    ) -> None:
        await talk(db, "a", "hello")
        await talk(db, "taken")
        before = await everything(db)
        for ask in (db.split_session("a", new_id, SUMMARY), db.branch_session("a", new_id)):
            with pytest.raises(InvalidSessionIdError):
                await ask
        assert await everything(db) == before

    @pytest.mark.parametrize("summary", [[], [{"content": "who says so?"}], [{"role": "user", "content": 5}]])
    async def test_a_bad_summary_is_refused_and_nothing_has_changed(
        self, db: SessionDB, summary: list[dict[str, Any]]
    ) -> None:
        await talk(db, "a", "hello")
        before = await everything(db)
        with pytest.raises(InvalidInputError):
            await db.split_session("a", "b", summary)
        assert await everything(db) == before

    async def test_a_branch_has_a_copy_and_the_original_goes_on(self, db: SessionDB) -> None:
        await talk(db, "a", "one", "two")
        await db.set_session_title("a", "Trip")
        assert await db.branch_session("a", "b") == "b"
        await db.append_message("a", "user", "three")
        assert await contents(db, "a") == ["one", "two", "three"]
        assert await contents(db, "b") == ["one", "two"]
        old, new = await record(db, "a"), await record(db, "b")
        assert (old.ended_at, new.relation, new.parent_session_id) == (None, "branch", "a")
        assert (new.message_count, new.preview, new.title) == (2, "one", "Trip #2")

    async def test_a_copied_message_has_an_id_of_its_own_and_all_else_as_it_was(self, db: SessionDB) -> None:
        await talk(db, "a")
        call = {"id": "c", "function": {"name": "look", "arguments": "{}"}}
        await db.append_message("a", "assistant", [{"type": "text", "text": "hm"}], tool_calls=[call])
        await db.append_message("a", "tool", "seen", tool_call_id="c", reasoning_details={"x": [1, None]})
        await db.branch_session("a", "b")
        old, new = await db.get_messages("a"), await db.get_messages("b")
        assert {one.message_id for one in old}.isdisjoint(one.message_id for one in new)
        mine = {"message_id": 0, "session_id": ""}
        assert [one.altered(**mine) for one in new] == [one.altered(**mine) for one in old]

    async def test_a_branch_ends_with_the_message_it_is_asked_for(self, db: SessionDB) -> None:
        await talk(db, "a", "one", "two", "three")
        at = (await db.get_messages("a"))[1].message_id
        await db.branch_session("a", "b", at_message_id=at)
        assert await contents(db, "b") == ["one", "two"]

    async def test_a_branch_copies_nothing_that_is_hidden(self, db: SessionDB) -> None:
        await talk(db, "a", "one")
        await db.append_message("a", "user", "two", platform_message_id="2")
        await db.append_messages("a", [Message("user", "three"), Message("user", "four")])
        await db.retract_message("a", "2")
        await db.rewind_session("a")
        await db.branch_session("a", "b")
        assert await contents(db, "b", include_hidden=True) == ["one", "three"]

    async def test_an_empty_session_has_an_empty_branch(self, db: SessionDB) -> None:
        await talk(db, "a")
        assert await db.branch_session("a", "b") == "b"
        assert await contents(db, "b") == []

    async def test_a_message_of_another_session_is_no_place_to_branch(self, db: SessionDB) -> None:
        await talk(db, "a", "one")
        await talk(db, "b", "two")
        at = (await db.get_messages("b"))[0].message_id
        with pytest.raises(InvalidInputError, match="none of session 'a'"):
            await db.branch_session("a", "c", at_message_id=at)
        assert await db.get_session("c") is None

    async def test_an_unknown_session_has_no_branches(self, db: SessionDB) -> None:
        with pytest.raises(SessionNotFoundError):
            await db.branch_session("x", "b")

    async def test_branching_again_changes_nothing(self, db: SessionDB) -> None:
        await talk(db, "a", "one")
        await db.branch_session("a", "b")
        await db.append_message("a", "user", "two")
        before = await everything(db)
        assert await db.branch_session("a", "b") == "b"
        assert await everything(db) == before
