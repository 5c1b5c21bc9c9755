"""A store that is closed and opened again is the same store, whatever files beside the database are gone."""

from __future__ import annotations

import json

import pytest

from gateway_sessions import SessionState, StoreBusyError
from gateway_sessions.config import SnapshotMode
from tests.unit.runtime.store_fixtures import (
    EVERYTHING,
    IDLE,
    all_stored_entries,
    config_with_snapshot,
    dm_source,
    group_source,
    open_store,
    pass_time,
)


async def furnish(store, clock) -> None:
    """Lanes in every state, with settings and a history."""
    keys = []
    for number in range(6):
        pass_time(clock, minutes=1)
        keys.append(
            (
                await store.get_or_create_session(dm_source(str(number), f"user{number}", chat_name="Ü😀"))
            ).session_key
        )
    await store.suspend_session(keys[0], reason="operator")
    await store.mark_resume_pending(keys[1])
    await store.reset_session(keys[2])
    await store.set_zone(keys[3], "Asia/Tokyo")
    await store.set_model_override(keys[3], {"model": "m"})
    await store.update_session(keys[3], last_prompt_tokens=9)
    await store.switch_session(keys[4], (await store.get_session(keys[5])).session_id, scope=EVERYTHING)
    await store.set_reset_policy(keys[3], IDLE)


NOTHING_OF_INTEREST = ("sessions.json", "sessions.json.bak", ".clean_shutdown", "restart_counts.json")


async def test_everything_is_there_again(home, clock):
    async with open_store(home, clock=clock) as store:
        await furnish(store, clock)
        before = await all_stored_entries(store)
    async with open_store(home, clock=clock) as store:
        assert await all_stored_entries(store) == before


@pytest.mark.parametrize("name", [*NOTHING_OF_INTEREST, "all"])
async def test_losing_a_file_that_only_informs_loses_nothing(home, clock, name):
    async with open_store(home, clock=clock) as store:
        await furnish(store, clock)
        await store.suspend_recently_active(600)
        before = await all_stored_entries(store)
    for each in NOTHING_OF_INTEREST if name == "all" else [name]:
        (home / each).unlink(missing_ok=True)
    async with open_store(home, clock=clock) as store:
        assert await all_stored_entries(store) == before
        assert store.incidents == ()
    shown = json.loads((home / "sessions.json").read_text())
    assert {key: one["session_id"] for key, one in shown.items() if key != "_meta"} == {
        key: one.session_id for key, one in before.items()
    }


async def test_losing_the_database_rebuilds_the_index_from_the_file(home, clock):
    async with open_store(home, clock=clock) as store:
        await furnish(store, clock)
        before = await all_stored_entries(store)
    for path in home.glob("sessions.db*"):
        path.unlink()
    async with open_store(home, clock=clock) as store:
        after = await all_stored_entries(store)
        assert set(after) == set(before)
        for key, old in before.items():
            assert after[key].altered(entry_id=old.entry_id) == old, key
        for number in range(6):
            assert (await store.get_or_create_session(dm_source(str(number), f"user{number}"))).session_key


async def test_a_lane_that_lost_its_session_is_told_so_after_a_restart_too(home, clock):
    async with open_store(home, clock=clock) as store:
        here, there = (
            await store.get_or_create_session(dm_source()),
            await store.get_or_create_session(group_source()),
        )
        await store.switch_session(here.session_key, there.session_id, scope=EVERYTHING, move=True)
    async with open_store(home, clock=clock) as store:
        assert (await store.get_or_create_session(group_source())).previous_session_id == there.session_id


async def test_what_nobody_was_told_yet_is_told_after_a_restart(home, clock):
    async with open_store(home, clock=clock) as store:
        key = (await store.get_or_create_session(dm_source())).session_key
        await store.suspend_session(key)
        assert (await store.get_or_create_session(dm_source())).was_auto_reset
    async with open_store(home, clock=clock) as store:
        assert (await store.get_or_create_session(dm_source())).was_auto_reset


async def test_a_store_has_one_owner(home, clock):
    async with open_store(home, clock=clock):
        with pytest.raises(StoreBusyError, match="process"):
            async with open_store(home, clock=clock):
                pass
    async with open_store(home, clock=clock) as store:
        assert await all_stored_entries(store) == {}


async def test_in_mode_sync_the_file_is_whole_at_every_moment(home, clock):
    async with open_store(home, config_with_snapshot(SnapshotMode.SYNC), clock) as store:
        key = (await store.get_or_create_session(dm_source())).session_key
        await store.suspend_session(key)
        (home / "copy").mkdir()
        (home / "copy" / "sessions.json").write_bytes((home / "sessions.json").read_bytes())
    async with open_store(home / "copy", clock=clock) as store:
        assert (await store.get_session(key)).state is SessionState.SUSPENDED
