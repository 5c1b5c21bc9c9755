"""What is found at a start: who was cut off, and what the two files tell an operator."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest

from gateway_sessions import SessionState
from gateway_sessions.config import AgentConfig
from gateway_sessions.runtime.duties.restart_recovery import StartReport
from gateway_sessions.sessions import ResumeReason
from gateway_sessions.storage.files import atomic_file
from gateway_sessions.testing import FakeClock
from tests.raw_sql import execute_sql
from tests.unit.runtime.store_fixtures import (
    all_stored_entries,
    dm_source,
    lease_lane,
    open_store,
    quick_config,
    stored_entry,
)

ACTIVE, PENDING, _, SUSPENDED = SessionState
A, B, C = (f"agent:main:telegram:dm:{chat}" for chat in "abc")


async def lanes_in(home, chats: str = "abc") -> None:
    async with open_store(home) as store:
        for chat in chats:
            await store.get_or_create_session(dm_source(chat))


def marker(home):
    return home / ".clean_shutdown"


def counts(home) -> dict[str, int] | None:
    path = home / "restart_counts.json"
    return json.loads(path.read_bytes()) if path.exists() else None


class TestReport:
    async def test_the_first_start_is_clean_because_nobody_was_before_it(self, home):
        async with open_store(home) as store:
            assert store.started == StartReport(epoch=1, clean=True)

    async def test_after_an_orderly_end_the_start_is_clean(self, home):
        await lanes_in(home)
        assert json.loads(marker(home).read_bytes())["epoch"] == 1
        async with open_store(home) as store:
            assert store.started == StartReport(epoch=2, clean=True)
            assert not marker(home).exists()

    async def test_without_a_marker_it_is_not(self, home):
        await lanes_in(home)
        marker(home).unlink()
        async with open_store(home) as store:
            assert store.started == StartReport(epoch=2, clean=False)

    @pytest.mark.parametrize("content", [b"", b"{}", b'{"epoch":0}', b'{"epoch":7}', b"\xff\xfe", b"null"])
    async def test_a_marker_of_anybody_else_counts_for_nothing(self, home, content):
        await lanes_in(home)
        marker(home).write_bytes(content)
        async with open_store(home) as store:
            assert not store.started.clean
            assert len(await all_stored_entries(store)) == 3

    async def test_the_marker_of_the_process_before_the_last_counts_for_nothing(self, home):
        await lanes_in(home)
        old = marker(home).read_bytes()
        await lanes_in(home)
        marker(home).write_bytes(old)
        async with open_store(home) as store:
            assert not store.started.clean

    async def test_a_marker_that_cannot_be_read_as_a_file_stops_nothing(self, home):
        await lanes_in(home)
        marker(home).unlink()
        marker(home).mkdir()
        async with open_store(home) as store:
            assert not store.started.clean
            assert len(await all_stored_entries(store)) == 3


class TestCutOffTurns:
    async def test_exactly_the_lanes_of_the_dead_process_are_resumed(self, home):
        await lanes_in(home)
        lease_lane(home, A)
        lease_lane(home, C)
        async with open_store(home) as store:
            assert store.started.resumed == (A, C)
            assert store.started.suspended == ()
            assert {key: one.state for key, one in (await all_stored_entries(store)).items()} == {
                A: PENDING,
                B: ACTIVE,
                C: PENDING,
            }
            assert (await stored_entry(store, A)).resume_reason == ResumeReason.RESTART_INTERRUPTED
            assert counts(home) == {A: 1, C: 1}
        assert execute_sql(home / "sessions.db", "SELECT * FROM lanes WHERE lease_epoch IS NOT NULL") == []

    async def test_a_marker_of_an_orderly_end_does_not_hide_a_turn_that_was_cut_off(self, home):
        await lanes_in(home)
        lease_lane(home, A)
        assert marker(home).exists()
        async with open_store(home) as store:
            assert store.started.resumed == (A,)

    async def test_the_third_time_in_a_row_the_session_is_suspended(self, home):
        await lanes_in(home)
        found = []
        for epoch in (1, 2, 3):
            lease_lane(home, A, epoch=epoch, attempts=epoch - 1)
            async with open_store(home) as store:
                found.append((store.started.resumed, store.started.suspended, counts(home)))
        assert found == [((A,), (), {A: 1}), ((A,), (), {A: 2}), ((), (A,), {A: 3})]

    async def test_how_often_is_a_setting(self, home):
        await lanes_in(home)
        lease_lane(home, A)
        async with open_store(home, quick_config(agent=AgentConfig(max_restart_attempts=1))) as store:
            assert store.started.suspended == (A,)
            assert (await stored_entry(store, A)).state_reason == "crash_loop"

    async def test_a_turn_that_succeeds_ends_the_count(self, home):
        await lanes_in(home)
        for epoch in (1, 2, 3, 4):
            lease_lane(home, A, epoch=epoch)
            async with open_store(home) as store:
                assert store.started.resumed == (A,)
                assert counts(home) == {A: 1}
                assert await store.clear_resume_pending(A)
                assert counts(home) is None

    async def test_a_suspended_session_stays_so_and_its_lane_is_freed(self, home):
        async with open_store(home) as store:
            key = (await store.get_or_create_session(dm_source("a"))).session_key
            await store.suspend_session(key)
        lease_lane(home, key)
        async with open_store(home) as store:
            assert store.started.resumed == store.started.suspended == ()
            assert (await stored_entry(store, key)).state is SUSPENDED
        assert execute_sql(home / "sessions.db", "SELECT lease_epoch FROM lanes") == [(None,)]

    async def test_a_lane_without_a_session_is_freed(self, home):
        await lanes_in(home)
        lease_lane(home, "agent:main:telegram:dm:gone")
        async with open_store(home) as store:
            assert store.started.resumed == ()
        assert execute_sql(home / "sessions.db", "SELECT lease_epoch FROM lanes") == [(None,)]

    async def test_without_the_file_the_count_goes_on(self, home):
        await lanes_in(home)
        lease_lane(home, A)
        async with open_store(home):
            (home / "restart_counts.json").unlink()
        lease_lane(home, A, epoch=2, attempts=1)
        async with open_store(home):
            assert counts(home) == {A: 2}


class TestCounts:
    async def test_the_file_of_a_store_without_any_goes_away(self, home):
        home.mkdir()
        (home / "restart_counts.json").write_text('{"x":9}')
        async with open_store(home):
            assert counts(home) is None

    async def test_a_file_that_cannot_be_written_stops_nothing(self, home):
        home.mkdir()
        (home / "restart_counts.json").mkdir()
        async with open_store(home) as store:
            await store.get_or_create_session(dm_source("a"))
            assert await store.suspend_recently_active() == 1
            assert await store.clear_resume_pending(A)

    async def test_a_slow_write_is_not_overtaken_by_a_later_one(self, home, monkeypatch):
        async with open_store(home) as store:
            for chat in "abc":
                await store.get_or_create_session(dm_source(chat))
            await store.suspend_recently_active()
            held = HeldReplace(asyncio.get_running_loop())
            monkeypatch.setattr(atomic_file, "replace_file", held)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(store.clear_resume_pending(A))
                await held.begun.wait()
                tasks.create_task(store.clear_resume_pending(B))
            assert counts(home) == {C: 1}


class HeldReplace:
    """Holds the first rename up until another one is done, or for a moment if none comes."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.begun = asyncio.Event()
        self._loop = loop
        self._replace = atomic_file.replace_file
        self._another = threading.Event()

    def __call__(self, path, target):
        if not self.begun.is_set():
            self._loop.call_soon_threadsafe(self.begun.set)
            self._another.wait(0.3)
            return self._replace(path, target)
        try:
            return self._replace(path, target)
        finally:
            self._another.set()


async def test_a_crash_between_two_starts_counts_no_turn_twice(home):
    await lanes_in(home)
    lease_lane(home, A)
    async with open_store(home):
        pass
    async with open_store(home, clock=FakeClock("2026-01-01T00:10:00")) as store:
        assert store.started.resumed == ()
        assert counts(home) == {A: 1}
