"""A lane whose turn is running keeps its session until the turn has ended."""

from __future__ import annotations

import pytest

from tests.raw_sql import execute_sql
from tests.unit.runtime.store_fixtures import (
    DAILY,
    IDLE,
    dm_source,
    lease_lane,
    open_store,
    pass_time,
    quick_config,
    release_lane,
    session_row,
    stored_entry,
)


@pytest.mark.parametrize("policy", [IDLE, DAILY])
async def test_no_policy_ends_a_session_in_the_middle_of_its_turn(home, clock, policy):
    async with open_store(home, quick_config(session_reset=policy), clock=clock) as store:
        first = await store.get_or_create_session(dm_source())
        lease_lane(home, first.session_key)
        pass_time(clock, hours=20)
        assert (await store.get_or_create_session(dm_source())).session_id == first.session_id


async def test_the_day_that_passed_meanwhile_ends_it_afterwards(home, clock):
    async with open_store(home, quick_config(session_reset=DAILY), clock=clock) as store:
        first = await store.get_or_create_session(dm_source())
        lease_lane(home, first.session_key)
        pass_time(clock, hours=5)
        await store.get_or_create_session(dm_source())
        release_lane(home, first.session_key)
        second = await store.get_or_create_session(dm_source())
    assert second.session_id != first.session_id
    assert second.auto_reset_reason == "daily"


async def test_a_turn_that_never_ends_does_not_hold_a_session_for_ever(home, clock):
    async with open_store(home, quick_config(session_reset=IDLE), clock=clock) as store:
        first = await store.get_or_create_session(dm_source())
        lease_lane(home, first.session_key)
        pass_time(clock, hours=26)
        assert (await store.get_or_create_session(dm_source())).session_id != first.session_id


async def test_a_suspended_session_is_replaced_all_the_same(home, clock):
    async with open_store(home, quick_config(session_reset=IDLE), clock=clock) as store:
        first = await store.get_or_create_session(dm_source())
        lease_lane(home, first.session_key)
        await store.suspend_session(first.session_key)
        assert (await store.get_or_create_session(dm_source())).session_id != first.session_id


async def test_a_suspended_session_is_not_ended_under_work_that_still_runs(home, clock):
    busy = {"agent:main:telegram:dm:1"}
    config = quick_config(session_reset=IDLE)
    async with open_store(home, config, clock=clock, has_active_processes=busy.__contains__) as store:
        entry = await store.get_or_create_session(dm_source())
        await store.suspend_session(entry.session_key)
        pass_time(clock, hours=2)
        assert (await store.watcher.sweep()).deferred == 1
        assert session_row(home, entry.session_id)[1] is None
        busy.clear()
        assert (await store.watcher.sweep()).finalised == 1
        after = await stored_entry(store, entry.session_key)
    assert after is not None
    assert after.suspended
    assert session_row(home, entry.session_id)[1] == "suspended"


async def test_a_lane_that_is_forgotten_leaves_a_line_in_the_log(home, clock):
    async with open_store(home, clock=clock) as store:
        entry = await store.get_or_create_session(dm_source())
        pass_time(clock, days=2)
        await store.prune_old_entries(1)
        last = (await store.explain(entry.session_key)).history[0]
    assert (last.event, last.reason, last.actor) == ("pruned", "pruned", "watcher")
    assert execute_sql(home / "sessions.db", "SELECT count(*) FROM entries") == [(0,)]
