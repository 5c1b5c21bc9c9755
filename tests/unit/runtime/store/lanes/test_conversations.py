"""A lane that goes on with a related session: a continuation, a branch, or one that a person asks for."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from gateway_sessions import EndReason, InvalidInputError, Scope, SessionBusyError, SessionNotFoundError
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.errors import AmbiguousSessionError, SessionEndedError
from gateway_sessions.runtime.context import RandomDigits
from tests.raw_sql import execute_sql
from tests.unit.runtime.store_fixtures import (
    DAILY,
    EVERYTHING,
    IDLE,
    all_stored_entries,
    dm_source,
    group_source,
    lease_lane,
    open_store,
    pass_time,
    quick_config,
    stored_entry,
)

SUMMARY = [{"role": "user", "content": "what we said so far"}]


async def talk(store, source: SessionSource | None = None, *said: str):
    entry = await store.get_or_create_session(source or dm_source())
    for text in said or ("hello",):
        await store.db.append_message(entry.session_id, "user", text)
    return entry


class TestSplitting:
    async def test_the_lane_goes_on_with_the_summary(self, store):
        old = await talk(store)
        new = await store.split_session(old.session_key, old.session_id, SUMMARY)
        assert new.session_id != old.session_id
        assert await stored_entry(store, old.session_key) == new
        assert (await store.get_or_create_session(dm_source())).session_id == new.session_id
        assert [one.text for one in await store.db.get_messages(new.session_id)] == ["what we said so far"]

    async def test_nothing_else_about_the_lane_changes(self, store):
        old = await talk(store)
        await store.set_model_override(old.session_key, {"model": "m"})
        old = await store.update_session(old.session_key, 5)
        new = await store.split_session(old.session_key, old.session_id, SUMMARY)
        assert new == old.evolve(new.updated_at, session_id=new.session_id)

    @pytest.mark.parametrize("policy", [IDLE, DAILY])
    async def test_it_is_reset_when_it_would_have_been(self, home, clock, policy):
        async with open_store(home, quick_config(session_reset=policy), clock) as store:
            old = await talk(store)
            pass_time(clock, minutes=30)
            new = await store.split_session(old.session_key, old.session_id, SUMMARY)
            assert (new.due_at, new.last_interaction_at) == (old.due_at, old.last_interaction_at)

    async def test_a_turn_that_ends_after_a_split_counts_for_the_new_session(self, store):
        old = await talk(store)
        new = await store.split_session(old.session_key, old.session_id, SUMMARY)
        settled = await store.update_session(old.session_key, 7, session_id=new.session_id)
        assert settled.last_prompt_tokens == 7

    async def test_of_many_at_once_one_does_it_and_all_get_the_entry(self, store, home):
        old = await talk(store)
        outcomes = await asyncio.gather(
            *(store.split_session(old.session_key, old.session_id, SUMMARY) for _ in range(16))
        )
        assert len({one.session_id for one in outcomes}) == 1
        assert execute_sql(home / "sessions.db", "SELECT count(*) FROM sessions") == [(2,)]

    async def test_the_database_alone_does_the_same_to_the_lane(self, store):
        old = await talk(store)
        children = await asyncio.gather(
            *(store.db.split_session(old.session_id, f"child{n}", SUMMARY) for n in range(16))
        )
        entry = await stored_entry(store, old.session_key)
        assert {entry.session_id} == set(children)

    async def test_no_hook_is_called_for_the_conversation_goes_on(self, home, clock):
        async def hook(_):
            raise AssertionError

        async with open_store(home, clock=clock, hooks=[hook]) as store:
            old = await talk(store)
            await store.split_session(old.session_key, old.session_id, SUMMARY)
            assert execute_sql(home / "sessions.db", "SELECT count(*) FROM hook_calls") == [(0,)]

    async def test_what_happened_is_in_the_history_of_the_lane(self, store):
        old = await talk(store)
        new = await store.split_session(old.session_key, old.session_id, SUMMARY)
        change = (await store.explain(old.session_key)).history[0]
        assert (change.event, change.session_id, change.reason) == (
            "compressed",
            new.session_id,
            "compression",
        )

    async def test_the_reset_before_can_still_be_undone(self, store):
        first = await talk(store)
        second = await store.reset_session(first.session_key)
        await store.split_session(first.session_key, second.session_id, SUMMARY)
        assert (await store.undo_reset(first.session_key)).session_id == first.session_id

    async def test_a_lane_that_was_reset_meanwhile_is_left_alone(self, store):
        old = await talk(store)
        await store.reset_session(old.session_key)
        before = await all_stored_entries(store)
        with pytest.raises(SessionEndedError) as caught:
            await store.split_session(old.session_key, old.session_id, SUMMARY)
        assert caught.value.end_reason == EndReason.SESSION_RESET
        assert await all_stored_entries(store) == before

    async def test_a_session_that_was_taken_elsewhere_meanwhile_is_left_alone(self, store):
        old, there = await talk(store), await talk(store, group_source())
        await store.switch_session(there.session_key, old.session_id, scope=EVERYTHING, move=True)
        await store.get_or_create_session(dm_source())
        with pytest.raises(SessionEndedError) as caught:
            await store.split_session(old.session_key, old.session_id, SUMMARY)
        assert caught.value.end_reason == EndReason.MOVED

    async def test_a_session_that_does_not_exist_is_not_compressed(self, store):
        old = await talk(store)
        with pytest.raises(SessionNotFoundError):
            await store.split_session(old.session_key, "never heard of", SUMMARY)
        assert await stored_entry(store, old.session_key) == old

    async def test_a_bad_summary_changes_nothing(self, store):
        old = await talk(store)
        with pytest.raises(InvalidInputError):
            await store.split_session(old.session_key, old.session_id, [])
        assert await stored_entry(store, old.session_key) == old

    async def test_a_lane_without_a_session_has_nothing_to_compress(self, store):
        assert await store.split_session("agent:main:x:dm:1", "x", SUMMARY) is None

    async def test_the_original_can_be_resumed_and_compressed_again(self, store):
        old = await talk(store)
        new = await store.split_session(old.session_key, old.session_id, SUMMARY)
        back = await store.switch_session(old.session_key, old.session_id, scope=EVERYTHING, move=True)
        assert back.session_id == old.session_id
        again = await store.split_session(old.session_key, old.session_id, SUMMARY)
        assert again.session_id not in (old.session_id, new.session_id)
        assert await store.db.get_compression_tip(old.session_id) == again.session_id
        assert (await store.db.get_session(new.session_id)).relation == "branch"


class TestBranching:
    async def test_the_lane_goes_on_in_a_copy(self, store):
        old = await talk(store, dm_source(), "one", "two")
        at = (await store.db.get_messages(old.session_id))[0].message_id
        new = await store.branch_session(old.session_key, at_message_id=at)
        assert (await store.get_or_create_session(dm_source())).session_id == new.session_id
        assert [one.text for one in await store.db.get_messages(new.session_id)] == ["one"]
        back = await store.resume_session(old.session_key, old.session_id, scope=Scope.of(dm_source()))
        assert back.session_id == old.session_id

    async def test_a_lane_without_a_session_has_nothing_to_branch_from(self, store):
        assert await store.branch_session("agent:main:x:dm:1") is None

    async def test_a_message_that_is_not_there_changes_nothing(self, store):
        old = await talk(store)
        with pytest.raises(InvalidInputError):
            await store.branch_session(old.session_key, at_message_id=7)
        assert await stored_entry(store, old.session_key) == old


class TestResuming:
    async def test_by_title_at_the_tip(self, store):
        old = await talk(store)
        await store.db.set_session_title(old.session_id, "Trip")
        tip = await store.split_session(old.session_key, old.session_id, SUMMARY)
        await store.reset_session(old.session_key)
        for text in ("Trip", old.session_id, tip.session_id):
            await store.reset_session(old.session_key)
            back = await store.resume_session(old.session_key, text, scope=Scope.of(dm_source()))
            assert back.session_id == tip.session_id

    async def test_nobody_resumes_what_they_cannot_see(self, store):
        hers, mine = await talk(store), await talk(store, dm_source("2", "bob"))
        await store.db.set_session_title(hers.session_id, "Trip")
        for text in ("Trip", hers.session_id, ""):
            with pytest.raises(SessionNotFoundError):
                await store.resume_session(mine.session_key, text, scope=Scope.of(dm_source("2", "bob")))

    async def test_what_could_be_several_is_asked_back(self, store):
        one = await talk(store)
        await store.reset_session(one.session_key)
        with pytest.raises(AmbiguousSessionError):
            await store.resume_session(one.session_key, "20", scope=Scope.of(dm_source()))

    async def test_a_running_session_is_not_taken_away(self, store, home):
        here, there = await talk(store), await talk(store, group_source())
        await store.db.set_session_title(there.session_id, "Trip")
        lease_lane(home, there.session_key)
        with pytest.raises(SessionBusyError):
            await store.resume_session(here.session_key, "Trip", scope=EVERYTHING)


class TestIds:
    async def test_an_id_that_is_taken_by_chance_is_not_used(self, home, clock, monkeypatch):
        async with open_store(home, clock=clock) as store:
            suffixes = itertools.chain(["aa", "aa", "bb", "bb", "cc"], map(str, itertools.count()))
            monkeypatch.setattr(RandomDigits, "hex_digits", lambda *_: next(suffixes))
            old = await talk(store)
            new = await store.split_session(old.session_key, old.session_id, SUMMARY)
            branch = await store.branch_session(old.session_key)
        assert [one.session_id[-2:] for one in (old, new, branch)] == ["aa", "bb", "cc"]


class TestTitlesThatMove:
    async def test_a_title_that_the_new_owner_has_already_gets_a_number(self, store):
        mine, hers = await talk(store, dm_source("2", "bob")), await talk(store)
        for one in (mine, hers):
            await store.db.set_session_title(one.session_id, "Trip")
        await store.switch_session(mine.session_key, hers.session_id, scope=EVERYTHING, move=True)
        assert await store.db.get_session_title(hers.session_id) == "Trip #2"
        assert await store.db.get_session_title(mine.session_id) == "Trip"
        record = await store.db.get_session(hers.session_id)
        assert (record.owner, record.title_by) == (mine.owner, "person")

    async def test_a_title_that_is_free_there_stays(self, store):
        mine, hers = await talk(store, dm_source("2", "bob")), await talk(store)
        await store.db.set_session_title(hers.session_id, "Trip")
        await store.switch_session(mine.session_key, hers.session_id, scope=EVERYTHING, move=True)
        assert await store.db.get_session_title(hers.session_id) == "Trip"
