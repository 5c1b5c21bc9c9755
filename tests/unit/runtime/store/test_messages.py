"""The session that a message belongs to."""

from __future__ import annotations

import asyncio

import pytest

from gateway_sessions import EndReason, SessionSource
from gateway_sessions.errors import (
    InvalidSourceError,
    StorageError,
    StoreStoppedError,
    UnidentifiedSourceError,
)
from gateway_sessions.runtime.context import TO_TELL, RandomDigits
from tests.raw_sql import execute_sql
from tests.unit.runtime.store_fixtures import (
    DAILY,
    IDLE,
    all_stored_entries,
    dm_source,
    group_source,
    open_store,
    pass_time,
    quick_config,
    session_row,
    stored_entry,
)


class TestFirstMessage:
    async def test_it_begins_a_session(self, store, clock):
        entry = await store.get_or_create_session(dm_source(chat_name="Alice"))
        assert entry.session_key == "agent:main:telegram:dm:1"
        assert entry.session_id.startswith(f"{clock.now():%Y%m%d_%H%M%S}_")
        assert entry.created_at == entry.updated_at == entry.last_interaction_at == clock.now()
        assert (entry.platform, entry.chat_type, entry.display_name) == ("telegram", "dm", "Alice")
        assert entry.owner == "main:telegram:user:alice"
        assert not entry.was_auto_reset
        assert entry.previous_session_id is None

    async def test_what_is_returned_is_what_is_stored(self, store):
        source = group_source(is_bot=True, role_authorized=True, guild_id="", user_id_alt="", chat_topic="")
        entry = await store.get_or_create_session(source)
        assert await stored_entry(store, entry.session_key) == entry

    async def test_what_tells_of_the_message_alone_does_not_stay_with_the_lane(self, store):
        entry = await store.get_or_create_session(dm_source(role_authorized=True, is_bot=True))
        assert not entry.origin.role_authorized
        assert not entry.origin.is_bot

    async def test_its_session_has_no_end(self, store, home):
        entry = await store.get_or_create_session(dm_source())
        assert session_row(home, entry.session_id) == (entry.session_key, None, None)

    async def test_an_id_that_exists_already_is_not_used_again(self, store, monkeypatch):
        suffixes = iter(["aa", "aa", "bb"])
        monkeypatch.setattr(RandomDigits, "hex_digits", lambda *_: next(suffixes))
        first, second = (
            await store.get_or_create_session(dm_source("1")),
            await store.get_or_create_session(dm_source("2")),
        )
        assert first.session_id.endswith("_aa")
        assert second.session_id.endswith("_bb")

    async def test_where_no_id_is_free_the_caller_is_told(self, store, monkeypatch):
        monkeypatch.setattr(RandomDigits, "hex_digits", lambda *_: "aa")
        entry = await store.get_or_create_session(dm_source("1"))
        with pytest.raises(StorageError, match="tries"):
            await store.get_or_create_session(dm_source("2"))
        with pytest.raises(StorageError, match="tries"):
            await store.reset_session(entry.session_key)


class TestNextMessage:
    async def test_it_goes_on_with_the_session(self, store, clock):
        first = await store.get_or_create_session(dm_source())
        pass_time(clock, hours=30)
        second = await store.get_or_create_session(dm_source())
        assert second.session_id == first.session_id
        assert second.created_at == first.created_at
        assert second.updated_at == second.last_interaction_at == clock.now()
        assert second.version == first.version + 1

    async def test_what_is_returned_is_what_is_stored_each_time(self, store, clock):
        for _ in range(4):
            entry = await store.get_or_create_session(dm_source())
            assert await stored_entry(store, entry.session_key) == entry
            pass_time(clock, minutes=1)

    async def test_it_is_found_although_nothing_is_cached(self, store, home, clock):
        first = await store.get_or_create_session(dm_source())
        await store.__aexit__(None, None, None)
        async with open_store(home, clock=clock) as again:
            assert (await again.get_or_create_session(dm_source())).session_id == first.session_id

    async def test_a_change_made_behind_the_cache_is_seen(self, store):
        entry = await store.get_or_create_session(dm_source())
        await store.update_session(entry.session_key, last_prompt_tokens=7)
        assert (await store.get_or_create_session(dm_source())).last_prompt_tokens == 7

    async def test_other_people_of_the_room_have_sessions_of_their_own(self, store):
        ids = {(await store.get_or_create_session(group_source(user=user))).session_id for user in "abc"}
        assert len(ids) == 3


