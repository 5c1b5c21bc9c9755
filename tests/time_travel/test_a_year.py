"""A year of resets in a second: the real store, and nothing but its clock is moved."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from gateway_sessions import Config, EndReason, Scope, SessionResetPolicy, SessionSource
from gateway_sessions.config import (
    BackupsConfig,
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
    expiry_watcher=ExpiryWatcherConfig(interval=timedelta(days=1), prune_interval=timedelta(days=1)),
    backups=BackupsConfig(interval=None),
)
pytestmark = pytest.mark.timeout(90)  # on a machine that is busy elsewhere
ANNE = SessionSource(platform="telegram", chat_id="5", user_id="5", chat_type="dm")
NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
ZONES = ["America/New_York", "Australia/Lord_Howe"]
DAILY = SessionResetPolicy(mode=ResetMode.DAILY, at_hour=4)
WEEKLY = SessionResetPolicy(mode=ResetMode.CRON, cron="30 2 * * mon")


def under(policy: SessionResetPolicy, zone: str) -> Config:
    return replace(QUICK, session_reset=policy, timezone=zone)


@pytest.mark.parametrize("zone", ZONES)
async def test_a_talkative_person_meets_one_daily_reset_on_each_local_date(tmp_path: Path, zone: str):
    clock = FakeClock(NEW_YEAR)
    resets: list[datetime] = []
    async with SessionStore.open(tmp_path, under(DAILY, zone), clock=clock) as store:
        last = await store.get_or_create_session(ANNE)
        while clock.now() < NEW_YEAR + timedelta(days=365):
            clock.step(hours=6)
            entry = await store.get_or_create_session(ANNE)
            if entry.session_id != last.session_id:
                assert (entry.auto_reset_reason, entry.previous_session_id) == (
                    EndReason.DAILY,
                    last.session_id,
                )
                resets.append(clock.now().astimezone(ZoneInfo(zone)))
            last = entry
    days = [moment.date() for moment in resets]
    assert len(set(days)) == len(days)
    assert 364 <= len(days) <= 366
    assert {4, 5, 6, 7, 8} >= {moment.hour for moment in resets}


@pytest.mark.parametrize(
    ("policy", "reasons"),
    [
        (SessionResetPolicy(mode=ResetMode.IDLE, idle_minutes=24 * 60), {EndReason.IDLE: 52}),
        (DAILY, {EndReason.DAILY: 52}),
        (SessionResetPolicy(mode=ResetMode.BOTH, idle_minutes=7 * 24 * 60), {EndReason.DAILY: 52}),
        (SessionResetPolicy(mode=ResetMode.NONE), {}),
    ],
    ids=["idle", "daily", "both", "none"],
)
async def test_somebody_who_writes_once_a_week_starts_afresh_each_time(tmp_path: Path, policy, reasons):
    clock = FakeClock(NEW_YEAR)
    found: dict[EndReason, int] = {}
    async with SessionStore.open(tmp_path, under(policy, "Europe/Berlin"), clock=clock) as store:
        for _ in range(53):
            entry = await store.get_or_create_session(ANNE)
            if entry.auto_reset_reason is not None:
                found[entry.auto_reset_reason] = found.get(entry.auto_reset_reason, 0) + 1
            clock.step(days=7)
            await store.watcher.sweep()
    assert found == reasons


@pytest.mark.parametrize("zone", ZONES)
async def test_a_weekly_schedule_ends_the_session_each_monday(tmp_path: Path, zone: str):
    clock = FakeClock(NEW_YEAR)
    mondays: list[date] = []
    async with SessionStore.open(tmp_path, under(WEEKLY, zone), clock=clock) as store:
        last = await store.get_or_create_session(ANNE)
        while clock.now() < NEW_YEAR + timedelta(days=364):
            clock.step(hours=6)
            entry = await store.get_or_create_session(ANNE)
            if entry.session_id != last.session_id:
                assert entry.auto_reset_reason is EndReason.CRON
                mondays.append(clock.now().astimezone(ZoneInfo(zone)).date())
            last = entry
    assert len(mondays) == 52
    assert {day.isoweekday() for day in mondays} == {1}
    assert len(set(mondays)) == 52


async def test_a_year_with_all_its_duties_passes_in_a_second(tmp_path: Path):
    """Of each month, the last day passes with all that goes on in it."""
    clock = FakeClock(NEW_YEAR)
    told: list[str] = []

    async def hear(event) -> None:
        told.append(event.session_id)

    config = replace(
        under(DAILY, "America/New_York"), session_store_max_age=timedelta(days=90), backups=BackupsConfig()
    )
    async with SessionStore.open(tmp_path, config, clock=clock, hooks=[hear]) as store:
        ids = []
        for _ in range(12):
            ids.append((await store.get_or_create_session(ANNE)).session_id)
            clock.step(days=29)
            await clock.advance(days=1)
        clock.step(days=90)
        await clock.advance(days=1)
        assert await store.list_sessions(scope=Scope.operator()) == []
    assert told == ids
