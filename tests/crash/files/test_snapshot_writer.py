"""Whoever waits for sessions.json is answered, whatever becomes of its writer."""

import asyncio
import errno
from datetime import UTC
from pathlib import Path

import pytest

from gateway_sessions import SessionDB, SessionStore
from gateway_sessions.config import SessionsJsonConfig, SnapshotMode
from gateway_sessions.core.sessions_json.file_format import verify_checksum
from gateway_sessions.errors import SnapshotError, StorageUnavailableError, StoreStoppedError
from gateway_sessions.storage.sessions_json import SnapshotForm, SnapshotWriter
from gateway_sessions.storage.tables import meta
from gateway_sessions.testing.faults import crash_at, raising
from tests.crash.kills.store_workload import START, Config, key, source
from tests.crash.stores import SteppedClock

IN_SYNC = Config(timezone="UTC", sessions_json=SessionsJsonConfig(mode=SnapshotMode.SYNC))


async def test_a_flush_is_answered_when_the_writer_is_stopped_in_the_middle(tmp_path: Path):
    clock = SteppedClock(START)
    async with SessionDB.open(tmp_path / "sessions.db", clock=clock) as db:
        snapshot = SnapshotWriter(tmp_path, db, clock, SnapshotForm(zone=UTC))
        writer = asyncio.create_task(snapshot.run())
        with crash_at("snapshot_complete", action=writer.cancel), pytest.raises(StoreStoppedError):
            await asyncio.wait_for(snapshot.flush(), 5)
        with pytest.raises(asyncio.CancelledError):
            await writer
        with pytest.raises(StoreStoppedError):
            await asyncio.wait_for(snapshot.flush(), 5)


async def test_a_file_that_cannot_be_written_is_told_and_the_change_stands(tmp_path: Path):
    full = OSError(errno.ENOSPC, "No space left on device")
    async with SessionStore.open(tmp_path, IN_SYNC, clock=SteppedClock(START)) as store:
        await store.get_or_create_session(source("a"))
        before = (tmp_path / "sessions.json").read_bytes()
        told = pytest.raises(SnapshotError, match="safe in the database")
        with crash_at("snapshot_complete", action=raising(full)), told as failed:
            await store.get_or_create_session(source("b"))
        assert failed.value.committed
        assert (tmp_path / "sessions.json").read_bytes() == before
        assert not list(tmp_path.glob("*.tmp"))
        assert await store.peek_session_id(key("b")) is not None
        await store.flush()
        assert (
            verify_checksum((tmp_path / "sessions.json").read_bytes()).generation
            == store.db.generation.current
        )


async def test_after_a_commit_that_failed_the_file_is_not_written_again_and_again(tmp_path: Path):
    clock = SteppedClock(START)
    async with SessionStore.open(tmp_path, clock=clock) as store:
        await store.get_or_create_session(source("a"))
        fault = OSError(errno.EIO, "disk")
        told = pytest.raises(StorageUnavailableError, match="disk")
        with crash_at("before_commit", action=raising(fault)), told:
            await store.get_or_create_session(source("b"))
        await store.flush()
        stored = await store.db.read(meta.stored_generation)
        assert store.db.generation.current == stored
