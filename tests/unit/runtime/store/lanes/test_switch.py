"""Going on with another existing session: on the same lane, or one that lives elsewhere."""

from __future__ import annotations

import asyncio

import pytest

from gateway_sessions import EndReason, Scope, SessionBusyError, SessionNotFoundError, SessionState
from gateway_sessions.errors import InvalidSessionIdError
from tests.unit.runtime.store_fixtures import (
    EVERYTHING,
    IDLE,
    all_stored_entries,
    dm_source,
    group_source,
    lease_lane,
    open_store,
    pass_time,
    quick_config,
    release_lane,
    session_row,
    stored_entry,
)


async def two_sessions(store):
    """A lane's present session and the one before it."""
    old = await store.get_or_create_session(dm_source())
    await store.update_session(old.session_key, 55)
    return await store.reset_session(old.session_key), old


class TestOnOneLane:
    async def test_the_lane_goes_on_with_the_older_session(self, store, home):
        new, old = await two_sessions(store)
        entry = await store.switch_session(new.session_key, old.session_id, scope=Scope.of(dm_source()))
        assert (entry.session_id, entry.last_prompt_tokens) == (old.session_id, 55)
        assert not entry.was_auto_reset
        assert not entry.is_fresh_reset
        assert await stored_entry(store, new.session_key) == entry
        assert session_row(home, old.session_id) == (new.session_key, None, None)
        assert session_row(home, new.session_id)[1] == EndReason.SESSION_SWITCH

    async def test_to_the_session_it_has_nothing_changes(self, store):
        entry = await store.get_or_create_session(dm_source())
        assert (
            await store.switch_session(entry.session_key, entry.session_id, scope=EVERYTHING, move=True)
            == entry
        )
        assert await stored_entry(store, entry.session_key) == entry

    async def test_a_lane_without_a_session_stays_without(self, store):
        entry = await store.get_or_create_session(dm_source())
        assert (
            await store.switch_session("agent:main:x:dm:1", entry.session_id, scope=EVERYTHING, move=True)
            is None
        )
        assert await stored_entry(store, entry.session_key) == entry

    async def test_there_and_back_again(self, store):
        new, old = await two_sessions(store)
        for target in (old, new, old, new):
            entry = await store.switch_session(
                new.session_key, target.session_id, scope=EVERYTHING, move=True
            )
            assert entry.session_id == target.session_id

    async def test_the_clocks_begin_anew_so_that_it_is_not_due_at_once(self, home, clock):
        async with open_store(home, quick_config(session_reset=IDLE), clock) as store:
            new, old = await two_sessions(store)
            pass_time(clock, hours=5)
            await store.switch_session(new.session_key, old.session_id, scope=EVERYTHING, move=True)
            assert (await store.get_or_create_session(dm_source())).session_id == old.session_id


class TestAcrossLanes:
    async def test_the_session_leaves_the_lane_it_was_on(self, store, home):
        here, there = (
            await store.get_or_create_session(dm_source()),
            await store.get_or_create_session(group_source()),
        )
        entry = await store.switch_session(here.session_key, there.session_id, scope=Scope.of(dm_source()))
        assert entry.session_key == here.session_key
        assert entry.session_id == there.session_id
        assert (entry.origin, entry.owner) == (here.origin, here.owner)
        assert await all_stored_entries(store) == {here.session_key: entry}
        assert session_row(home, there.session_id) == (here.session_key, None, None)

    async def test_the_next_message_of_the_losing_lane_begins_a_new_session_that_tells_why(self, store, home):
        here, there = (
            await store.get_or_create_session(dm_source()),
            await store.get_or_create_session(group_source()),
        )
        await store.switch_session(here.session_key, there.session_id, scope=EVERYTHING, move=True)
        new = await store.get_or_create_session(group_source())
        assert new.session_key == there.session_key
        assert new.auto_reset_reason is EndReason.MOVED
        assert new.was_auto_reset
        assert new.previous_session_id == there.session_id
        assert session_row(home, new.session_id) == (there.session_key, None, there.session_id)

    async def test_it_is_told_once(self, store, clock):
        here, there = (
            await store.get_or_create_session(dm_source()),
            await store.get_or_create_session(group_source()),
        )
        await store.switch_session(here.session_key, there.session_id, scope=EVERYTHING, move=True)
        await store.get_or_create_session(group_source())
        assert not (await store.update_session(there.session_key)).was_auto_reset
        pass_time(clock, days=2)
        await store.prune_old_entries(1)
        assert not (await store.get_or_create_session(group_source())).was_auto_reset

    async def test_the_losing_lane_can_have_it_back(self, store):
        here, there = (
            await store.get_or_create_session(dm_source()),
            await store.get_or_create_session(group_source()),
        )
        await store.switch_session(here.session_key, there.session_id, scope=EVERYTHING, move=True)
        await store.get_or_create_session(group_source())
        back = await store.switch_session(there.session_key, there.session_id, scope=EVERYTHING, move=True)
        assert back.session_id == there.session_id
        assert (await store.get_or_create_session(dm_source())).auto_reset_reason is EndReason.MOVED

    async def test_marks_of_the_other_lane_stay_behind(self, store):
        here, there = (
            await store.get_or_create_session(dm_source()),
            await store.get_or_create_session(group_source()),
        )
        await store.suspend_session(there.session_key)
        entry = await store.switch_session(here.session_key, there.session_id, scope=EVERYTHING, move=True)
        assert entry.state is SessionState.ACTIVE

    async def test_two_lanes_that_want_it_at_once_get_it_one_after_the_other(self, store):
        wanted = await store.get_or_create_session(dm_source("w"))
        lanes = [await store.get_or_create_session(dm_source(str(number))) for number in range(5)]
        await asyncio.gather(
            *(
                store.switch_session(one.session_key, wanted.session_id, scope=EVERYTHING, move=True)
                for one in lanes
            )
        )
        holders = [
            one for one in (await all_stored_entries(store)).values() if one.session_id == wanted.session_id
        ]
        assert len(holders) == 1


