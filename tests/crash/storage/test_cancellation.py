"""A cancellation at any await leaves no transaction, no lock, no task, no thread, and nothing half done."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import sqlite3
import threading
from collections.abc import Awaitable
from contextlib import closing, suppress
from datetime import timedelta
from pathlib import Path

import pytest

from gateway_sessions import Config, SessionStore
from gateway_sessions.config import SessionsJsonConfig, SnapshotMode
from gateway_sessions.errors import GatewaySessionsError
from tests.crash.kills.invariants import check_database
from tests.crash.kills.store_workload import START, source
from tests.crash.store_calls import CALLS, prepare_for_call
from tests.crash.stores import SteppedClock
from tests.crash.suspensions import Suspensions, counting_in_every_task

IN_SYNC = Config(timezone="UTC", sessions_json=SessionsJsonConfig(mode=SnapshotMode.SYNC))
COALESCED = Config(timezone="UTC")
MODES = {"sync": IN_SYNC, "coalesced": COALESCED}


def test_every_public_method_is_cancelled_here():
    public = {
        name
        for name, method in inspect.getmembers(SessionStore, inspect.iscoroutinefunction)
        if not name.startswith("_")
    }
    assert set(CALLS) == public


def nothing_is_held(home: Path, *, patience: float = 5) -> None:
    """Nobody has a transaction open: neither a writer, nor a reader that the log would have to wait for."""
    with closing(sqlite3.connect(home / "sessions.db", timeout=patience, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("ROLLBACK")
        (busy, *_) = other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        assert busy == 0
        check_database(other)


async def nothing_stays_held(home: Path) -> None:
    """The same beside the duties of a store, which read now and then, and finish what a call has begun."""
    for _ in range(200):
        try:
            nothing_is_held(home, patience=0)
        except (AssertionError, sqlite3.OperationalError):
            await asyncio.sleep(0.025)
        else:
            return
    nothing_is_held(home)


NEVER_WAITS = {"scope_of"}  # without a resolver of aliases there is nobody to ask


@pytest.mark.parametrize(
    ("mode", "later"),
    [
        pytest.param("sync", False, id="at_once"),
        pytest.param("coalesced", True, id="a_turn_later"),
        pytest.param("sync", True, id="in_sync_a_turn_later", marks=pytest.mark.soak),
        pytest.param("coalesced", False, id="coalesced_at_once", marks=pytest.mark.soak),
    ],
)
@pytest.mark.parametrize("name", CALLS)
async def test_a_cancelled_call_leaves_nothing_behind(tmp_path: Path, name: str, mode: str, later: bool):
    clock = SteppedClock(START)
    config = COALESCED if name == "flush" else MODES[mode]  # in sync there is nothing left to flush
    async with SessionStore.open(tmp_path, config, clock=clock) as store:
        await store.get_or_create_session(source("settled"))
        tasks = callers()
        for at in itertools.count(1):
            await prepare_for_call(store, clock, name)
            suspensions = Suspensions(at, lambda: cancel_this_task(later=later))
            call = asyncio.create_task(run(suspensions.watch(CALLS[name](store))))
            await asyncio.wait({call})
            if not suspensions.reached:
                call.result()
                break
            with suppress(asyncio.CancelledError, GatewaySessionsError):
                call.result()
            await store.get_or_create_session(source("next"))
            await store.flush()
            await nothing_stays_held(tmp_path)
            assert callers() == tasks
        assert at > 1 or name in NEVER_WAITS, "the call never waited"


def callers() -> set[asyncio.Task[object]]:
    """The tasks that are no duty of the store: those have names."""
    return {task for task in asyncio.all_tasks() if task.get_name().startswith("Task-")}


def cancel_this_task(*, later: bool) -> None:
    task = asyncio.current_task()
    assert task is not None
    if later:
        asyncio.get_running_loop().call_soon(task.cancel)
    else:
        task.cancel()


async def run(work: Awaitable[object]) -> object:
    return await work


def connections() -> list[threading.Thread]:
    """The threads of database connections."""
    return [one for one in threading.enumerate() if "_connection_worker_thread" in one.name]


async def open_and_close(home: Path) -> None:
    async with SessionStore.open(home, IN_SYNC, clock=SteppedClock(START)) as store:
        await store.get_or_create_session(source("a"))


async def cancelled_at(home: Path, at: int) -> bool:
    """Cancel whoever opens, uses and closes a store at the k-th await of anybody; False at the end."""
    used: list[asyncio.Task[None]] = []

    def cancel() -> None:
        used[0].cancel()

    suspensions = Suspensions(at, cancel)
    before = asyncio.all_tasks()
    with counting_in_every_task(suspensions):
        used.append(asyncio.create_task(open_and_close(home)))
        await asyncio.wait({used[0]})
    if not suspensions.reached:
        used[0].result()
        return False
    assert used[0].cancelled()
    assert asyncio.all_tasks() == before
    for thread in connections():
        await asyncio.to_thread(thread.join, 5)
    assert connections() == []
    await open_and_close(home)
    nothing_is_held(home)
    return True


async def walk(home: Path, step: int) -> int:
    for at in itertools.count(1, step):
        if not await cancelled_at(home, at):
            return at
    raise AssertionError


async def test_cancelling_whoever_opens_or_closes_a_store_leaves_nothing_running(tmp_path: Path):
    assert await walk(tmp_path, 5) > 20


@pytest.mark.soak
@pytest.mark.timeout(timedelta(minutes=5).total_seconds())
async def test_cancelling_at_every_await_of_opening_and_closing_leaves_nothing_running(tmp_path: Path):
    assert await walk(tmp_path, 1) > 20