class TestHeartbeat:
    async def test_it_moves_no_clock(self, store, clock):
        first = await store.get_or_create_session(dm_source())
        pass_time(clock, minutes=5)
        assert await store.get_or_create_session(dm_source(), touch=False) == first
        assert await stored_entry(store, first.session_key) == first

    async def test_it_does_not_keep_a_session_alive(self, home, clock):
        async with open_store(home, quick_config(session_reset=IDLE), clock) as store:
            first = await store.get_or_create_session(dm_source())
            pass_time(clock, minutes=50)
            await store.get_or_create_session(dm_source(), touch=False)
            pass_time(clock, minutes=11)
            assert (await store.get_or_create_session(dm_source())).session_id != first.session_id

    async def test_it_begins_a_session_where_there_is_none(self, store):
        entry = await store.get_or_create_session(dm_source(), touch=False)
        assert await stored_entry(store, entry.session_key) == entry

    async def test_it_does_not_hide_a_boundary_that_has_passed(self, home, clock):
        async with open_store(
            home, quick_config(session_reset=DAILY), clock, has_active_processes=lambda _: True
        ) as store:
            first = await store.get_or_create_session(dm_source())
            pass_time(clock, hours=5)
            await store.get_or_create_session(dm_source(), touch=False)
        async with open_store(home, quick_config(session_reset=DAILY), clock) as store:
            assert (await store.get_or_create_session(dm_source())).previous_session_id == first.session_id


class TestThreeClocks:
    async def test_a_setting_moves_only_the_clock_of_writes(self, store, clock):
        entry = await store.get_or_create_session(dm_source())
        pass_time(clock, minutes=5)
        changed = await store.set_zone(entry.session_key, "Europe/Berlin")
        assert changed.updated_at == clock.now()
        assert (changed.created_at, changed.last_interaction_at) == (
            entry.created_at,
            entry.last_interaction_at,
        )

    async def test_the_end_of_a_turn_counts_as_an_interaction(self, store, clock):
        entry = await store.get_or_create_session(dm_source())
        pass_time(clock, minutes=5)
        settled = await store.update_session(entry.session_key)
        assert settled.last_interaction_at == settled.updated_at == clock.now()
        assert settled.created_at == entry.created_at


class TestReset:
    @pytest.mark.parametrize(
        ("policy", "hours", "reason"), [(IDLE, 2, EndReason.IDLE), (DAILY, 5, EndReason.DAILY)]
    )
    async def test_the_message_that_finds_its_session_due_is_answered_in_a_new_one(
        self, home, clock, policy, hours, reason
    ):
        async with open_store(home, quick_config(session_reset=policy), clock) as store:
            old = await store.get_or_create_session(dm_source())
            await store.update_session(old.session_key, last_prompt_tokens=9)
            pass_time(clock, hours=hours)
            new = await store.get_or_create_session(dm_source())
        assert new.session_id != old.session_id
        assert new.previous_session_id == old.session_id
        assert new.was_auto_reset
        assert new.auto_reset_reason is reason
        assert new.reset_had_activity
        assert new.last_prompt_tokens == 0
        assert session_row(home, old.session_id) == (old.session_key, reason, None)
        assert session_row(home, new.session_id) == (old.session_key, None, old.session_id)

    async def test_exactly_at_the_end_of_the_idle_time_the_session_lives(self, home, clock):
        async with open_store(home, quick_config(session_reset=IDLE), clock) as store:
            old = await store.get_or_create_session(dm_source())
            pass_time(clock, minutes=60)
            kept = await store.get_or_create_session(dm_source())
            pass_time(clock, minutes=60, microseconds=1)
            replaced = await store.get_or_create_session(dm_source())
        assert kept.session_id == old.session_id != replaced.session_id

    async def test_the_zone_of_the_chat_survives_and_a_policy_of_the_session_does_not(self, home, clock):
        async with open_store(home, quick_config(session_reset=IDLE), clock) as store:
            old = await store.get_or_create_session(dm_source())
            await store.set_zone(old.session_key, "Asia/Tokyo")
            await store.set_reset_policy(old.session_key, IDLE)
            pass_time(clock, hours=2)
            new = await store.get_or_create_session(dm_source())
        assert new.zone == "Asia/Tokyo"
        assert new.reset_policy is None


