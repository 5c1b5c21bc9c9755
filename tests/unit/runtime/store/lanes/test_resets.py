"""Starting afresh because a person asked for it, and taking that back."""

from __future__ import annotations

import pytest

from gateway_sessions import EndReason, SessionState
from gateway_sessions.errors import NothingToUndoError
from tests.raw_sql import execute_sql
from tests.unit.runtime.store_fixtures import (
    EVERYTHING,
    IDLE,
    dm_source,
    group_source,
    open_store,
    pass_time,
    quick_config,
    session_row,
    stored_entry,
)

UNKNOWN = "agent:main:telegram:dm:unknown"


class TestReset:
    async def test_a_lane_without_a_session_stays_without(self, store, home):
        assert await store.reset_session(UNKNOWN) is None
        assert execute_sql(home / "sessions.db", "SELECT * FROM sessions") == []

    async def test_a_new_session_takes_the_place(self, store, clock, home):
        old = await store.get_or_create_session(dm_source(chat_name="Alice"))
        await store.update_session(old.session_key, 100)
        pass_time(clock, minutes=3)
        new = await store.reset_session(old.session_key)
        assert new.session_id != old.session_id
        assert new.previous_session_id == old.session_id
        assert new.is_fresh_reset
        assert not new.was_auto_reset
        assert new.reset_had_activity
        assert (new.origin, new.owner, new.display_name) == (old.origin, old.owner, "Alice")
        assert new.created_at == new.updated_at == new.last_interaction_at == clock.now()
        assert new.last_prompt_tokens == 0
        assert await stored_entry(store, old.session_key) == new
        assert session_row(home, old.session_id)[1] == EndReason.SESSION_RESET
        assert session_row(home, new.session_id) == (old.session_key, None, old.session_id)

    async def test_the_next_message_goes_on_with_it(self, store):
        old = await store.get_or_create_session(dm_source())
        new = await store.reset_session(old.session_key)
        assert (await store.get_or_create_session(dm_source())).session_id == new.session_id

    async def test_a_name_may_be_given(self, store):
        key = (await store.get_or_create_session(dm_source(chat_name="Alice"))).session_key
        assert (await store.reset_session(key, display_name="Renamed")).display_name == "Renamed"

    async def test_each_repetition_begins_another_session(self, store):
        key = (await store.get_or_create_session(dm_source())).session_key
        ids = {(await store.reset_session(key)).session_id for _ in range(3)}
        assert len(ids) == 3

    @pytest.mark.parametrize("mark", ["suspend_session", "mark_resume_pending"])
    async def test_it_takes_every_mark_away(self, store, mark):
        key = (await store.get_or_create_session(dm_source())).session_key
        await getattr(store, mark)(key)
        assert (await store.reset_session(key)).state is SessionState.ACTIVE

    async def test_an_ended_session_is_replaced_and_keeps_the_reason_of_its_end(self, home, clock):
        async with open_store(home, quick_config(session_reset=IDLE), clock) as store:
            old = await store.get_or_create_session(dm_source())
            pass_time(clock, hours=2)
            assert (await store.watcher.sweep()).finalised == 1
            new = await store.reset_session(old.session_key)
        assert new.previous_session_id == old.session_id
        assert session_row(home, old.session_id)[1] == EndReason.IDLE

    async def test_what_was_chosen_for_the_session_ends_with_it_and_the_zone_stays(self, store):
        key = (await store.get_or_create_session(dm_source())).session_key
        await store.set_model_override(key, {"model": "m"})
        await store.set_reset_policy(key, IDLE)
        await store.set_zone(key, "Asia/Tokyo")
        session_id = await store.peek_session_id(key)
        await store.append_to_transcript(session_id, {"role": "user", "content": "hello"})
        new = await store.reset_session(key)
        assert (new.model_override, new.reset_policy, new.zone) == (None, None, "Asia/Tokyo")

    async def test_a_model_chosen_before_anything_was_said_goes_over(self, store):
        key = (await store.get_or_create_session(dm_source())).session_key
        await store.set_model_override(key, {"model": "m"})
        await store.set_reset_policy(key, IDLE)
        new = await store.reset_session(key)
        assert (new.model_override, new.reset_policy) == ({"model": "m"}, None)


