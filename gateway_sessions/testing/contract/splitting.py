"""Compressions and branches: one step each, all or nothing, and nothing is lost of what was said."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, Final

import pytest

from gateway_sessions import (
    InvalidInputError,
    InvalidSessionIdError,
    Message,
    SessionDB,
    SessionEndedError,
    SessionNotFoundError,
)
from gateway_sessions.testing.clock import FakeClock
from gateway_sessions.testing.contract.database import DatabaseContract
from gateway_sessions.testing.contract.talks import SUMMARY, contents, everything, record, split, talk, there

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
    """Sessions that come from others by a split or as a branch."""

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
