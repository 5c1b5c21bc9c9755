"""Suspending, and marking as cut off: what each state makes of each call."""

from __future__ import annotations

import json

import pytest

from gateway_sessions import EndReason, SessionState
from gateway_sessions.sessions import ResumeReason
from tests.raw_sql import execute_sql
from tests.unit.runtime.store_fixtures import (
    IDLE,
    all_stored_entries,
    dm_source,
    lease_lane,
    open_store,
    pass_time,
    quick_config,
    session_row,
    stored_entry,
)

UNKNOWN = "agent:main:telegram:dm:unknown"
ACTIVE, PENDING, EXPIRED, SUSPENDED = SessionState


async def bring_to(store, clock, state) -> str:
    entry = await store.get_or_create_session(dm_source())
    key = entry.session_key
    if state is PENDING:
        assert await store.mark_resume_pending(key)
    elif state is SUSPENDED:
        assert await store.suspend_session(key)
    elif state is EXPIRED:
        await store.set_reset_policy(key, IDLE)
        pass_time(clock, hours=2)
        assert (await store.watcher.sweep()).finalised == 1
    assert (await stored_entry(store, key)).state is state
    return key


class TestTruthTable:
    @pytest.mark.parametrize(
        ("call", "state", "answer", "after"),
        [
            ("suspend_session", ACTIVE, True, SUSPENDED),
            ("suspend_session", PENDING, True, SUSPENDED),
            ("suspend_session", EXPIRED, True, SUSPENDED),
            ("suspend_session", SUSPENDED, True, SUSPENDED),
            ("mark_resume_pending", ACTIVE, True, PENDING),
            ("mark_resume_pending", PENDING, True, PENDING),
            ("mark_resume_pending", EXPIRED, False, EXPIRED),
            ("mark_resume_pending", SUSPENDED, False, SUSPENDED),
            ("clear_resume_pending", ACTIVE, False, ACTIVE),
            ("clear_resume_pending", PENDING, True, ACTIVE),
            ("clear_resume_pending", EXPIRED, False, EXPIRED),
            ("clear_resume_pending", SUSPENDED, False, SUSPENDED),
        ],
    )
    async def test_each_state_takes_what_it_may(self, store, clock, call, state, answer, after):
        key = await bring_to(store, clock, state)
        assert await getattr(store, call)(key) is answer
        assert (await stored_entry(store, key)).state is after

    @pytest.mark.parametrize("call", ["suspend_session", "mark_resume_pending", "clear_resume_pending"])
    async def test_an_unknown_lane_is_false(self, store, call):
        assert await getattr(store, call)(UNKNOWN) is False
        assert await all_stored_entries(store) == {}

    @pytest.mark.parametrize(
        ("call", "state"),
        [
            ("mark_resume_pending", SUSPENDED),
            ("clear_resume_pending", ACTIVE),
            ("suspend_session", SUSPENDED),
        ],
    )
    async def test_what_is_not_taken_writes_nothing(self, store, clock, call, state):
        key = await bring_to(store, clock, state)
        before = await stored_entry(store, key)
        pass_time(clock, minutes=1)
        await getattr(store, call)(key)
        assert await stored_entry(store, key) == before


class TestSuspend:
    async def test_the_next_message_starts_afresh_once(self, store, clock, home):
        key = await bring_to(store, clock, SUSPENDED)
        old = await stored_entry(store, key)
        new = await store.get_or_create_session(dm_source())
        assert new.auto_reset_reason is EndReason.SUSPENDED
        assert new.previous_session_id == old.session_id
        assert session_row(home, old.session_id)[1] == EndReason.SUSPENDED
        assert (await store.get_or_create_session(dm_source())).session_id == new.session_id

    async def test_it_tells_why_and_since_when(self, store, clock):
        key = (await store.get_or_create_session(dm_source())).session_key
        await store.suspend_session(key, reason="operator")
        entry = await stored_entry(store, key)
        assert (entry.state_reason, entry.state_since) == ("operator", clock.now())

    async def test_it_does_not_count_as_an_interaction(self, store, clock):
        entry = await store.get_or_create_session(dm_source())
        pass_time(clock, minutes=1)
        await store.suspend_session(entry.session_key)
        assert (await stored_entry(store, entry.session_key)).last_interaction_at == entry.last_interaction_at


class TestMark:
    async def test_the_next_message_goes_on_and_the_mark_stays_until_a_turn_succeeds(self, store, clock):
        key = await bring_to(store, clock, PENDING)
        old = await stored_entry(store, key)
        pass_time(clock, minutes=59)
        kept = await store.get_or_create_session(dm_source())
        assert kept.session_id == old.session_id
        assert kept.resume_pending
        assert kept.resume_reason == ResumeReason.RESTART_TIMEOUT
        assert await store.clear_resume_pending(key)
        cleared = await stored_entry(store, key)
        assert (cleared.state, cleared.resume_reason, cleared.last_resume_marked_at) == (ACTIVE, None, None)

    async def test_marking_again_overwrites_reason_and_time(self, store, clock):
        key = await bring_to(store, clock, PENDING)
        pass_time(clock, minutes=1)
        assert await store.mark_resume_pending(key, reason="shutdown_timeout")
        entry = await stored_entry(store, key)
        assert (entry.resume_reason, entry.last_resume_marked_at) == ("shutdown_timeout", clock.now())

    async def test_a_mark_that_has_aged_ends_no_session_that_its_policy_does_not_end(self, home, clock):
        policy = type(IDLE)(mode="idle", idle_minutes=600)
        async with open_store(home, quick_config(session_reset=policy), clock) as store:
            old = await store.get_or_create_session(dm_source())
            await store.mark_resume_pending(old.session_key)
            pass_time(clock, hours=9)
            assert (await store.get_or_create_session(dm_source())).session_id == old.session_id
            pass_time(clock, hours=10, microseconds=1)
            new = await store.get_or_create_session(dm_source())
        assert new.auto_reset_reason is EndReason.IDLE
        assert session_row(home, old.session_id)[1] == EndReason.IDLE

    async def test_a_fresh_mark_goes_before_the_policy(self, home, clock):
        async with open_store(home, quick_config(session_reset=IDLE), clock) as store:
            old = await store.get_or_create_session(dm_source())
            pass_time(clock, hours=3)
            await store.mark_resume_pending(old.session_key)
            pass_time(clock, minutes=30)
            assert (await store.get_or_create_session(dm_source())).session_id == old.session_id