class TestActiveWork:
    async def test_a_due_session_with_work_running_goes_on(self, home, clock):
        asked = []

        async def busy(key: str) -> bool:
            asked.append(key)
            return True

        async with open_store(
            home, quick_config(session_reset=IDLE), clock, has_active_processes=busy
        ) as store:
            old = await store.get_or_create_session(dm_source())
            assert asked == []
            pass_time(clock, hours=2)
            kept = await store.get_or_create_session(dm_source())
        assert kept.session_id == old.session_id
        assert asked == [old.session_key]

    async def test_who_cannot_tell_is_taken_to_be_busy(self, home, clock):
        def broken(key: str) -> bool:
            raise RuntimeError(key)

        async with open_store(
            home, quick_config(session_reset=IDLE), clock, has_active_processes=broken
        ) as store:
            old = await store.get_or_create_session(dm_source())
            pass_time(clock, hours=2)
            assert (await store.get_or_create_session(dm_source())).session_id == old.session_id

    async def test_who_cancels_itself_over_that_is_taken_to_be_busy(self, home, clock):
        async def cancelled(_: str) -> bool:
            raise asyncio.CancelledError

        async with open_store(
            home, quick_config(session_reset=IDLE), clock, has_active_processes=cancelled
        ) as store:
            old = await store.get_or_create_session(dm_source())
            pass_time(clock, hours=2)
            assert (await store.get_or_create_session(dm_source())).session_id == old.session_id

    async def test_who_does_not_come_to_an_answer_keeps_nobody_waiting(self, home, clock):
        """A message that came when a reset was due was never taken in."""

        async def hanging(_: str) -> bool:
            return await asyncio.get_running_loop().create_future()

        async with open_store(
            home, quick_config(session_reset=IDLE), clock, has_active_processes=hanging
        ) as store:
            old = await store.get_or_create_session(dm_source())
            pass_time(clock, hours=2)
            async with asyncio.TaskGroup() as tasks:
                kept = tasks.create_task(store.get_or_create_session(dm_source()))
                await clock.advance(TO_TELL)
                await asyncio.wait_for(kept, 15)
            assert kept.result().session_id == old.session_id

    async def test_an_answer_that_came_too_late_is_asked_for_again(self, home, clock):
        """While the question was out, the session was used: it is not due any more."""
        async with open_store(
            home, quick_config(session_reset=IDLE), clock, has_active_processes=lambda _: meanwhile()
        ) as store:

            async def meanwhile() -> bool:
                await store.update_session(old.session_key)
                return False

            old = await store.get_or_create_session(dm_source())
            pass_time(clock, hours=2)
            kept = await store.get_or_create_session(dm_source())
            assert kept.session_id == old.session_id

    async def test_a_lane_that_never_comes_to_rest_is_an_error_and_no_endless_loop(self, home, clock):
        async with open_store(
            home, quick_config(session_reset=IDLE), clock, has_active_processes=lambda _: meanwhile()
        ) as store:

            async def meanwhile() -> bool:
                await store.set_zone(old.session_key, next(zones))
                return False

            zones = iter(["Asia/Tokyo", "Europe/Berlin"] * 20)
            old = await store.get_or_create_session(dm_source())
            pass_time(clock, hours=2)
            with pytest.raises(StorageError, match="tries"):
                await store.get_or_create_session(dm_source())


