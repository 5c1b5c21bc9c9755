"""What a person or an operator chooses for one session or chat."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gateway_sessions import BusyMode, InvalidInputError, SessionResetPolicy
from gateway_sessions.errors import InvalidPolicyError
from tests.unit.runtime.store_fixtures import (
    DAILY,
    IDLE,
    dm_source,
    open_store,
    pass_time,
    quick_config,
    stored_entry,
)

UNKNOWN = "agent:main:telegram:dm:unknown"


@pytest.mark.parametrize(
    ("setter", "value"),
    [
        ("set_zone", "Asia/Tokyo"),
        ("set_reset_policy", IDLE),
        ("set_busy_mode", BusyMode.INTERRUPT),
        ("set_model_override", {"model": "m"}),
    ],
)
class TestEach:
    async def test_it_is_stored_and_can_be_taken_back(self, store, setter, value):
        key = (await store.get_or_create_session(dm_source())).session_key
        member = setter.removeprefix("set_")
        assert getattr(await getattr(store, setter)(key, value), member) == value
        assert getattr(await stored_entry(store, key), member) == value
        assert getattr(await getattr(store, setter)(key, None), member) is None

    async def test_the_same_again_writes_nothing(self, store, clock, setter, value):
        key = (await store.get_or_create_session(dm_source())).session_key
        once = await getattr(store, setter)(key, value)
        pass_time(clock, minutes=1)
        assert await getattr(store, setter)(key, value) == once

    async def test_a_lane_without_a_session_stays_without(self, store, setter, value):
        assert await getattr(store, setter)(UNKNOWN, value) is None
        assert await store.get_session(UNKNOWN) is None

    async def test_it_survives_a_restart(self, home, clock, setter, value):
        async with open_store(home, clock=clock) as store:
            key = (await store.get_or_create_session(dm_source())).session_key
            await getattr(store, setter)(key, value)
        async with open_store(home, clock=clock) as store:
            assert getattr(await store.get_session(key), setter.removeprefix("set_")) == value


async def test_credentials_never_reach_the_disk(home, clock):
    async with open_store(home, clock=clock) as store:
        key = (await store.get_or_create_session(dm_source())).session_key
        await store.set_model_override(key, {"model": "m", "api_key": "the-secret"})
    for path in home.iterdir():
        assert b"the-secret" not in path.read_bytes(), path


async def test_a_policy_of_the_session_counts_at_once(store, clock):
    old = await store.get_or_create_session(dm_source())
    await store.set_reset_policy(old.session_key, IDLE)
    assert (await stored_entry(store, old.session_key)).due_at == clock.now() + timedelta(
        hours=1, microseconds=1
    )
    pass_time(clock, hours=2)
    assert (await store.get_or_create_session(dm_source())).session_id != old.session_id


async def test_the_zone_of_the_chat_moves_its_daily_reset(home, clock):
    async with open_store(home, quick_config(session_reset=DAILY), clock) as store:
        key = (await store.get_or_create_session(dm_source())).session_key
        assert (await stored_entry(store, key)).due_at.hour == 4
        assert (await store.set_zone(key, "Asia/Tokyo")).due_at.hour == 19


async def test_an_unknown_busy_mode_is_refused_with_those_that_there_are(store):
    entry = await store.get_or_create_session(dm_source())
    with pytest.raises(InvalidInputError, match="no busy mode 'politely': it is one of queue, collect, "):
        await store.set_busy_mode(entry.session_key, "politely")
    assert await stored_entry(store, entry.session_key) == entry
    assert (await store.set_busy_mode(entry.session_key, "reject")).busy_mode is BusyMode.REJECT


@pytest.mark.parametrize("zone", ["Mars/Olympus", "../etc/passwd", "\ud800"])
async def test_an_unknown_zone_is_refused_and_nothing_written(store, zone):
    entry = await store.get_or_create_session(dm_source())
    with pytest.raises(InvalidPolicyError):
        await store.set_zone(entry.session_key, zone)
    assert await stored_entry(store, entry.session_key) == entry


async def test_a_policy_that_could_never_be_evaluated_cannot_be_made():
    with pytest.raises(InvalidPolicyError):
        SessionResetPolicy(mode="daily", at_hour=25)
