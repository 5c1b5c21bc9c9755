"""Contract tests of deletion, pruning and erasure.

After an erasure no trace of the person is left, and messages that they sent before are refused.
"""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest

from gateway_sessions import InvalidInputError, SessionDB
from gateway_sessions.errors import SentBeforeErasureError
from gateway_sessions.sessions import Relation
from gateway_sessions.testing.clock import FakeClock
from gateway_sessions.testing.contract.database.bench import (
    ALICE,
    EVERYTHING,
    DatabaseContract,
    contents,
    everything,
    found,
    in_order,
    listed,
    record,
    split,
    talk,
    there,
)


async def begin(
    db: SessionDB,
    clock: FakeClock,
    session_id: str,
    *,
    days: float,
    messages: int = 1,
    ended: bool = True,
    **members: Any,
) -> None:
    """Create a session that began and was last used so many days ago, and has ended or not."""
    began = clock.now() - timedelta(days=days)
    await db.create_session(session_id, "telegram", started_at=began, **members)
    await db.append_messages(
        session_id,
        [{"role": "user", "content": f"hello {n}", "timestamp": began.timestamp()} for n in range(messages)],
    )
    if ended:
        await db.end_session(session_id, "done")


class RetentionContract(DatabaseContract):
    """Tests deletion and pruning."""

    async def test_nothing_of_a_deleted_session_is_found_any_more(
        self, db: SessionDB, clock: FakeClock
    ) -> None:
        await begin(db, clock, "a", days=3, messages=3)
        await begin(db, clock, "b", days=3)
        await db.set_session_title("a", "Trip")
        await db.record_usage("a", "e1", input_tokens=3)
        before = [one for one in await everything(db) if one["id"] == "b"]
        await db.catch_up_search_index()
        assert await db.delete_session("a") is True
        assert await db.delete_session("a") is False
        assert await everything(db) == before
        assert await db.get_session("a") is None
        assert [hit.session_id for hit in (await db.search_messages("hello", scope=EVERYTHING)).hits] == ["b"]
        assert await db.set_session_title("b", "Trip")
        assert await db.record_usage("b", "e1", input_tokens=5)

    async def test_a_deleted_session_takes_its_sub_agents_along_and_leaves_other_children(
        self, db: SessionDB, clock: FakeClock
    ) -> None:
        await begin(db, clock, "a", days=3)
        await begin(db, clock, "delegate", days=3, parent_session_id="a", relation=Relation.DELEGATE)
        await begin(db, clock, "deeper", days=3, parent_session_id="delegate", relation=Relation.DELEGATE)
        await begin(db, clock, "branch", days=3, parent_session_id="a", relation=Relation.BRANCH)
        await begin(db, clock, "next", days=3, parent_session_id="a", relation=Relation.CONTINUATION)
        assert await db.delete_session("a")
        assert await there(db) == {"branch", "next"}
        for one in ("branch", "next"):
            left = await record(db, one)
            assert (left.parent_session_id, left.relation) == (None, None)

    async def test_several_are_deleted_and_counted_once(self, db: SessionDB, clock: FakeClock) -> None:
        for name in "abc":
            await begin(db, clock, name, days=3)
        assert await db.delete_sessions(["a", "b", "a", "unknown"]) == 2
        assert await there(db) == {"c"}

    async def test_pruning_goes_by_the_last_message(self, db: SessionDB, clock: FakeClock) -> None:
        await begin(db, clock, "abandoned", days=100, ended=False)
        await begin(db, clock, "ended", days=100)
        await begin(db, clock, "old-but-used", days=100)
        await db.append_message("old-but-used", "user", "again", timestamp=clock.now() - timedelta(days=2))
        await begin(db, clock, "young", days=5)
        report = await db.prune_sessions()
        assert report.session_ids == ("ended",)
        assert (report.messages, report.dry_run, report.kept_in_use) == (1, False, ())
        assert await there(db) == {"abandoned", "old-but-used", "young"}

    async def test_what_nobody_has_ended_goes_only_when_that_is_asked_for(
        self, db: SessionDB, clock: FakeClock
    ) -> None:
        past: dict[str, Any] = {"parent_session_id": "first", "relation": Relation.CONTINUATION}
        below: dict[str, Any] = {"parent_session_id": "parent", "relation": Relation.DELEGATE}
        await begin(db, clock, "first", days=300)
        await begin(db, clock, "second", days=200, ended=False, **past)
        await begin(db, clock, "open", days=100, ended=False)
        await begin(db, clock, "parent", days=100)
        await begin(db, clock, "helper", days=100, ended=False, **below)
        assert set((await db.prune_sessions(dry_run=True)).session_ids) == {"parent", "helper"}
        report = await db.prune_sessions(max_count=0, older_than_days=None)
        assert report.session_ids == ("parent", "helper")
        asked = await db.prune_sessions(unended=True, dry_run=True)
        assert set(asked.session_ids) == {"first", "second", "open"}
        assert (await db.prune_sessions(unended=True)).session_ids == asked.session_ids
        assert await there(db) == set()

    async def test_of_many_the_oldest_go_first_and_as_many_as_are_asked_for(
        self, db: SessionDB, clock: FakeClock
    ) -> None:
        for number, name in enumerate("abcde"):
            await begin(db, clock, name, days=200 - number)
        await begin(db, clock, "young", days=5)
        assert (await db.prune_sessions(limit=2, dry_run=True)).session_ids == ("a", "b")
        assert (await db.prune_sessions(limit=2)).session_ids == ("a", "b")
        assert (await db.prune_sessions(limit=2, max_count=2)).session_ids == ("c", "d")
        assert (await db.prune_sessions(limit=2)).session_ids == ("e",)
        assert (await db.prune_sessions(limit=2)).session_ids == ()
        with pytest.raises(InvalidInputError, match="limit"):
            await db.prune_sessions(limit=0)
        assert await there(db) == {"young"}

    async def test_what_is_pinned_archived_or_of_another_kind_stays(
        self, db: SessionDB, clock: FakeClock
    ) -> None:
        await begin(db, clock, "pinned", days=100)
        await db.set_session_pinned("pinned")
        await begin(db, clock, "archived", days=100)
        await db.set_session_archived("archived")
        await db.create_session("elsewhere", "irc", started_at=clock.now() - timedelta(days=100))
        await db.end_session("elsewhere", "done")
        await begin(db, clock, "branch", days=100, parent_session_id="pinned", relation=Relation.BRANCH)
        assert (await db.prune_sessions(source="irc", dry_run=True)).session_ids == ("elsewhere",)
        assert (await db.prune_sessions(relation="branch", dry_run=True)).session_ids == ("branch",)
        assert (await db.prune_sessions(only_empty=True, dry_run=True)).session_ids == ("elsewhere",)
        assert set((await db.prune_sessions(include_archived=True, dry_run=True)).session_ids) == {
            "archived",
            "branch",
            "elsewhere",
        }
        assert set((await db.prune_sessions()).session_ids) == {"branch", "elsewhere"}
        assert await there(db) == {"pinned", "archived"}

    async def test_the_past_of_a_conversation_that_goes_on_stays(
        self, db: SessionDB, clock: FakeClock
    ) -> None:
        await begin(db, clock, "first", days=300)
        await begin(db, clock, "second", days=200, parent_session_id="first", relation=Relation.CONTINUATION)
        await begin(db, clock, "third", days=3, parent_session_id="second", relation=Relation.CONTINUATION)
        assert (await db.prune_sessions()).session_ids == ()
        assert (await db.prune_sessions(now=clock.now() + timedelta(days=100))).session_ids == (
            "first",
            "second",
            "third",
        )

    async def test_a_pinned_sub_agent_keeps_its_parent(self, db: SessionDB, clock: FakeClock) -> None:
        await begin(db, clock, "a", days=100)
        await begin(db, clock, "helper", days=100, parent_session_id="a", relation=Relation.DELEGATE)
        await db.set_session_pinned("helper")
        assert (await db.prune_sessions()).session_ids == ()
        await db.set_session_pinned("helper", pinned=False)
        assert sorted((await db.prune_sessions()).session_ids) == ["a", "helper"]

    async def test_the_oldest_go_beyond_a_number_or_a_size(self, db: SessionDB, clock: FakeClock) -> None:
        for days in range(2, 12):
            await begin(db, clock, f"s{days:02}", days=days)
        report = await db.prune_sessions(older_than_days=None, max_count=7)
        assert report.session_ids == ("s11", "s10", "s09")
        size = sum([(await record(db, one)).text_bytes for one in await there(db)])
        report = await db.prune_sessions(older_than_days=None, max_bytes=size // 2)
        assert report.session_ids == ("s08", "s07", "s06", "s05")
        assert len(await there(db)) == 3

    async def test_a_dry_run_names_exactly_what_a_prune_removes(
        self, db: SessionDB, clock: FakeClock
    ) -> None:
        pinned = await some_sessions(db, clock, random.Random(5))
        bounds: tuple[dict[str, Any], ...] = (
            {"older_than_days": 150},
            {"older_than_days": 120, "relation": "delegate"},
            {"older_than_days": None, "max_count": 20},
            {"older_than_days": None, "max_bytes": 150},
            {"older_than_days": 1, "only_empty": True},
            {"older_than_days": 1},
        )
        for bound in bounds:
            before = await there(db)
            dry = await db.prune_sessions(dry_run=True, **bound)
            assert await there(db) == before
            real = await db.prune_sessions(**bound)
            assert (real.session_ids, real.messages, real.text_bytes) == (
                dry.session_ids,
                dry.messages,
                dry.text_bytes,
            )
            assert before - await there(db) == set(real.session_ids)
        assert pinned <= await there(db)

    async def test_a_prune_without_any_bound_is_refused(self, db: SessionDB) -> None:
        no_bounds: tuple[dict[str, Any], ...] = (
            {"older_than_days": None},
            {"max_count": -1},
            {"older_than_days": float("nan")},
        )
        for bounds in no_bounds:
            with pytest.raises(InvalidInputError):
                await db.prune_sessions(**bounds)


async def some_sessions(db: SessionDB, clock: FakeClock, chance: random.Random) -> set[str]:
    """Create many sessions of any age and descent; return the pinned ones."""
    names: list[str] = []
    pinned: set[str] = set()
    for number in range(40):
        parent = chance.choice(names) if names and chance.random() < 0.5 else None
        relation = chance.choice(["succession", "branch", "delegate"]) if parent else None
        names.append(f"s{number:03}")
        descent: dict[str, Any] = {"parent_session_id": parent, "relation": relation}
        days, messages = chance.uniform(0, 200), chance.randrange(3)
        await begin(db, clock, names[-1], days=days, messages=messages, **descent)
        if chance.random() < 0.1:
            await db.set_session_pinned(names[-1])
            pinned.add(names[-1])
    return pinned


PERSON = "main:cli:user:alice"


class ErasureContract(DatabaseContract):
    """Tests the erasure of an owner, as far as the database itself shows it."""

    async def test_nothing_of_an_erased_person_is_left_and_others_keep_all(
        self, db: SessionDB, clock: FakeClock
    ) -> None:
        await talk(db, "bobs", "what Bob said about docker", user="bob")
        bobs = await everything(db)
        await talk(db, "a", "my secret is docker", "and again")
        await db.set_session_title("a", "Docker")
        await db.record_usage("a", "e1", input_tokens=3)
        await split(db, "a", "b")
        await talk(db, "helper", "look it up", parent_session_id="b", relation="delegate")
        await db.catch_up_search_index()
        receipt = await db.erase(PERSON)
        assert (receipt.owner, receipt.erased_at) == (PERSON, clock.now())
        assert (receipt.rows["sessions"], receipt.rows["messages"]) == (3, 4)
        assert receipt.rows["usage_events"] == 1
        assert any("rooms" in one.what for one in receipt.kept)
        assert await everything(db) == bobs
        assert await listed(db, ALICE) == []
        assert await db.get_session("a") is None
        for mode in ("words", "substring"):
            assert await found(db, "docker", mode=mode) == ["what Bob said about docker"]

    async def test_erasing_again_does_no_harm(self, db: SessionDB) -> None:
        await talk(db, "a", "hello")
        await db.erase(PERSON)
        assert (await db.erase(PERSON)).rows == {}
        assert (await db.erase("main:cli:user:nobody")).rows == {}

    async def test_what_was_sent_before_an_erasure_is_refused_and_who_comes_back_is_welcome(
        self, db: SessionDB, clock: FakeClock
    ) -> None:
        await talk(db, "bobs", user="bob")
        sent = clock.now() - timedelta(minutes=1)
        receipt = await db.erase(PERSON)
        assert await db.erased_at(PERSON) == receipt.erased_at
        assert await db.erased_at("main:cli:user:bob") is None
        clock.step(timedelta(seconds=10))
        await talk(db, "again", "I am back")
        with pytest.raises(SentBeforeErasureError) as late:
            await db.append_message("again", "user", "late", timestamp=sent)
        assert (late.value.session_id, late.value.erased_at) == ("again", receipt.erased_at)
        await db.append_message("bobs", "user", "late as well", timestamp=sent)
        assert await contents(db, "again") == ["I am back"]
        assert await contents(db, "bobs") == ["late as well"]

    async def test_a_person_is_told_all_that_is_known_of_them_and_nothing_of_others(
        self, db: SessionDB
    ) -> None:
        await talk(db, "a", "hello from Alice")
        await talk(db, "b", "hello from Bob", user="bob")
        told = await in_order(db.export_owner(PERSON))
        assert told == await in_order(db.export_all(scope=ALICE))
        assert [one["content"] for one in told[0]["messages"]] == ["hello from Alice"]

    async def test_what_is_no_owner_cannot_be_erased(self, db: SessionDB) -> None:
        await talk(db, "a", "hello")
        for wrong in ("", "alice", "main::user:x", "main:telegram"):
            with pytest.raises(InvalidInputError, match="no owner"):
                await db.erase(wrong)
        assert await there(db) == {"a"}
        assert len(await listed(db, EVERYTHING)) == 1