class TestForceNew:
    async def test_it_replaces_the_session_whatever_its_state(self, store, home):
        old = await store.get_or_create_session(dm_source())
        await store.suspend_session(old.session_key)
        new = await store.get_or_create_session(dm_source(), force_new=True)
        assert new.session_id != old.session_id
        assert not new.was_auto_reset
        assert not new.is_fresh_reset
        assert session_row(home, old.session_id)[1] == EndReason.SESSION_RESET

    async def test_on_a_new_lane_it_begins_a_session(self, store):
        assert (await store.get_or_create_session(dm_source(), force_new=True)).previous_session_id is None


class TestConcurrency:
    async def test_fifty_first_messages_begin_one_session(self, store, home):
        entries = await asyncio.gather(
            *(store.get_or_create_session(group_source(message_id=f"m{n}")) for n in range(50))
        )
        assert len({one.session_id for one in entries}) == 1
        assert execute_sql(home / "sessions.db", "SELECT count(*) FROM sessions") == [(1,)]
        assert await stored_entry(store, entries[0].session_key) == entries[0]

    async def test_callers_who_force_a_new_session_at_once_share_it(self, store, home):
        await store.get_or_create_session(dm_source())
        entries = await asyncio.gather(
            *(store.get_or_create_session(dm_source(), force_new=True) for _ in range(20))
        )
        assert len({one.session_id for one in entries}) == 1
        assert execute_sql(home / "sessions.db", "SELECT count(*) FROM sessions") == [(2,)]

    async def test_messages_of_many_lanes_do_not_mix(self, store):
        sources = [dm_source(str(n % 25)) for n in range(200)]
        entries = await asyncio.gather(*map(store.get_or_create_session, sources))
        by_key = {one.session_key: one.session_id for one in entries}
        assert len(by_key) == len(set(by_key.values())) == 25
        assert all(by_key[one.session_key] == one.session_id for one in entries)
        assert {key: one.session_id for key, one in (await all_stored_entries(store)).items()} == by_key

    async def test_messages_ends_of_turns_and_resets_at_once_leave_one_current_session(self, store, home):
        key = (await store.get_or_create_session(dm_source())).session_key
        work = [store.get_or_create_session(dm_source()) for _ in range(10)]
        work += [store.update_session(key, n) for n in range(10)]
        work += [store.reset_session(key) for _ in range(5)]
        work += [store.suspend_session(key), store.mark_resume_pending(key), store.clear_resume_pending(key)]
        await asyncio.gather(*work)
        current = await stored_entry(store, key)
        assert execute_sql(
            home / "sessions.db", "SELECT session_id FROM sessions WHERE ended_at IS NULL"
        ) == [(current.session_id,)]

    async def test_each_write_has_a_version_of_its_own(self, store):
        entry = await store.get_or_create_session(dm_source())
        settled = await asyncio.gather(*(store.update_session(entry.session_key, n) for n in range(30)))
        assert sorted(one.version for one in settled) == list(range(2, 32))

    async def test_one_caller_going_away_takes_nothing_from_the_others(self, store):
        async with asyncio.TaskGroup() as tasks:
            callers = [tasks.create_task(store.get_or_create_session(dm_source())) for _ in range(5)]
            await asyncio.sleep(0)
            callers[0].cancel()
        assert len({one.result().session_id for one in callers[1:]}) == 1


class TestRefusal:
    async def test_a_source_without_any_identifier_is_refused(self, store):
        with pytest.raises(UnidentifiedSourceError, match="allow_unidentified_sources"):
            await store.get_or_create_session(SessionSource(platform="telegram"))
        assert await all_stored_entries(store) == {}

    async def test_the_refusal_is_one_of_sources(self, store):
        with pytest.raises(InvalidSourceError) as caught:
            await store.get_or_create_session(SessionSource(platform="telegram", chat_name="Team"))
        assert caught.value.field == "chat_id"

    async def test_a_closed_store_says_so(self, home):
        store = open_store(home)
        with pytest.raises(StoreStoppedError):
            await store.get_or_create_session(dm_source())
        async with store:
            await store.get_or_create_session(dm_source())
        for call in (
            store.get_or_create_session(dm_source()),
            store.get_session("x"),
            store.flush(),
            store.explain("x"),
        ):
            with pytest.raises(StoreStoppedError):
                await call