class TestSuspendRecentlyActive:
    async def test_it_marks_exactly_what_was_used_lately(self, store, clock):
        old = await store.get_or_create_session(dm_source("old"))
        pass_time(clock, seconds=121)
        edge = await store.get_or_create_session(dm_source("edge"))
        pass_time(clock, seconds=120)
        new = await store.get_or_create_session(dm_source("new"))
        assert await store.suspend_recently_active() == 2
        states = {key: one.state for key, one in (await all_stored_entries(store)).items()}
        assert states == {old.session_key: ACTIVE, edge.session_key: PENDING, new.session_key: PENDING}
        assert (await stored_entry(store, new.session_key)).resume_reason == ResumeReason.RESTART_INTERRUPTED

    async def test_it_leaves_what_waits_already_or_is_suspended(self, store, clock):
        waiting = await store.get_or_create_session(dm_source("waiting"))
        await store.mark_resume_pending(waiting.session_key, "shutdown_timeout")
        stopped = await store.get_or_create_session(dm_source("stopped"))
        await store.suspend_session(stopped.session_key)
        before = await all_stored_entries(store)
        assert await store.suspend_recently_active() == 0
        assert await all_stored_entries(store) == before

    async def test_a_second_call_finds_nothing_left(self, store):
        await store.get_or_create_session(dm_source())
        assert await store.suspend_recently_active() == 1
        assert await store.suspend_recently_active(600) == 0

    async def test_more_than_a_page_is_marked(self, store):
        for number in range(230):
            await store.get_or_create_session(dm_source(f"{number:03}"))
        assert await store.suspend_recently_active() == 230
        assert {one.state for one in (await all_stored_entries(store)).values()} == {PENDING}

    async def test_the_file_for_the_operator_counts_them(self, store, home):
        for chat in "ba":
            await store.get_or_create_session(dm_source(chat))
        await store.suspend_recently_active()
        counts = {"agent:main:telegram:dm:a": 1, "agent:main:telegram:dm:b": 1}
        assert json.loads((home / "restart_counts.json").read_bytes()) == counts

    async def test_a_session_that_is_cut_off_for_the_third_time_in_a_row_is_suspended(
        self, store, home, clock
    ):
        key = (await store.get_or_create_session(dm_source())).session_key
        states = []
        for _ in range(3):
            pass_time(clock, minutes=5)
            await store.get_or_create_session(
                dm_source()
            )  # somebody writes, and the process dies in the turn
            assert await store.suspend_recently_active() == 1
            states.append((await stored_entry(store, key)).state)
        assert states == [PENDING, PENDING, SUSPENDED]
        assert (await stored_entry(store, key)).state_reason == "crash_loop"
        assert json.loads((home / "restart_counts.json").read_bytes()) == {key: 3}

    async def test_a_turn_that_succeeded_in_between_begins_the_count_anew(self, store, home, clock):
        key = (await store.get_or_create_session(dm_source())).session_key
        for _ in range(4):
            pass_time(clock, minutes=5)
            await store.get_or_create_session(dm_source())
            assert await store.suspend_recently_active() == 1
            assert await store.clear_resume_pending(key)
            assert not (home / "restart_counts.json").exists()
        assert (await stored_entry(store, key)).state is ACTIVE

    async def test_a_session_that_is_begun_over_a_running_turn_has_not_failed_yet(self, store, home, clock):
        key = (await store.get_or_create_session(dm_source())).session_key
        lease_lane(home, key)
        await store.suspend_recently_active()
        assert execute_sql(home / "sessions.db", "SELECT attempts FROM lanes") == [(1,)]
        await store.get_or_create_session(dm_source(), force_new=True)
        assert execute_sql(home / "sessions.db", "SELECT attempts FROM lanes") == [(0,)]

    @pytest.mark.parametrize("how", ["message", "reset_session", "undo_reset"])
    async def test_another_session_in_its_place_begins_the_count_anew(self, store, home, clock, how):
        """The count is of one session: its successor has not failed yet."""
        key = (await store.get_or_create_session(dm_source())).session_key
        if how == "undo_reset":
            await store.reset_session(key)
        for _ in range(3):
            pass_time(clock, minutes=5)
            await store.get_or_create_session(dm_source())
            await store.suspend_recently_active()
        await (store.get_or_create_session(dm_source()) if how == "message" else getattr(store, how)(key))
        assert execute_sql(home / "sessions.db", "SELECT attempts FROM lanes WHERE attempts > 0") == []
        pass_time(clock, minutes=5)
        await store.get_or_create_session(dm_source())
        await store.suspend_recently_active()
        assert (await stored_entry(store, key)).state is PENDING
        assert json.loads((home / "restart_counts.json").read_bytes()) == {key: 1}
