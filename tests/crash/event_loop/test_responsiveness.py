"""The event loop goes on while the database waits for a lock or a slow disk."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from gateway_sessions import Accepted, BusyRules, Config, SessionStore
from gateway_sessions._process.clock import SystemClock
from gateway_sessions.errors import StorageUnavailableError
from gateway_sessions.runtime.agents.turn_context import TurnContext
from gateway_sessions.runtime.gateway.gateway import Gateway
from gateway_sessions.storage.engines.sqlite.engine import SqliteEngine
from gateway_sessions.testing.agents import Gate
from gateway_sessions.testing.fake_platform import FakePlatform
from tests.crash.event_loop.heartbeat import LONGEST_GAP, call_everything, heartbeat, smallest_gap
from tests.crash.kills.store_workload import START, key, source
from tests.crash.store_calls import prepare_for_call
from tests.crash.stores import SteppedClock, driven_store
from tests.faulty_system import Mode, faulty_environment
from tests.integration.gateway.gateway_harness import wait_until

pytestmark = [pytest.mark.alone, pytest.mark.timeout(90)]

EARLY, LATE = [f"early{n}" for n in range(4)], [f"late{n}" for n in range(20)]
HOLDER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.readline()
connection.execute("ROLLBACK")
"""


@contextmanager
def locked_elsewhere(home: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the write lock until a line comes."""
    command = [sys.executable, "-c", HOLDER, str(home / "sessions.db")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        try:
            assert holder.stdout.readline() == "locked\n"
            yield holder
        finally:
            holder.kill()


def release(holder: subprocess.Popen[str]) -> None:
    assert holder.stdin is not None
    holder.stdin.write("\n")
    holder.stdin.flush()


async def hold_the_lock(home: Path, seconds: float) -> float:
    clock = SteppedClock(START)
    async with SessionStore.open(home, Config(timezone="UTC"), clock=clock) as store:
        await prepare_for_call(store, clock)
        with locked_elsewhere(home) as holder:
            async with heartbeat() as heart:
                calls = asyncio.create_task(call_everything(store))
                await asyncio.sleep(seconds)
                assert not calls.done(), "the calls did not wait for the lock"
                assert await store.peek_session_id(key("b")) is not None, "reading needs no lock"
                release(holder)
                failures = await calls
    assert failures == []
    return heart.largest


async def test_the_loop_goes_on_while_somebody_else_holds_the_write_lock(tmp_path: Path):
    gap = await smallest_gap(tmp_path, lambda home: hold_the_lock(home, 6 * LONGEST_GAP))
    assert gap < LONGEST_GAP


@pytest.mark.soak
async def test_the_loop_goes_on_while_somebody_else_holds_the_write_lock_for_long(tmp_path: Path):
    assert await smallest_gap(tmp_path, lambda home: hold_the_lock(home, 5)) < LONGEST_GAP


async def hold_the_lock_under_a_gateway(home: Path, seconds: float) -> float:
    """Some people are being answered when the lock is taken, and others write while it is held."""
    gate = Gate()

    async def agent(turn: TurnContext) -> str:
        await gate.passage()
        return f"you said {turn.text}"

    config = Config(timezone="UTC", busy=BusyRules(debounce=timedelta(0)))
    platform = FakePlatform(clock=SystemClock())
    async with (
        SessionStore.open(home, config) as store,
        Gateway(store, adapters=[platform], agent=agent) as gateway,
    ):
        for person in EARLY:
            await platform.says(person, "hello")
        await wait_until(
            lambda: all(gateway.running_turn(store.key_for(platform.source(one))) for one in EARLY)
        )
        with locked_elsewhere(home) as holder:
            async with heartbeat() as heart:
                gate.open()
                said = [asyncio.create_task(platform.says(person, "hello")) for person in LATE]
                await asyncio.sleep(seconds)
                assert not any(one.done() for one in said), "they did not wait for the lock"
                assert platform.sent == [], "a turn did not wait for it"
                release(holder)
                receipts = await asyncio.gather(*said)
                await wait_until(lambda: len(platform.sent) == len(EARLY + LATE), seconds=20)
        assert all(isinstance(one, Accepted) for one in receipts)
        assert [platform.shown(one) for one in EARLY + LATE] == [["you said hello"]] * len(EARLY + LATE)
    return heart.largest


@pytest.mark.parametrize("seconds", [6 * LONGEST_GAP, pytest.param(5, marks=pytest.mark.soak)])
async def test_the_loop_of_a_gateway_goes_on_while_somebody_else_holds_the_write_lock(
    tmp_path: Path, seconds: float
):
    gap = await smallest_gap(tmp_path, lambda home: hold_the_lock_under_a_gateway(home, seconds))
    assert gap < LONGEST_GAP


async def hold_the_lock_too_long(home: Path) -> float:
    clock = SteppedClock(START)

    def impatient(path: Path) -> SqliteEngine:
        return SqliteEngine(path, busy_seconds=0.1)

    async with driven_store(home, impatient, clock=clock) as store:
        entry = await store.get_or_create_session(source("a"))
        with locked_elsewhere(home) as holder:
            async with heartbeat() as heart:
                for call in (store.get_or_create_session(source("a")), store.reset_session(key("a"))):
                    with pytest.raises(StorageUnavailableError, match="locked"):
                        await call
                with pytest.raises(StorageUnavailableError):
                    await store.get_or_create_session(source("new"))
                assert await store.get_session(key("a")) == entry
            release(holder)
            holder.wait()
        again = await store.get_or_create_session(source("a"))
        assert again.session_id == entry.session_id
        assert await store.get_session(key("new")) is None
    return heart.largest


async def test_a_lock_that_is_held_too_long_is_a_typed_error_and_loses_nothing(tmp_path: Path):
    assert await smallest_gap(tmp_path, hold_the_lock_too_long) < LONGEST_GAP


async def on_a_slow_disk(shim: Path | None, home: Path, milliseconds: int) -> float:
    assert shim is not None
    environment = {**os.environ, **faulty_environment(shim, home, Mode.SLOW_SYNC, milliseconds)}
    command = [sys.executable, "-m", "tests.crash.event_loop.heartbeat", str(home)]
    root = Path(__file__).parents[3]
    ended = subprocess.run(command, env=environment, cwd=root, stdout=subprocess.PIPE, check=True, timeout=60)
    answer = json.loads(ended.stdout)
    assert answer["failures"] == []
    return float(answer["largest"])


@pytest.mark.usefixtures("faulty_system")
@pytest.mark.parametrize(
    "milliseconds", [120, pytest.param(1500, marks=[pytest.mark.soak, pytest.mark.timeout(240)])]
)
async def test_the_loop_goes_on_while_the_disk_is_slow(shim: Path | None, tmp_path: Path, milliseconds: int):
    assert await smallest_gap(tmp_path, lambda home: on_a_slow_disk(shim, home, milliseconds)) < LONGEST_GAP
