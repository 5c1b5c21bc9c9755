"""Why a conversation has the session it has, and what its next message will do, in one sentence."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gateway_sessions import SessionResetPolicy
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
)

UNKNOWN = "agent:main:telegram:dm:unknown"


@pytest.fixture
def clock(fake_clock):
    return fake_clock


@pytest.fixture
async def store(home, clock):
    async with open_store(home, quick_config(session_reset=IDLE), clock) as opened:
        yield opened


class TestSentence:
    async def test_of_an_unknown_lane(self, store):
        assert (await store.explain(UNKNOWN)).next_message == "starts the first session of this lane"

    async def test_of_a_session_that_goes_on(self, store):
        entry = await store.get_or_create_session(dm_source())
        assert (await store.explain(entry.session_key)).next_message == f"goes on with {entry.session_id}"

    async def test_of_one_that_is_due(self, store, clock):
        entry = await store.get_or_create_session(dm_source())
        pass_time(clock, hours=2)
        assert (await store.explain(entry.session_key)).next_message == (
            f"starts a new session in place of {entry.session_id}, because of: idle"
        )

    async def test_of_one_that_is_suspended(self, store):
        entry = await store.get_or_create_session(dm_source())
        await store.suspend_session(entry.session_key)
        assert (await store.explain(entry.session_key)).next_message == (
            f"starts a new session in place of {entry.session_id}, because of: suspended"
        )

    async def test_of_one_that_was_cut_off(self, store):
        entry = await store.get_or_create_session(dm_source())
        await store.mark_resume_pending(entry.session_key)
        assert (await store.explain(entry.session_key)).next_message == (
            f"goes on with {entry.session_id}, which was cut off (restart_timeout)"
        )

    async def test_of_one_whose_reset_waits_for_grace(self, home, clock):
        policy = SessionResetPolicy(mode="daily", grace_minutes=60)
        async with open_store(home, quick_config(session_reset=policy), clock) as store:
            pass_time(clock, hours=3, minutes=50)
            entry = await store.get_or_create_session(dm_source())
            pass_time(clock, minutes=20)
            assert (await store.explain(entry.session_key)).next_message == (
                f"goes on with {entry.session_id}: a reset is due, and waits because of grace"
            )

    async def test_of_one_whose_reset_waits_for_work(self, home, clock):
        async with open_store(
            home, quick_config(session_reset=IDLE), clock, has_active_processes=lambda _: True
        ) as store:
            entry = await store.get_or_create_session(dm_source())
            pass_time(clock, hours=2)
            explained = await store.explain(entry.session_key)
        assert explained.active_work
        assert explained.next_message == (
            f"goes on with {entry.session_id}: a reset is due, and waits because of active_work"
        )

    async def test_of_a_lane_whose_session_lives_elsewhere(self, store):
        here, there = (
            await store.get_or_create_session(dm_source()),
            await store.get_or_create_session(group_source()),
        )
        await store.switch_session(here.session_key, there.session_id, scope=EVERYTHING, move=True)
        assert (await store.explain(there.session_key)).next_message == (
            f"starts a new session, because {there.session_id} was resumed elsewhere"
        )

    @pytest.mark.parametrize("what", ["keep", "idle", "suspend", "mark", "work"])
    async def test_what_it_says_is_what_happens(self, home, clock, what):
        busy = what == "work"
        async with open_store(
            home, quick_config(session_reset=IDLE), clock, has_active_processes=lambda _: busy
        ) as store:
            entry = await store.get_or_create_session(dm_source())
            if what == "suspend":
                await store.suspend_session(entry.session_key)
            if what == "mark":
                await store.mark_resume_pending(entry.session_key)
            if what in {"idle", "work"}:
                pass_time(clock, hours=2)
            sentence = (await store.explain(entry.session_key)).next_message
            after = await store.get_or_create_session(dm_source())
        assert sentence.startswith("goes on") == (after.session_id == entry.session_id)


class TestFacts:
    async def test_the_next_reset_in_utc_and_on_the_clock_of_the_zone(self, home, clock):
        async with open_store(home, quick_config(session_reset=DAILY), clock) as store:
            entry = await store.get_or_create_session(dm_source())
            await store.set_zone(entry.session_key, "Asia/Tokyo")
            explained = await store.explain(entry.session_key)
        assert explained.next_reset_at == clock.now() + timedelta(hours=19)
        assert explained.next_reset_local.isoformat() == "2026-01-02T04:00:00+09:00"
        assert explained.policy.zone_name == "Asia/Tokyo"
        assert explained.policy.path == "session_reset"

    async def test_a_policy_of_no_resets_has_no_next_one(self, home, clock):
        async with open_store(home, clock=clock) as store:
            entry = await store.get_or_create_session(dm_source())
            explained = await store.explain(entry.session_key)
        assert explained.next_reset_at is explained.next_reset_local is None

    async def test_an_unknown_lane_has_neither_policy_nor_past(self, store):
        explained = await store.explain(UNKNOWN)
        assert explained.entry is explained.policy is explained.next_reset_at is None
        assert explained.history == ()

    async def test_what_happened_the_newest_first(self, store, clock):
        key = (await store.get_or_create_session(dm_source())).session_key
        for minutes, call in enumerate(
            (store.mark_resume_pending, store.clear_resume_pending, store.reset_session)
        ):
            pass_time(clock, minutes=minutes + 1)
            await call(key)
        history = (await store.explain(key)).history
        assert [(one.event, one.from_state, one.to_state, one.reason, one.actor) for one in history] == [
            ("reset", "active", "active", "session_reset", "person"),
            ("recovered", "resume_pending", "active", None, "recovery"),
            ("interrupted", "active", "resume_pending", "restart_timeout", "recovery"),
            ("created", None, "active", None, "policy"),
        ]
        assert history[0].at == clock.now()

    async def test_a_turn_that_runs_and_how_often_it_was_cut_off(self, store, home):
        entry = await store.get_or_create_session(dm_source())
        lease_lane(home, entry.session_key, attempts=2)
        lane = (await store.explain(entry.session_key)).lane
        assert (lane.running, lane.attempts) == (True, 2)

    async def test_looking_changes_nothing(self, store, clock):
        entry = await store.get_or_create_session(dm_source())
        pass_time(clock, hours=2)
        before = await all_stored_entries(store)
        for _ in range(3):
            await store.explain(entry.session_key)
        assert await all_stored_entries(store) == before