class TestUndo:
    async def test_a_lane_without_a_session_has_nothing_to_undo(self, store):
        assert await store.undo_reset(UNKNOWN) is None

    async def test_a_first_session_has_nothing_to_undo(self, store):
        entry = await store.get_or_create_session(dm_source())
        with pytest.raises(NothingToUndoError) as caught:
            await store.undo_reset(entry.session_key)
        assert caught.value.where == entry.session_key
        assert await stored_entry(store, entry.session_key) == entry

    async def test_the_session_comes_back_with_its_record(self, store, clock, home):
        old = await store.get_or_create_session(dm_source(chat_name="Alice"))
        await store.set_model_override(old.session_key, {"model": "m"})
        before = await store.update_session(old.session_key, last_prompt_tokens=321)
        pass_time(clock, minutes=1)
        new = await store.reset_session(old.session_key, "Other")
        pass_time(clock, minutes=1)
        back = await store.undo_reset(old.session_key)
        same = ("session_id", "created_at", "last_prompt_tokens", "model_override", "display_name", "origin")
        assert {name: getattr(back, name) for name in same} == {name: getattr(before, name) for name in same}
        assert back.previous_session_id is None
        assert back.last_interaction_at == back.updated_at == clock.now()
        assert not back.is_fresh_reset
        assert await stored_entry(store, old.session_key) == back
        assert session_row(home, old.session_id) == (old.session_key, None, None)
        assert session_row(home, new.session_id)[1] == EndReason.RESET_UNDONE

    async def test_an_automatic_reset_can_be_undone(self, home, clock):
        async with open_store(home, quick_config(session_reset=IDLE), clock) as store:
            old = await store.get_or_create_session(dm_source())
            pass_time(clock, hours=2)
            await store.get_or_create_session(dm_source())
            back = await store.undo_reset(old.session_key)
            assert back.session_id == old.session_id
            pass_time(clock, minutes=1)
            assert (await store.get_or_create_session(dm_source())).session_id == old.session_id

    async def test_an_end_found_by_the_watcher_can_be_undone(self, home, clock):
        async with open_store(home, quick_config(session_reset=IDLE), clock) as store:
            old = await store.get_or_create_session(dm_source())
            await store.update_session(old.session_key, 5)
            pass_time(clock, hours=2)
            await store.watcher.sweep()
            await store.get_or_create_session(dm_source())
            back = await store.undo_reset(old.session_key)
        assert (back.session_id, back.last_prompt_tokens) == (old.session_id, 5)
        assert back.state is SessionState.ACTIVE

    async def test_a_suspended_session_comes_back_active(self, store):
        old = await store.get_or_create_session(dm_source())
        await store.suspend_session(old.session_key)
        await store.get_or_create_session(dm_source())
        assert (await store.undo_reset(old.session_key)).state is SessionState.ACTIVE

    async def test_a_chain_of_resets_is_undone_step_by_step(self, store):
        key = (await store.get_or_create_session(dm_source())).session_key
        chain = [(await store.get_session(key)).session_id]
        for tokens in (1, 2, 3):
            await store.update_session(key, tokens)
            chain.append((await store.reset_session(key)).session_id)
        for tokens, session in zip((3, 2, 1), chain[-2::-1], strict=True):
            back = await store.undo_reset(key)
            assert (back.session_id, back.last_prompt_tokens) == (session, tokens)
        with pytest.raises(NothingToUndoError):
            await store.undo_reset(key)

    async def test_what_was_undone_can_be_gone_back_to(self, store):
        old = await store.get_or_create_session(dm_source())
        new = await store.reset_session(old.session_key)
        await store.update_session(old.session_key, 8)
        await store.undo_reset(old.session_key)
        redone = await store.switch_session(old.session_key, new.session_id, scope=EVERYTHING, move=True)
        assert (redone.session_id, redone.last_prompt_tokens) == (new.session_id, 8)
        assert redone.previous_session_id == old.session_id
        assert (await store.undo_reset(old.session_key)).session_id == old.session_id

    async def test_it_does_not_bring_back_a_session_that_lives_on_another_lane(self, store):
        moved = await store.get_or_create_session(group_source())
        other = await store.get_or_create_session(dm_source())
        await store.reset_session(moved.session_key)
        await store.switch_session(other.session_key, moved.session_id, scope=EVERYTHING, move=True)
        with pytest.raises(NothingToUndoError, match="another lane"):
            await store.undo_reset(moved.session_key)

    @pytest.mark.parametrize("ended_by", ["reset", "watcher"])
    async def test_nor_one_that_has_ended_there(self, home, clock, ended_by):
        """What was said on the other lane since then belongs to it."""
        async with open_store(home, quick_config(session_reset=IDLE), clock) as store:
            moved = await store.get_or_create_session(group_source())
            other = await store.get_or_create_session(dm_source())
            await store.reset_session(moved.session_key)
            await store.switch_session(other.session_key, moved.session_id, scope=EVERYTHING, move=True)
            if ended_by == "reset":
                await store.reset_session(other.session_key)
            else:
                pass_time(clock, hours=2)
                assert (await store.watcher.sweep()).finalised == 2
            with pytest.raises(NothingToUndoError, match="another lane"):
                await store.undo_reset(moved.session_key)
