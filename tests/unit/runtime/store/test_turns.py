"""The end of a turn."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gateway_sessions import EndReason
from tests.unit.runtime.store_fixtures import (
    DAILY,
    IDLE,
    dm_source,
    open_store,
    pass_time,
    quick_config,
    session_row,
    stored_entry,
)

UNKNOWN = "agent:main:telegram:dm:unknown"


async def test_a_lane_without_a_session_stays_without(store):
    assert await store.update_session(UNKNOWN, 5) is None
    assert await store.get_session(UNKNOWN) is None


async def test_the_size_of_the_prompt_is_noted(store):
    entry = await store.get_or_create_session(dm_source())
    settled = await store.update_session(entry.session_key, last_prompt_tokens=1234)
    assert settled.last_prompt_tokens == 1234
    assert await stored_entry(store, entry.session_key) == settled


async def test_without_a_size_the_last_one_stands_and_nought_is_a_size(store):
    entry = await store.get_or_create_session(dm_source())
    await store.update_session(entry.session_key, 7)
    assert (await store.update_session(entry.session_key)).last_prompt_tokens == 7
    assert (await store.update_session(entry.session_key, 0)).last_prompt_tokens == 0


async def test_a_repeated_end_moves_the_clocks_again(store, clock):
    entry = await store.get_or_create_session(dm_source())
    await store.update_session(entry.session_key, 7)
    pass_time(clock, minutes=1)
    again = await store.update_session(entry.session_key, 7)
    assert again.updated_at == clock.now()
    assert again.version == entry.version + 2


async def test_a_late_turn_of_an_old_session_changes_nothing(store, clock):
    old = await store.get_or_create_session(dm_source())
    new = await store.reset_session(old.session_key)
    pass_time(clock, minutes=1)
    assert await store.update_session(old.session_key, 99, session_id=old.session_id) == new
    assert await stored_entry(store, old.session_key) == new


async def test_a_turn_of_the_current_session_counts(store):
    entry = await store.get_or_create_session(dm_source())
    settled = await store.update_session(entry.session_key, 99, session_id=entry.session_id)
    assert settled.last_prompt_tokens == 99


class TestOnceOnly:
    async def test_the_first_turn_tells_of_a_reset_that_nobody_asked_for(self, home, clock):
        async with open_store(home, quick_config(session_reset=IDLE), clock) as store:
            key = (await store.get_or_create_session(dm_source())).session_key
            pass_time(clock, hours=2)
            assert (await store.get_or_create_session(dm_source())).was_auto_reset
            assert (await store.get_or_create_session(dm_source())).was_auto_reset
            assert not (await store.update_session(key)).was_auto_reset
            assert not (await store.get_or_create_session(dm_source())).was_auto_reset

    async def test_the_first_turn_ends_a_fresh_start(self, store):
        key = (await store.get_or_create_session(dm_source())).session_key
        assert (await store.reset_session(key)).is_fresh_reset
        assert not (await store.update_session(key)).is_fresh_reset
        assert not (await stored_entry(store, key)).is_fresh_reset

    async def test_a_late_turn_of_the_session_before_does_not_take_the_notice_away(self, home, clock):
        async with open_store(home, quick_config(session_reset=IDLE), clock) as store:
            old = await store.get_or_create_session(dm_source())
            pass_time(clock, hours=2)
            await store.get_or_create_session(dm_source())
            await store.update_session(old.session_key, session_id=old.session_id)
            assert (await stored_entry(store, old.session_key)).was_auto_reset


class TestBoundaries:
    async def test_one_that_passes_during_a_turn_ends_the_session_at_the_next_message(self, home, clock):
        async with open_store(home, quick_config(session_reset=DAILY), clock) as store:
            pass_time(clock, hours=3, minutes=50)
            old = await store.get_or_create_session(dm_source())
            pass_time(clock, minutes=20)
            settled = await store.update_session(old.session_key)
            assert settled.deferred_boundary == clock.now().replace(hour=4, minute=0)
            assert await stored_entry(store, old.session_key) == settled
            pass_time(clock, minutes=1)
            new = await store.get_or_create_session(dm_source())
            pass_time(clock, minutes=1)
            again = await store.get_or_create_session(dm_source())
        assert new.auto_reset_reason is EndReason.DAILY
        assert again.session_id == new.session_id
        assert session_row(home, old.session_id)[1] == EndReason.DAILY

    @pytest.mark.parametrize("deferred", ["grace", "work", "mark"])
    async def test_one_that_passes_while_deferred_leads_to_one_reset_later(self, home, clock, deferred):
        policy = DAILY if deferred != "grace" else type(DAILY)(mode="daily", grace_minutes=30)
        busy = deferred == "work"
        config = quick_config(session_reset=policy)
        async with open_store(home, config, clock, has_active_processes=lambda _: busy) as store:
            pass_time(clock, hours=3, minutes=50)
            old = await store.get_or_create_session(dm_source())
            if deferred == "mark":
                await store.mark_resume_pending(old.session_key)
            seen = []
            for _ in range(3):
                pass_time(clock, minutes=15)
                seen.append((await store.get_or_create_session(dm_source())).session_id)
            busy = False
            await store.clear_resume_pending(old.session_key)
            for _ in range(3):
                pass_time(clock, minutes=45)
                seen.append((await store.get_or_create_session(dm_source())).session_id)
        assert seen[:3] == [old.session_id] * 3
        assert old.session_id not in seen[3:]
        assert len(set(seen[3:])) == 1


async def test_under_a_changed_policy_the_end_of_a_turn_plans_the_next_look_anew(home, clock):
    """The watcher leaves out what was written while it stored new instants."""
    async with open_store(home, clock=clock) as store:
        key = (await store.get_or_create_session(dm_source())).session_key
        assert (await stored_entry(store, key)).due_at is None
    async with open_store(home, quick_config(session_reset=IDLE), clock) as store:
        settled = await store.update_session(key)
        assert settled.due_at == clock.now() + timedelta(minutes=60, microseconds=1)
        assert await stored_entry(store, key) == settled
