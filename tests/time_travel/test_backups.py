"""A store copies its database every day, and keeps the newest copies."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gateway_sessions import Config, SessionStore
from gateway_sessions.config import BackupsConfig, ExpiryWatcherConfig
from gateway_sessions.testing import FakeClock
from tests.crash.kills.store_workload import source
from tests.raw_sql import execute_sql

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
OTHERWISE_QUIET = ExpiryWatcherConfig(interval=DAY, prune_interval=DAY)


def copies(home: Path) -> list[str]:
    return sorted(path.name for path in (home / "backups").glob("*"))


async def test_a_copy_is_taken_soon_after_the_first_start_and_then_every_day(tmp_path: Path):
    clock = FakeClock(START)
    async with SessionStore.open(tmp_path, Config(expiry_watcher=OTHERWISE_QUIET), clock=clock) as store:
        await store.get_or_create_session(source("a"))
        await clock.advance(minutes=6)
        assert copies(tmp_path) == ["sessions-20260301T120500Z.db"]
        for _ in range(5):
            await store.get_or_create_session(source("a"))
            await clock.advance(days=1)
    assert copies(tmp_path) == [f"sessions-2026030{day}T120500Z.db" for day in (4, 5, 6)]
    assert execute_sql(tmp_path / "backups" / copies(tmp_path)[0], "SELECT count(*) FROM sessions")[0][0] >= 1


async def test_a_database_that_nobody_has_written_to_is_not_copied_again(tmp_path: Path):
    clock = FakeClock(START)
    async with SessionStore.open(tmp_path, Config(expiry_watcher=OTHERWISE_QUIET), clock=clock) as store:
        await clock.advance(days=30)  # the first pass of the watcher comes after the first copy, and writes
        assert copies(tmp_path) == ["sessions-20260301T120500Z.db", "sessions-20260302T120500Z.db"]
        await store.get_or_create_session(source("a"))
        await clock.advance(hours=24)
        assert copies(tmp_path)[2:] == ["sessions-20260331T120500Z.db"]
        for path in (tmp_path / "backups").iterdir():
            path.unlink()
        await clock.advance(days=1)
        assert len(copies(tmp_path)) == 1


async def test_a_restart_does_not_take_another_copy_on_the_same_day(tmp_path: Path):
    clock = FakeClock(START)
    for _ in range(3):
        async with SessionStore.open(tmp_path, clock=clock):
            await clock.advance(minutes=30)
    assert len(copies(tmp_path)) == 1


async def test_a_copy_from_the_future_does_not_stop_the_copies(tmp_path: Path):
    async with SessionStore.open(tmp_path, clock=FakeClock(START + 30 * DAY)) as store:
        await store.db.back_up()
    clock = FakeClock(START)
    async with SessionStore.open(tmp_path, clock=clock):
        await clock.advance(minutes=6)
    assert len(copies(tmp_path)) == 2


async def test_without_an_interval_none_is_taken(tmp_path: Path):
    clock = FakeClock(START)
    config = Config(backups=BackupsConfig(interval=None), expiry_watcher=OTHERWISE_QUIET)
    async with SessionStore.open(tmp_path, config, clock=clock):
        await clock.advance(days=3)
    assert copies(tmp_path) == []


async def test_a_copy_that_fails_is_told_and_tried_again(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    clock = FakeClock(START)
    (tmp_path / "backups").write_text("in the way")
    async with SessionStore.open(tmp_path, clock=clock) as store:
        await clock.advance(minutes=6)
        assert [getattr(one, "action", None) for one in caplog.records] == ["backup_failed"]
        (store.home / "backups").unlink()
        await clock.advance(hours=2)
    assert len(copies(tmp_path)) == 1
