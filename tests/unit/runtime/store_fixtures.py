"""What the tests of a store share: sources, configurations, an open store and looks behind it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from gateway_sessions import Config, Scope, SessionEntry, SessionResetPolicy, SessionSource, SessionStore
from gateway_sessions.config import Durability, SessionDBConfig, SessionsJsonConfig, SnapshotMode
from gateway_sessions.testing import FakeClock
from tests.raw_sql import execute_sql

EVERYTHING = Scope.operator()
NEVER = SessionResetPolicy(mode="none")
IDLE = SessionResetPolicy(mode="idle", idle_minutes=60)
DAILY = SessionResetPolicy(mode="daily", at_hour=4)
QUICK = Config(timezone="UTC", sessiondb=SessionDBConfig(durability=Durability.OS), session_reset=NEVER)


def dm_source(chat: str = "1", user: str | None = "alice", **more) -> SessionSource:
    return SessionSource(platform="telegram", chat_id=chat, user_id=user, **more)


def group_source(chat: str = "g", user: str | None = "alice", **more) -> SessionSource:
    return SessionSource(platform="telegram", chat_type="group", chat_id=chat, user_id=user, **more)


def quick_config(**members) -> Config:
    """A configuration whose commits need not survive a power cut, and that resets nothing by itself."""
    return replace(QUICK, **members)


def config_with_snapshot(mode: SnapshotMode, **members) -> Config:
    return quick_config(sessions_json=SessionsJsonConfig(mode=mode), **members)


def open_store(home: Path, config: Config = QUICK, clock: FakeClock | None = None, **options) -> SessionStore:
    return SessionStore.open(home, config, clock=clock or FakeClock(), **options)


def pass_time(clock: FakeClock, **amount: float) -> None:
    """Move the wall clock without waking the store's duties, which have tests of their own."""
    clock.step(timedelta(**amount))


async def stored_entry(store: SessionStore, key: str) -> SessionEntry | None:
    """The lane's entry as the database has it, whatever is cached."""
    found = await store.list_sessions(scope=Scope.lane(key))
    return found[0] if found else None


async def all_stored_entries(store: SessionStore) -> dict[str, SessionEntry]:
    return {one.session_key: one for one in await store.list_sessions(scope=EVERYTHING, limit=10_000)}


def lease_lane(home: Path, key: str, *, epoch: int = 1, attempts: int = 0) -> None:
    """Let a turn run on the lane, as the process of that epoch would."""
    execute_sql(
        home / "sessions.db",
        "INSERT INTO lanes (session_key, lease_epoch, attempts) VALUES (?, ?, ?) ON CONFLICT (session_key)"
        " DO UPDATE SET lease_epoch = excluded.lease_epoch, attempts = excluded.attempts",
        key,
        epoch,
        attempts,
    )


def release_lane(home: Path, key: str) -> None:
    execute_sql(home / "sessions.db", "UPDATE lanes SET lease_epoch = NULL WHERE session_key = ?", key)


def session_row(home: Path, session_id: str) -> tuple[object, ...]:
    """The lane, the reason of the end and the parent of a session."""
    (row,) = execute_sql(
        home / "sessions.db",
        "SELECT session_key, end_reason, parent_session_id FROM sessions WHERE session_id = ?",
        session_id,
    )
    return row
