"""A failing database is a typed error: never an empty answer, never a new session for a lane that has one."""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

import pytest

from gateway_sessions import StorageError
from gateway_sessions.errors import (
    StorageFullError,
)
from gateway_sessions.storage.engines.sqlite.engine import SqliteEngine
from gateway_sessions.testing.faults import crash_at, raising
from tests.crash.kills.invariants import check_database
from tests.crash.kills.store_workload import START, key, source
from tests.crash.storage.faulty_driver import FAULTS, FaultyDriver, fault
from tests.crash.store_calls import CALLS, prepare_for_call
from tests.crash.stores import DrivenStore, SteppedClock, driven_store
from tests.raw_sql import execute_sql

T = TypeVar("T")

# `flush` reads through a view of its own, tested with failing system calls; `scope_of` reads nothing; an
# import is long enough for the index to meet the fault instead, and imports have tests of their own.
READING_OR_WRITING = sorted(CALLS.keys() - {"flush", "scope_of", "import_hermes"})


@pytest.mark.parametrize(
    ("name", "step"),
    [
        *[(name, 1) for name in READING_OR_WRITING if name != "erase"],
        ("erase", 5),  # by far the longest
        pytest.param("erase", 1, marks=pytest.mark.soak),
    ],
)
async def test_a_statement_that_fails_is_a_typed_error_and_changes_nothing(
    faulty_store: tuple[DrivenStore, FaultyDriver, SteppedClock], tmp_path: Path, name: str, step: int
):
    store, driver, clock = faulty_store
    for nth, kind in zip(itertools.count(1, step), itertools.cycle(FAULTS), strict=False):
        await prepare_for_call(store, clock, name)
        before = snapshot(tmp_path)
        driver.arm(nth, fault(kind))
        try:
            await CALLS[name](store)
        except StorageError as error:
            assert type(error) is FAULTS[kind][2]  # noqa: PT017 -- without an error it is over
            assert driver.fired
        else:
            assert not driver.fired, "the failure was swallowed"
            assert nth > 1
            break
        driver.arm(0, fault(kind))
        in_steps = {"suspend_recently_active", "clear_resume_pending", "erase"}
        assert snapshot(tmp_path) == before or name in in_steps
        entry = await store.get_session(key("b"))
        assert entry is not None
        assert (await store.get_or_create_session(source("b"))).session_id == entry.session_id


def snapshot(home: Path) -> dict[str, list[tuple[Any, ...]]]:
    """All that is stored, except how often it was looked at."""
    tables = (
        "entries",
        "sessions",
        "totals",
        "messages",
        "lanes",
        "transitions",
        "hook_calls",
        "inbox",
        "outbox",
    )
    with closing(sqlite3.connect(home / "sessions.db")) as connection:
        check_database(connection)
        return {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in tables}  # noqa: S608


LANES = 60


async def many(store: DrivenStore, act: Callable[[str], Any]) -> dict[str, object]:
    """One call on each of many lanes at once; their outcomes by lane."""
    names = [f"lane-{n:02}" for n in range(LANES)]
    outcomes = await asyncio.gather(*[act(name) for name in names], return_exceptions=True)
    return dict(zip(map(key, names), outcomes, strict=True))


def versions(home: Path) -> dict[str, int]:
    return dict(
        execute_sql(
            home / "sessions.db", "SELECT session_key, version FROM entries JOIN clocks USING (entry_id)"
        )
    )


def sabotage(home: Path, how: str) -> None:
    """Let SQLite itself refuse to write one lane in the middle, and perhaps give up the whole transaction."""
    execute_sql(
        home / "sessions.db",
        f"""CREATE TRIGGER sabotage BEFORE UPDATE ON clocks WHEN NEW.entry_id =
            (SELECT entry_id FROM entries WHERE session_key = '{key("lane-30")}')
        BEGIN SELECT RAISE({how}, 'sabotage'); END""",  # noqa: S608 -- a fixed name
    )


@pytest.mark.parametrize("how", ["ABORT", "FAIL", "ROLLBACK"])
async def test_in_a_batch_each_call_is_done_and_acknowledged_or_neither(tmp_path: Path, how: str):
    clock = SteppedClock(START)
    async with driven_store(tmp_path, SqliteEngine, clock=clock) as store:
        await many(store, lambda name: store.get_or_create_session(source(name)))
        before = versions(tmp_path)
        sabotage(tmp_path, how)
        outcomes = await many(store, lambda name: store.get_or_create_session(source(name)))
        after = versions(tmp_path)
        failed = {lane for lane, outcome in outcomes.items() if isinstance(outcome, BaseException)}
        assert all(isinstance(outcomes[lane], StorageError) for lane in failed)
        assert key("lane-30") in failed
        assert {lane for lane in after if after[lane] == before[lane]} == failed
        if how != "ROLLBACK":
            assert failed == {key("lane-30")}
        assert (await store.get_or_create_session(source("lane-01"))).version == after[key("lane-01")] + 1
        # A duty may just be writing; a transaction that nobody ends holds the lock for longer.
        with closing(sqlite3.connect(tmp_path / "sessions.db", timeout=5, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            other.execute("ROLLBACK")


async def test_a_commit_that_fails_fails_its_whole_batch_and_only_that(tmp_path: Path):
    clock = SteppedClock(START)
    async with driven_store(tmp_path, SqliteEngine, clock=clock) as store:
        await many(store, lambda name: store.get_or_create_session(source(name)))
        await store.flush()  # or the commit that fails may be that of the snapshot's generation
        before = versions(tmp_path)
        with crash_at("before_commit", action=raising(fault("full"))):
            outcomes = await many(store, lambda name: store.get_or_create_session(source(name)))
        after = versions(tmp_path)
        failed = {lane for lane, outcome in outcomes.items() if isinstance(outcome, StorageFullError)}
        assert failed
        assert {lane for lane in after if after[lane] == before[lane]} == failed
        again = await many(store, lambda name: store.get_or_create_session(source(name)))
        assert not any(isinstance(outcome, BaseException) for outcome in again.values())
