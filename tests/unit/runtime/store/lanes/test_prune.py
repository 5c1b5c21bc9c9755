"""Forgetting lanes that nobody uses."""

from __future__ import annotations

import pytest

from gateway_sessions import EndReason
from gateway_sessions.storage.transactions.sessions.find_or_create import touch_statement
from tests.raw_sql import execute_sql
from tests.unit.runtime.store_fixtures import (
    IDLE,
    all_stored_entries,
    dm_source,
    group_source,
    lease_lane,
    open_store,
    pass_time,
    quick_config,
    session_row,
)


async def test_what_was_not_written_to_for_that_long_is_forgotten(store, clock, home):
    old = await store.get_or_create_session(dm_source("old"))
    pass_time(clock, days=2)
    edge = await store.get_or_create_session(dm_source("edge"))
    pass_time(clock, days=1)
    new = await store.get_or_create_session(dm_source("new"))
    assert await store.prune_old_entries(1) == 1
    assert set(await all_stored_entries(store)) == {edge.session_key, new.session_key}
    assert session_row(home, old.session_id)[1] == EndReason.PRUNED
    assert await store.prune_old_entries(1) == 0


@pytest.mark.parametrize("days", [None, 0, -1])
async def test_without_an_age_nothing_is_forgotten(store, clock, days):
    await store.get_or_create_session(dm_source())
    pass_time(clock, days=4000)
    assert await store.prune_old_entries(days) == 0
    assert len(await all_stored_entries(store)) == 1


async def test_a_forgotten_lane_never_comes_back_with_its_history(store, clock):
    old = await store.get_or_create_session(dm_source())
    await store.update_session(old.session_key, 100)
    await store.set_zone(old.session_key, "Asia/Tokyo")
    pass_time(clock, days=2)
    await store.prune_old_entries(1)
    assert await store.get_session(old.session_key) is None
    assert await store.peek_session_id(old.session_key) is None
    new = await store.get_or_create_session(dm_source())
    assert new.session_id != old.session_id
    assert (new.previous_session_id, new.last_prompt_tokens, new.zone) == (None, 0, None)
    assert not new.was_auto_reset


async def test_any_write_counts_as_use(store, clock):
    entry = await store.get_or_create_session(dm_source())
    pass_time(clock, days=2)
    await store.set_zone(entry.session_key, "Asia/Tokyo")
    assert await store.prune_old_entries(1) == 0


async def test_a_suspended_lane_is_kept(store, clock):
    entry = await store.get_or_create_session(dm_source())
    await store.suspend_session(entry.session_key)
    pass_time(clock, days=2)
    assert await store.prune_old_entries(1) == 0


async def test_a_lane_with_a_turn_running_is_kept(store, clock, home):
    entry = await store.get_or_create_session(dm_source())
    lease_lane(home, entry.session_key)
    pass_time(clock, days=2)
    assert await store.prune_old_entries(1) == 0


async def test_a_lane_with_work_running_is_kept(home, clock):
    busy = {"agent:main:telegram:dm:busy"}
    async with open_store(home, clock=clock, has_active_processes=busy.__contains__) as store:
        for chat in ("busy", "quiet"):
            await store.get_or_create_session(dm_source(chat))
        pass_time(clock, days=2)
        assert await store.prune_old_entries(1) == 1
        assert set(await all_stored_entries(store)) == busy


async def test_an_ended_session_keeps_the_reason_of_its_end(home, clock):
    async with open_store(home, quick_config(session_reset=IDLE), clock) as store:
        entry = await store.get_or_create_session(dm_source())
        pass_time(clock, days=2)
        await store.watcher.sweep()
        pass_time(clock, days=2)
        assert await store.prune_old_entries(1) == 1
    assert session_row(home, entry.session_id)[1] == EndReason.IDLE


async def test_more_than_a_page_is_forgotten(store, clock):
    for number in range(230):
        await store.get_or_create_session(dm_source(str(number)))
    pass_time(clock, days=2)
    assert await store.prune_old_entries(1) == 230


async def test_nothing_of_the_lane_is_left(store, clock, home):
    here, there = (
        await store.get_or_create_session(dm_source()),
        await store.get_or_create_session(group_source()),
    )
    await store.suspend_recently_active()
    pass_time(clock, days=2)
    assert await store.prune_old_entries(1) == 2
    assert execute_sql(home / "sessions.db", "SELECT * FROM lanes") == []
    assert execute_sql(home / "sessions.db", "SELECT * FROM entries") == []
    assert {here.session_id, there.session_id} == {
        row[0] for row in execute_sql(home / "sessions.db", "SELECT session_id FROM sessions")
    }


async def test_a_message_for_a_forgotten_lane_touches_no_other_lane(home, clock):
    async with open_store(home, clock=clock) as store:
        old = await store.get_or_create_session(dm_source())
        pass_time(clock, days=2)
        await store.prune_old_entries(1)
    async with open_store(home, clock=clock) as store:
        new = await store.get_or_create_session(dm_source())
        other = await store.get_or_create_session(dm_source("other"))
        assert len({old.entry_id, new.entry_id, other.entry_id}) == 3
        assert await store.db.change(touch_statement(old, clock.now())) == 0
        assert await store.db.change(touch_statement(new, clock.now())) == 1
        assert await store.db.change(touch_statement(new, clock.now())) == 0