class TestRefusal:
    async def test_a_running_session_is_not_moved(self, store, home):
        here, there = (
            await store.get_or_create_session(dm_source()),
            await store.get_or_create_session(group_source()),
        )
        lease_lane(home, there.session_key)
        before = await all_stored_entries(store)
        with pytest.raises(SessionBusyError) as caught:
            await store.switch_session(here.session_key, there.session_id, scope=EVERYTHING, move=True)
        assert (caught.value.session_key, caught.value.session_id) == (there.session_key, there.session_id)
        assert await all_stored_entries(store) == before
        release_lane(home, there.session_key)
        moved = await store.switch_session(here.session_key, there.session_id, scope=EVERYTHING, move=True)
        assert moved.session_id == there.session_id

    @pytest.mark.parametrize(
        "scope",
        [
            Scope(),
            Scope.of(dm_source("2", "bob")),
            Scope.of(group_source(user="bob")),
            Scope.lane("agent:main:telegram:dm:2"),
        ],
        ids=["nobody", "another person", "another person of the room", "another lane"],
    )
    async def test_a_session_out_of_sight_does_not_exist(self, store, scope):
        mine, hers = (
            await store.get_or_create_session(dm_source("2", "bob")),
            await store.get_or_create_session(group_source()),
        )
        before = await all_stored_entries(store)
        with pytest.raises(SessionNotFoundError) as caught:
            await store.switch_session(mine.session_key, hers.session_id, scope=scope)
        assert caught.value.session_id == hers.session_id
        assert await all_stored_entries(store) == before

    async def test_an_ended_session_of_somebody_else_is_out_of_sight_too(self, store):
        _, hers = await two_sessions(store)
        mine = await store.get_or_create_session(dm_source("2", "bob"))
        with pytest.raises(SessionNotFoundError):
            await store.switch_session(
                mine.session_key, hers.session_id, scope=Scope.of(dm_source("2", "bob"))
            )

    async def test_a_session_that_moved_away_is_seen_by_its_new_owner_only(self, store):
        mine, hers = (
            await store.get_or_create_session(dm_source("2", "bob")),
            await store.get_or_create_session(group_source()),
        )
        await store.switch_session(mine.session_key, hers.session_id, scope=EVERYTHING, move=True)
        await store.get_or_create_session(group_source())
        with pytest.raises(SessionNotFoundError):
            await store.switch_session(hers.session_key, hers.session_id, scope=Scope.of(group_source()))

    async def test_an_unknown_session_does_not_exist(self, store):
        entry = await store.get_or_create_session(dm_source())
        with pytest.raises(SessionNotFoundError):
            await store.switch_session(entry.session_key, "nowhere", scope=EVERYTHING, move=True)

    @pytest.mark.parametrize("target", ["", "../etc", "a b", None, 5, "x" * 129])
    async def test_what_is_no_session_id_is_refused_as_such(self, store, target):
        entry = await store.get_or_create_session(dm_source())
        with pytest.raises(InvalidSessionIdError):
            await store.switch_session(entry.session_key, target, scope=EVERYTHING, move=True)
