"""Forgetting a person: nothing of them is left to be seen, and what they sent before is refused."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gateway_sessions import InvalidInputError, SentBeforeErasureError, SessionDB
from gateway_sessions.testing.clock import FakeClock
from gateway_sessions.testing.contract.database import DatabaseContract
from gateway_sessions.testing.contract.talks import (
    ALICE,
    EVERYTHING,
    contents,
    everything,
    found,
    in_order,
    listed,
    split,
    talk,
    there,
)

PERSON = "main:cli:user:alice"


class ErasureContract(DatabaseContract):
    """Erasure of an owner, as far as it can be seen through the database itself."""

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
