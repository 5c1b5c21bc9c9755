"""Nights in which a clock is moved: by a zone's rules, or by a hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from gateway_sessions import Config, EndReason, SessionResetPolicy, SessionSource
from gateway_sessions.config import (
    Durability,
    ExpiryWatcherConfig,
    SessionDBConfig,
    SessionsJsonConfig,
    SnapshotMode,
)
from gateway_sessions.core.sessions.reset_policy import ResetMode
from gateway_sessions.runtime.store.store import SessionStore
from gateway_sessions.testing import FakeClock

QUICK = Config(
    sessiondb=SessionDBConfig(durability=Durability.OS),
    sessions_json=SessionsJsonConfig(mode=SnapshotMode.OFF),
    expiry_watcher=ExpiryWatcherConfig(first_pass=timedelta(days=36_500)),
)
ANNE = SessionSource(platform="telegram", chat_id="5", user_id="5", chat_type="dm")
DAY = timedelta(days=1)
QUARTER = timedelta(minutes=15)
# The zone, the local date of the move, and an hour that is missing, shown twice, or on a date left out.
NIGHTS = [
    ("America/New_York", date(2026, 3, 8), 2),
    ("America/New_York", date(2026, 11, 1), 1),
    ("Europe/Berlin", date(2026, 3, 29), 2),
    ("Europe/Berlin", date(2026, 10, 25), 2),
    ("Australia/Lord_Howe", date(2026, 4, 5), 1),
    ("Australia/Lord_Howe", date(2026, 10, 4), 2),
    ("Pacific/Apia", date(2011, 12, 30), 4),
    ("America/Havana", date(2026, 3, 8), 0),
]
SPRING = datetime.fromisoformat("2026-03-08T12:00:00+00:00")


def daily(zone: str, at_hour: int) -> Config:
    policy = SessionResetPolicy(mode=ResetMode.DAILY, at_hour=at_hour)
    return replace(QUICK, timezone=zone, session_reset=policy)


def dates_shown(start: datetime, end: datetime, zone: ZoneInfo) -> list[date]:
    quarters = range((end - start) // QUARTER + 1)
    return sorted({(start + count * QUARTER).astimezone(zone).date() for count in quarters})


@pytest.mark.parametrize("noticed_by", ["messages", "the watcher"])
@pytest.mark.parametrize(("zone", "night", "at_hour"), NIGHTS)
async def test_each_local_date_has_one_reset(tmp_path: Path, zone, night, at_hour, noticed_by):
    local = ZoneInfo(zone)
    noon = datetime.combine(night - 2 * DAY, datetime.min.time(), local) + timedelta(hours=12)
    clock = FakeClock(noon)
    start, end = clock.now(), clock.now() + 4 * DAY
    resets: list[datetime] = []
    async with SessionStore.open(tmp_path, daily(zone, at_hour), clock=clock) as store:
        last = await store.get_or_create_session(ANNE)
        while clock.now() < end:
            clock.step(QUARTER)
            if noticed_by == "the watcher":
                ended = (await store.watcher.sweep()).finalised
            entry = await store.get_or_create_session(ANNE)
            if noticed_by == "the watcher":
                assert ended == (entry.session_id != last.session_id)
            if entry.session_id != last.session_id:
                assert entry.auto_reset_reason is EndReason.DAILY
                resets.append(clock.now().astimezone(local))
            last = entry
    assert [moment.date() for moment in resets] == dates_shown(start, end, local)[1:]
    for moment in resets:
        wall = moment.replace(tzinfo=None)
        due = datetime.combine(wall.date(), datetime.min.time()) + timedelta(hours=at_hour)
        assert timedelta(0) <= wall - due <= timedelta(hours=1), "as soon as the clock shows the hour or more"


class TestAClockSetBack:
    async def test_never_ends_a_session(self, tmp_path: Path):
        clock = FakeClock(SPRING)
        async with SessionStore.open(tmp_path, daily("UTC", 4), clock=clock) as store:
            entry = await store.get_or_create_session(ANNE)
            for hours in (1, 7, 24, 24 * 30):
                clock.step(hours=-hours)
                assert (await store.watcher.sweep()).finalised == 0
                assert (await store.get_or_create_session(ANNE)).session_id == entry.session_id

    @pytest.mark.parametrize("write", ["message", "end of a turn", "setting", "resume mark"])
    async def test_does_not_bring_a_second_reset_on_one_date(self, tmp_path: Path, write):
        """At half past four the clock is set back by an hour, and four o'clock comes again."""
        writes: dict[str, Callable[[SessionStore, str], object]] = {
            "message": lambda store, _key: store.get_or_create_session(ANNE),
            "end of a turn": lambda store, key: store.update_session(key),
            "setting": lambda store, key: store.set_zone(key, "UTC"),
            "resume mark": lambda store, key: store.clear_resume_pending(key),
        }
        clock = FakeClock("2026-03-08T03:00:00+00:00")
        async with SessionStore.open(tmp_path, daily("UTC", 4), clock=clock) as store:
            old = await store.get_or_create_session(ANNE)
            clock.step(minutes=90)
            new = await store.get_or_create_session(ANNE)
            assert new.previous_session_id == old.session_id
            clock.step(hours=-1)
            await store.get_or_create_session(ANNE)
            if write == "resume mark":
                await store.mark_resume_pending(new.session_key)
            await writes[write](store, new.session_key)
            clock.step(hours=2)
            assert (await store.watcher.sweep()).finalised == 0
            assert (await store.get_or_create_session(ANNE)).session_id == new.session_id
            clock.step(hours=22, minutes=30)
            assert (await store.get_or_create_session(ANNE)).previous_session_id == new.session_id

    async def test_does_not_lose_a_reset_that_was_put_off(self, tmp_path: Path):
        working = True
        clock = FakeClock("2026-03-08T03:00:00+00:00")
        store = SessionStore.open(
            tmp_path, daily("UTC", 4), clock=clock, has_active_processes=lambda _key: working
        )
        async with store:
            old = await store.get_or_create_session(ANNE)
            clock.step(minutes=65)
            assert (await store.get_or_create_session(ANNE)).session_id == old.session_id
            clock.step(minutes=-10)
            assert (await store.get_or_create_session(ANNE)).session_id == old.session_id
            working = False
            new = await store.get_or_create_session(ANNE)
            assert (new.previous_session_id, new.auto_reset_reason) == (old.session_id, EndReason.DAILY)

    async def test_does_not_stop_the_duties(self, tmp_path: Path):
        clock = FakeClock(SPRING)
        config = replace(daily("UTC", 4), expiry_watcher=ExpiryWatcherConfig())
        async with SessionStore.open(tmp_path, config, clock=clock) as store:
            entry = await store.get_or_create_session(ANNE)
            await clock.advance(hours=1)
            clock.step(days=-1)
            await clock.advance(days=1, hours=15, minutes=5)
            found = await store.get_session(entry.session_key)
        assert found is not None
        assert found.expiry_finalized


async def test_a_boundary_that_was_put_off_does_not_outlive_its_policy(tmp_path: Path):
    clock = FakeClock("2026-03-08T03:00:00+00:00")
    never = replace(QUICK, timezone="UTC", session_reset=SessionResetPolicy(mode=ResetMode.NONE))
    working = lambda _key: True  # noqa: E731
    async with SessionStore.open(
        tmp_path, daily("UTC", 4), clock=clock, has_active_processes=working
    ) as store:
        old = await store.get_or_create_session(ANNE)
        clock.step(hours=2)
        assert (await store.get_or_create_session(ANNE)).deferred_boundary is not None
    async with SessionStore.open(tmp_path, never, clock=clock) as store:
        await store.watcher.sweep()
        for _ in range(3):
            clock.step(days=1)
            await store.get_or_create_session(ANNE)
    async with SessionStore.open(tmp_path, daily("UTC", 4), clock=clock) as store:
        await store.watcher.sweep()
        assert (await store.get_or_create_session(ANNE)).session_id == old.session_id
