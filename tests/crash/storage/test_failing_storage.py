"""A failing database is a typed error: never an empty answer, never a new session for a lane that has one."""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

import pytest

from gateway_sessions import Config, StorageError
from gateway_sessions.config import SessionsJsonConfig, SnapshotMode
from gateway_sessions.errors import (
    StorageCorruptError,
    StorageFullError,
    StorageLockedError,
    StorageUnavailableError,
)
from gateway_sessions.ports import Transaction, TransactionFactory
from gateway_sessions.storage.engines.sqlite.engine import SqliteEngine
from gateway_sessions.testing.faults import crash_at, raising
from tests.crash.kills.invariants import check_database
from tests.crash.kills.store_workload import START, key, source
from tests.crash.store_calls import CALLS, set_the_stage
from tests.crash.stores import DrivenStore, SteppedClock, driven_store

T = TypeVar("T")

ALONE = Config(timezone="UTC", sessions_json=SessionsJsonConfig(mode=SnapshotMode.OFF))
"""Nothing but the call itself runs statements."""

FAULTS: dict[str, tuple[type[sqlite3.Error], int, type[StorageError]]] = {
    "busy": (sqlite3.OperationalError, sqlite3.SQLITE_BUSY, StorageLockedError),
    "read_error": (sqlite3.OperationalError, sqlite3.SQLITE_IOERR_READ, StorageUnavailableError),
    "full": (sqlite3.OperationalError, sqlite3.SQLITE_FULL, StorageFullError),
    "corrupt": (sqlite3.DatabaseError, sqlite3.SQLITE_CORRUPT, StorageCorruptError),
    "no_database": (sqlite3.DatabaseError, sqlite3.SQLITE_NOTADB, StorageCorruptError),
    "cannot_open": (sqlite3.OperationalError, sqlite3.SQLITE_CANTOPEN, StorageUnavailableError),
    "read_only": (sqlite3.OperationalError, sqlite3.SQLITE_READONLY, StorageUnavailableError),
    "interrupted": (sqlite3.OperationalError, sqlite3.SQLITE_INTERRUPT, StorageUnavailableError),
    "anything_else": (sqlite3.OperationalError, sqlite3.SQLITE_ERROR, StorageError),
}


def fault(name: str) -> sqlite3.Error:
    kind, code, _ = FAULTS[name]
    error = kind(name)
    error.sqlite_errorcode = code
    return error


class FaultyDriver(SqliteEngine):
    """Lets the n-th statement from now on fail; those of a duty of the store do not count."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.left = 0
        self.error: sqlite3.Error | None = None
        self.task: asyncio.Task[object] | None = None

    def arm(self, nth: int, error: sqlite3.Error) -> None:
        self.left, self.error, self.task = nth, error, asyncio.current_task()

    @property
    def fired(self) -> bool:
        return self.left <= 0

    async def write(self, transaction: TransactionFactory[T]) -> T:
        return await super().write(self._armed(transaction))

    async def read(self, transaction: TransactionFactory[T]) -> T:
        return await super().read(self._armed(transaction))

    def _armed(self, transaction: TransactionFactory[T]) -> TransactionFactory[T]:
        return transaction if asyncio.current_task() is not self.task else lambda: self._faulty(transaction())

    def _faulty(self, transaction: Transaction[T]) -> Transaction[T]:
        try:
            statement = next(transaction)
            while True:
                self.left -= 1
                if self.left == 0 and self.error is not None:
                    raise self.error
                statement = transaction.send((yield statement))
        except StopIteration as stop:
            return stop.value
        finally:
            transaction.close()


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[tuple[DrivenStore, FaultyDriver, SteppedClock]]:
    drivers: list[FaultyDriver] = []

    def make_driver(path: Path) -> FaultyDriver:
        drivers.append(FaultyDriver(path))
        return drivers[0]

    clock = SteppedClock(START)
    async with driven_store(tmp_path, make_driver, ALONE, clock=clock) as store:
        yield store, drivers[0], clock


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
    opened: tuple[DrivenStore, FaultyDriver, SteppedClock], tmp_path: Path, name: str, step: int
):
    store, driver, clock = opened
    for nth, kind in zip(itertools.count(1, step), itertools.cycle(FAULTS), strict=False):
        await set_the_stage(store, clock, name)
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
    with closing(sqlite3.connect(home / "sessions.db")) as connection:
        return dict(
            connection.execute("SELECT session_key, version FROM entries JOIN clocks USING (entry_id)")
        )


def sabotage(home: Path, how: str) -> None:
    """Let SQLite itself refuse to write one lane in the middle, and perhaps give up the whole transaction."""
    with closing(sqlite3.connect(home / "sessions.db")) as connection:
        connection.execute(
            f"""CREATE TRIGGER sabotage BEFORE UPDATE ON clocks WHEN NEW.entry_id =
                (SELECT entry_id FROM entries WHERE session_key = '{key("lane-30")}')
            BEGIN SELECT RAISE({how}, 'sabotage'); END"""  # noqa: S608 -- a fixed name
        )
        connection.commit()


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
