"""Old lanes are forgotten when the configuration says so, and none that is in use."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from gateway_sessions import Config, Scope, SessionResetPolicy, SessionSource
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
from tests.property.store.store_invariants import StoredRows, check_stored_rows

KEPT_FOR_EVER = Config(
    timezone="UTC",
    session_reset=SessionResetPolicy(mode=ResetMode.NONE),
    sessiondb=SessionDBConfig(durability=Durability.OS),
    sessions_json=SessionsJsonConfig(mode=SnapshotMode.OFF),
    expiry_watcher=ExpiryWatcherConfig(interval=timedelta(days=1)),
    backups=BackupsConfig(interval=None),
)
HOURLY = replace(KEPT_FOR_EVER, session_store_max_age=timedelta(days=3))
DAILY_PASS = ExpiryWatcherConfig(interval=timedelta(days=1), prune_interval=timedelta(days=1))
QUICK = replace(HOURLY, expiry_watcher=DAILY_PASS)
ANNE = SessionSource(platform="telegram", chat_id="5", user_id="5", chat_type="dm")
BERT = SessionSource(platform="telegram", chat_id="6", user_id="6", chat_type="dm")


async def test_a_lane_is_forgotten_within_an_hour_of_its_age(tmp_path: Path, fake_clock):
    async with SessionStore.open(tmp_path, HOURLY, clock=fake_clock) as store:
        anne = await store.get_or_create_session(ANNE)
        await fake_clock.advance(days=3)
        assert await store.get_session(anne.session_key) is not None
        await fake_clock.advance(hours=1)
        assert await store.get_session(anne.session_key) is None
    check_stored_rows(StoredRows(tmp_path / "sessions.db"))


async def test_the_first_pass_after_a_start_forgets_what_grew_old_meanwhile(tmp_path: Path, fake_clock):
    async with SessionStore.open(tmp_path, QUICK, clock=fake_clock) as store:
        anne = await store.get_or_create_session(ANNE)
    await fake_clock.advance(days=4)
    async with SessionStore.open(tmp_path, QUICK, clock=fake_clock) as store:
        await fake_clock.advance(seconds=59)
        assert await store.get_session(anne.session_key) is not None
        await fake_clock.advance(seconds=1)
        assert await store.get_session(anne.session_key) is None


async def test_without_a_limit_nothing_is_ever_forgotten(tmp_path: Path, fake_clock):
    async with SessionStore.open(tmp_path, KEPT_FOR_EVER, clock=fake_clock) as store:
        anne = await store.get_or_create_session(ANNE)
        fake_clock.step(days=4000)
        await fake_clock.advance(days=2)
        assert await store.peek_session_id(anne.session_key) == anne.session_id


async def test_a_lane_that_is_written_to_is_kept(tmp_path: Path, fake_clock):
    async with SessionStore.open(tmp_path, QUICK, clock=fake_clock) as store:
        anne = await store.get_or_create_session(ANNE)
        for _ in range(3):
            await fake_clock.advance(days=2)
            await store.get_or_create_session(ANNE)
        assert await store.peek_session_id(anne.session_key) == anne.session_id


async def test_running_and_working_lanes_are_kept_for_as_long_as_it_takes(tmp_path: Path, fake_clock):
    working: set[str] = set()

    def works(session_key: str) -> bool:
        return session_key in working

    async with SessionStore.open(tmp_path, QUICK, clock=fake_clock, has_active_processes=works) as store:
        anne, bert = await store.get_or_create_session(ANNE), await store.get_or_create_session(BERT)
        with closing(sqlite3.connect(tmp_path / "sessions.db", isolation_level=None)) as raw:
            sql = "INSERT INTO lanes (session_key, lease_epoch) VALUES (?, 1)"
            raw.execute(sql, (anne.session_key,))
            working.add(bert.session_key)
            await fake_clock.advance(days=9)
            assert await store.get_session(anne.session_key) is not None
            assert await store.get_session(bert.session_key) is not None
            raw.execute("UPDATE lanes SET lease_epoch = NULL")
        working.clear()
        await fake_clock.advance(hours=1)
        assert await store.list_sessions(scope=Scope.operator()) == []


async def test_a_suspended_lane_is_kept_so_that_it_stays_suspended(tmp_path: Path, fake_clock):
    async with SessionStore.open(tmp_path, QUICK, clock=fake_clock) as store:
        anne = await store.get_or_create_session(ANNE)
        await store.suspend_session(anne.session_key)
        await fake_clock.advance(days=9)
        entry = await store.get_session(anne.session_key)
        assert entry is not None
        assert entry.suspended


async def test_a_forgotten_lane_starts_without_any_history(tmp_path: Path, fake_clock):
    async with SessionStore.open(tmp_path, QUICK, clock=fake_clock) as store:
        anne = await store.get_or_create_session(ANNE)
        await fake_clock.advance(days=4)
        new = await store.get_or_create_session(ANNE)
        assert new.session_id != anne.session_id
        assert (new.previous_session_id, new.was_auto_reset, new.opened_by) == (None, False, None)
    check_stored_rows(StoredRows(tmp_path / "sessions.db"))


async def test_a_finalised_session_is_forgotten_with_its_first_reason(tmp_path: Path, fake_clock):
    config = replace(QUICK, session_reset=SessionResetPolicy(mode=ResetMode.IDLE, idle_minutes=60))
    async with SessionStore.open(tmp_path, config, clock=fake_clock) as store:
        anne = await store.get_or_create_session(ANNE)
        await fake_clock.advance(days=6)
        assert await store.list_sessions(scope=Scope.operator()) == []
    truth = StoredRows(tmp_path / "sessions.db")
    assert truth.sessions[anne.session_id]["end_reason"] == "idle"
    check_stored_rows(truth)


@pytest.mark.parametrize("days", [None, 0, -1])
async def test_no_age_means_no_pruning(tmp_path: Path, fake_clock, days):
    async with SessionStore.open(tmp_path, QUICK, clock=fake_clock) as store:
        await store.get_or_create_session(ANNE)
        fake_clock.step(days=4000)
        assert await store.prune_old_entries(days) == 0


async def test_ended_sessions_go_when_the_configuration_says_so(tmp_path: Path, fake_clock):
    kept = replace(KEPT_FOR_EVER, session_retention=timedelta(days=30))
    async with SessionStore.open(tmp_path, kept, clock=fake_clock) as store:
        anne = await store.get_or_create_session(ANNE)
        first = anne.session_id
        await store.append_to_transcript(first, {"role": "user", "content": "hello"})
        current = await store.reset_session(anne.session_key)
        assert current is not None
        await store.db.create_session("open", "cli")
        await fake_clock.advance(days=30)
        assert await store.db.get_session(first) is not None
        await fake_clock.advance(hours=2)
        assert await store.db.get_session(first) is None
        await fake_clock.advance(days=300)
        assert await store.db.get_session("open") is not None, "nobody has ended it"
        assert await store.peek_session_id(anne.session_key) == current.session_id


async def test_without_such_a_word_ended_sessions_stay(tmp_path: Path, fake_clock):
    async with SessionStore.open(tmp_path, KEPT_FOR_EVER, clock=fake_clock) as store:
        anne = await store.get_or_create_session(ANNE)
        await store.reset_session(anne.session_key)
        await fake_clock.advance(days=400)
        assert await store.db.get_session(anne.session_id) is not None
