"""Frozen time at the edges: a store on the machine's clock, and no trace of the freezer in what it stores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import time_machine
from freezegun import freeze_time
from freezegun.api import FrozenDateTimeFactory

from gateway_sessions import Config, EndReason, SessionResetPolicy, SessionSource, SystemClock
from gateway_sessions.config import Durability, SessionDBConfig, SessionsJsonConfig, SnapshotMode
from gateway_sessions.core.sessions.reset_policy import ResetMode
from gateway_sessions.core.sessions_json.file_format import parse_snapshot
from gateway_sessions.runtime.store.store import SessionStore

NOON = "2026-03-07 12:00:00"
AT_NOON = datetime(2026, 3, 7, 12, tzinfo=UTC)
ANNE = SessionSource(platform="telegram", chat_id="5", user_id="5", chat_type="dm")
DAILY = Config(
    timezone="America/New_York",
    session_reset=SessionResetPolicy(mode=ResetMode.DAILY, at_hour=2),
    sessiondb=SessionDBConfig(durability=Durability.OS),
    sessions_json=SessionsJsonConfig(mode=SnapshotMode.SYNC),
)


def assert_plain(value: object) -> None:
    """No instant anywhere in *value* is one of the freezer's."""
    if isinstance(value, datetime):
        # By name: the freezer replaces whatever a module calls `datetime`, here as well.
        assert (type(value).__module__, type(value).__name__) == ("datetime", "datetime")
        assert value.tzinfo is UTC
    elif isinstance(value, (list, tuple)):
        for one in value:
            assert_plain(one)
    elif is_dataclass(value):
        for one in fields(value):
            assert_plain(getattr(value, one.name))
    elif hasattr(value, "__struct_fields__"):
        for name in value.__struct_fields__:
            assert_plain(getattr(value, name))


async def live_a_day(home: Path, tick) -> None:
    """Everything that stores an instant, with the instants it stores."""
    async with SessionStore.open(home, DAILY) as store:
        old = await store.get_or_create_session(ANNE)
        assert old.created_at == AT_NOON
        assert old.due_at == datetime(2026, 3, 8, 7, tzinfo=UTC), "two o'clock is missing that night"
        tick(timedelta(hours=10))
        touched = await store.get_or_create_session(ANNE)
        assert touched.session_id == old.session_id
        assert touched.last_interaction_at == AT_NOON + timedelta(hours=10)
        settled = await store.update_session(old.session_key, 5)
        marked = await store.mark_resume_pending(old.session_key)
        assert marked
        assert await store.clear_resume_pending(old.session_key)
        tick(timedelta(hours=10))
        new = await store.get_or_create_session(ANNE)
        assert (new.auto_reset_reason, new.previous_session_id) == (EndReason.DAILY, old.session_id)
        tick(timedelta(days=1))
        assert (await store.watcher.sweep()).finalised == 1
        await store.undo_reset(old.session_key)
        explanation = await store.explain(old.session_key)
        assert explanation.now == AT_NOON + timedelta(hours=44)
        read_back = await store.get_session(old.session_key)
        for value in (old, touched, settled, new, read_back, explanation.entry, explanation.history):
            assert_plain(value)
        assert_plain([explanation.now, explanation.next_reset_at])
    assert_plain(parse_snapshot((home / "sessions.json").read_bytes(), UTC).entries)


@freeze_time(NOON, real_asyncio=True)
async def test_a_store_in_a_frozen_coroutine(tmp_path: Path):
    async with SessionStore.open(tmp_path, DAILY) as store:
        entry = await store.get_or_create_session(ANNE)
        await store.flush()
    assert entry.created_at == entry.updated_at == entry.last_interaction_at == AT_NOON
    assert entry.session_id.startswith("20260307_120000_")
    assert_plain(entry)
    assert type(datetime.now(UTC)).__name__ == "FakeDatetime", "the freezer was at work"


@pytest.fixture
def frozen() -> Iterator[FrozenDateTimeFactory]:
    with freeze_time(NOON, real_asyncio=True) as time:
        yield time


async def test_a_day_that_ticks_by_in_a_synchronous_fixture(tmp_path: Path, frozen: FrozenDateTimeFactory):
    await live_a_day(tmp_path, frozen.tick)


async def test_a_day_in_frozen_time_that_was_moved_to(tmp_path: Path, frozen: FrozenDateTimeFactory):
    async with SessionStore.open(tmp_path, DAILY) as store:
        old = await store.get_or_create_session(ANNE)
        frozen.move_to("2026-03-08 06:59:59")
        assert (await store.get_or_create_session(ANNE)).session_id == old.session_id
        frozen.move_to("2026-03-08 07:00:00")
        assert (await store.get_or_create_session(ANNE)).previous_session_id == old.session_id


async def test_datetimes_of_the_freezer_are_taken_in_as_plain_ones(tmp_path: Path, frozen):
    """An index that was written elsewhere is read with whatever `datetime` is at that moment."""
    async with SessionStore.open(tmp_path / "one", DAILY) as store:
        entry = await store.get_or_create_session(ANNE)
    (tmp_path / "two").mkdir(mode=0o700)
    (tmp_path / "two" / "sessions.json").write_bytes((tmp_path / "one" / "sessions.json").read_bytes())
    async with SessionStore.open(tmp_path / "two", DAILY) as store:
        imported = await store.get_session(entry.session_key)
    assert imported is not None
    assert imported.created_at == entry.created_at
    assert_plain(imported)


async def test_a_day_with_time_machine(tmp_path: Path):
    with time_machine.travel(AT_NOON, tick=False) as traveller:
        await live_a_day(tmp_path, traveller.shift)


@pytest.mark.parametrize(
    "moment", [AT_NOON, datetime(1970, 1, 1, tzinfo=UTC), datetime(2262, 4, 11, tzinfo=UTC)]
)
def test_the_system_clock_tells_frozen_time_in_plain_datetimes(moment: datetime):
    with freeze_time(moment):
        frozen = SystemClock().now()
    with time_machine.travel(moment, tick=False):
        travelled = SystemClock().now()
    assert frozen == travelled == moment
    assert_plain([frozen, travelled])


async def test_a_short_sleep_takes_real_time_while_time_is_frozen(frozen: FrozenDateTimeFactory):
    before = SystemClock().now()
    await SystemClock().sleep(0.01)
    assert SystemClock().now() == before


async def test_a_store_that_was_open_before_time_froze(tmp_path: Path):
    config = replace(DAILY, sessions_json=SessionsJsonConfig(mode=SnapshotMode.OFF))
    async with SessionStore.open(tmp_path, config) as store:
        await store.get_or_create_session(ANNE)
        with freeze_time("2040-01-01", real_asyncio=True):
            entry = await store.get_or_create_session(ANNE)
        assert entry.created_at == datetime(2040, 1, 1, tzinfo=UTC)
        assert_plain(entry)
