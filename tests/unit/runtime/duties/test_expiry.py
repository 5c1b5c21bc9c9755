"""The two duties of a store that nobody waits for: what a pass does, and what it leaves alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

import anyio
import pytest

from gateway_sessions.config import ExpiryWatcherConfig
from gateway_sessions.core.identity.pseudonyms import Pseudonyms
from gateway_sessions.core.sessions.entry import SessionEntry, SessionState
from gateway_sessions.core.sessions.policy_rules import PolicyBook
from gateway_sessions.core.sessions.reset_policy import ResetMode, SessionResetPolicy
from gateway_sessions.errors import StorageUnavailableError, StoreStoppedError
from gateway_sessions.runtime.context import StoreContext
from gateway_sessions.runtime.duties.expiry import ExpiryWatcher, Pruner, Sweep
from gateway_sessions.storage.tables import entries
from gateway_sessions.storage.tables.change import Actor
from gateway_sessions.storage.transactions.sessions import expire, lane_changes
from gateway_sessions.storage.transactions.sessions.session_transitions import begin_entry
from gateway_sessions.testing import FakeClock
from tests.unit.runtime.memory_database import MemoryDatabase

START = datetime(2026, 1, 1, tzinfo=UTC)
TICK = timedelta(microseconds=1)
MINUTE = timedelta(minutes=1)
TIMING = ExpiryWatcherConfig()
IDLE_HOUR = SessionResetPolicy(mode=ResetMode.IDLE, idle_minutes=60)


class House:
    """A database with lanes, and what the duties need to work on it."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.db = MemoryDatabase()
        self.busy: Callable[[str], bool] = lambda _lane: False
        self.numbers = itertools.count()

    def context(
        self, policy: SessionResetPolicy = IDLE_HOUR, freshness: timedelta | None = timedelta(hours=1)
    ) -> StoreContext:
        return StoreContext(
            db=self.db,  # type: ignore[arg-type]
            clock=self.clock,
            policies=PolicyBook(default=policy),
            pseudonyms=Pseudonyms(b"a secret of many bytes"),
            freshness=freshness,
            restart_limit=3,
            hook_names=("memory",),
            has_active_processes=self._is_busy,
        )

    def watcher(self, policy: SessionResetPolicy = IDLE_HOUR) -> ExpiryWatcher:
        return ExpiryWatcher(self.context(policy), TIMING)

    def pruner(self, max_age: timedelta | None = None) -> Pruner:
        return Pruner(self.context(), TIMING, max_age)

    async def lane(self, policy: SessionResetPolicy = IDLE_HOUR, **fields: object) -> SessionEntry:
        now, number = self.clock.now(), next(self.numbers)
        entry = SessionEntry(
            session_key=f"lane{number:05}",
            session_id=f"s{number:05}",
            created_at=now,
            updated_at=now,
            last_interaction_at=now,
            version=1,
            **fields,  # type: ignore[arg-type]
        )
        return await self.context(policy).apply(Actor.PERSON, lambda change: begin_entry(change, entry, None))

    async def entry(self, one: SessionEntry) -> SessionEntry | None:
        return await self.db.read(partial(entries.load, one.session_key))

    async def state(self, one: SessionEntry) -> SessionState | None:
        entry = await self.entry(one)
        return entry.state if entry is not None else None

    def _is_busy(self, lane: str) -> bool:
        return self.busy(lane)  # whatever the test has put there meanwhile

    def lease(self, one: SessionEntry) -> None:
        sql = "INSERT INTO lanes (session_key, lease_epoch) VALUES (?, 1)"
        self.db.rows(sql, one.session_key)


@pytest.fixture
def harness(fake_clock: FakeClock) -> House:
    return House(fake_clock)


class TestWatcher:
    async def test_a_due_session_ends_and_its_hook_is_owed_a_call(self, harness, fake_clock):
        lane = await harness.lane()
        await fake_clock.advance(hours=2)
        assert await harness.watcher().sweep() == Sweep(finalised=1)
        assert await harness.state(lane) is SessionState.EXPIRED
        assert harness.db.rows("SELECT end_reason FROM sessions") == [("idle",)]
        assert harness.db.rows("SELECT session_id, state FROM hook_calls") == [(lane.session_id, "owed")]

    @pytest.mark.parametrize(("late", "ends"), [(timedelta(0), False), (TICK, True)])
    async def test_an_idle_session_ends_right_after_its_last_minute(self, harness, fake_clock, late, ends):
        lane = await harness.lane()
        await fake_clock.advance(60 * MINUTE + late)
        assert (await harness.watcher().sweep()).finalised == ends
        assert (await harness.state(lane) is SessionState.EXPIRED) == ends

    @pytest.mark.parametrize(("early", "ends"), [(TICK, False), (timedelta(0), True)])
    async def test_a_daily_session_ends_at_the_boundary(self, harness, fake_clock, early, ends):
        policy = SessionResetPolicy(mode=ResetMode.DAILY, at_hour=4)
        lane = await harness.lane(policy)
        await fake_clock.advance(timedelta(hours=4) - early)
        assert (await harness.watcher(policy).sweep()).finalised == ends
        assert (await harness.state(lane) is SessionState.EXPIRED) == ends

    async def test_a_session_that_has_ended_is_not_looked_at_again(self, harness, fake_clock):
        await harness.lane()
        await fake_clock.advance(hours=2)
        watcher = harness.watcher()
        await watcher.sweep()
        await fake_clock.advance(days=400)
        assert await watcher.sweep() == Sweep()

    async def test_a_running_lane_is_left_alone(self, harness, fake_clock):
        lane = await harness.lane()
        harness.lease(lane)
        await fake_clock.advance(days=400)
        assert (await harness.watcher().sweep()).finalised == 0
        assert await harness.state(lane) is SessionState.ACTIVE

    async def test_a_lane_that_begins_a_turn_while_it_is_judged_is_left_alone(self, harness, fake_clock):
        lane = await harness.lane()

        def begin_a_turn(_key: str) -> bool:
            harness.lease(lane)
            return False

        harness.busy = begin_a_turn
        await fake_clock.advance(hours=2)
        assert (await harness.watcher().sweep()).finalised == 0
        assert await harness.state(lane) is SessionState.ACTIVE

    async def test_a_session_that_is_used_while_it_is_judged_goes_on(self, harness, fake_clock):
        lane = await harness.lane()
        context = harness.context()

        async def write_meanwhile(_key: str) -> bool:
            turn = lane_changes.EndOfTurn(session_key=lane.session_key)
            await context.apply(Actor.PERSON, partial(lane_changes.settle_clocks, turn=turn))
            return False

        harness.busy = write_meanwhile
        await fake_clock.advance(hours=2)
        assert (await harness.watcher().sweep()).finalised == 0
        assert await harness.state(lane) is SessionState.ACTIVE
        assert harness.db.rows("SELECT * FROM hook_calls") == []

    async def test_active_work_puts_the_end_off_and_is_asked_for_again(self, harness, fake_clock):
        lane = await harness.lane()
        harness.busy = lambda _lane: True
        await fake_clock.advance(hours=2)
        watcher = harness.watcher()
        assert await watcher.sweep() == Sweep(deferred=1)
        assert await watcher.sweep() == Sweep(deferred=1)
        harness.busy = lambda _lane: False
        assert await watcher.sweep() == Sweep(finalised=1)
        assert await harness.state(lane) is SessionState.EXPIRED

    async def test_active_work_is_believed_for_a_day_and_no_longer(self, harness, fake_clock):
        lane = await harness.lane()
        harness.busy = lambda _lane: True
        await fake_clock.advance(hours=25)
        assert (await harness.watcher().sweep()).finalised == 0
        await fake_clock.advance(TICK)
        assert (await harness.watcher().sweep()).finalised == 1
        assert await harness.state(lane) is SessionState.EXPIRED

    async def test_who_cannot_tell_whether_work_runs_is_busy(self, harness, fake_clock):
        def fail(_lane: str) -> bool:
            raise ConnectionError("no answer")

        await harness.lane()
        harness.busy = fail
        await fake_clock.advance(hours=2)
        assert (await harness.watcher().sweep()).deferred == 1

    async def test_only_due_sessions_are_asked_about(self, harness, fake_clock):
        asked = []
        harness.busy = asked.append  # type: ignore[assignment]
        await harness.lane()
        await fake_clock.advance(minutes=59)
        await harness.lane()
        await fake_clock.advance(minutes=2)
        await harness.watcher().sweep()
        assert asked == ["lane00000"]

    async def test_a_suspended_session_whose_turn_ended_since_is_not_due_yet(self, harness, fake_clock):
        lane = await harness.lane()
        await harness.context().apply(
            Actor.PERSON, partial(lane_changes.suspend_session, session_key=lane.session_key, reason="stop")
        )
        await fake_clock.advance(hours=2)
        await harness.context().apply(
            Actor.PERSON,
            partial(lane_changes.settle_clocks, turn=lane_changes.EndOfTurn(session_key=lane.session_key)),
        )
        assert (await harness.watcher().sweep()).finalised == 0
        assert harness.db.rows("SELECT end_reason FROM sessions") == [(None,)]
        await fake_clock.advance(hours=1, seconds=1)
        assert (await harness.watcher().sweep()).finalised == 1

    async def test_a_suspended_session_that_is_due_ends_and_stays_suspended(self, harness, fake_clock):
        lane = await harness.lane()
        await harness.context().apply(
            Actor.PERSON, partial(lane_changes.suspend_session, session_key=lane.session_key, reason="stop")
        )
        await fake_clock.advance(hours=2)
        watcher = harness.watcher()
        assert (await watcher.sweep()).finalised == 1
        assert (await watcher.sweep()).finalised == 0
        assert await harness.state(lane) is SessionState.SUSPENDED
        assert harness.db.rows("SELECT end_reason FROM sessions") == [("suspended",)]

    async def test_active_work_is_believed_no_longer_in_a_suspended_session(self, harness, fake_clock):
        lane = await harness.lane()
        await harness.context().apply(
            Actor.PERSON, partial(lane_changes.suspend_session, session_key=lane.session_key, reason="stop")
        )
        harness.busy = lambda _lane: True
        await fake_clock.advance(hours=25)
        assert await harness.watcher().sweep() == Sweep(deferred=1)
        await fake_clock.advance(TICK)
        assert (await harness.watcher().sweep()).finalised == 1
        assert harness.db.rows("SELECT end_reason FROM sessions") == [("suspended",)]

    async def test_a_resume_mark_only_puts_off_what_the_policy_ends(self, harness, fake_clock):
        policy = SessionResetPolicy(mode=ResetMode.IDLE, idle_minutes=10)
        lane = await harness.lane(policy)
        await harness.context(policy).apply(
            Actor.RECOVERY,
            partial(lane_changes.mark_resume_pending, session_key=lane.session_key, reason="restart_timeout"),
        )
        await fake_clock.advance(hours=1)
        assert (await harness.watcher(policy).sweep()).finalised == 0
        await fake_clock.advance(TICK)
        assert (await harness.watcher(policy).sweep()).finalised == 1
        assert harness.db.rows("SELECT end_reason FROM sessions") == [("idle",)]

    async def test_a_new_policy_counts_for_every_session_that_stands(self, harness, fake_clock):
        never = SessionResetPolicy(mode=ResetMode.NONE)
        for _ in range(250):
            await harness.lane(never)
        await harness.watcher(never).sweep()
        before = harness.db.writes
        watcher = harness.watcher(IDLE_HOUR)
        assert await watcher.sweep() == Sweep(rescheduled=250)
        assert harness.db.writes - before == 4, "three pages, and a note of the policies"
        assert await watcher.sweep() == Sweep()
        assert harness.db.rows("SELECT count(*) FROM entries WHERE due_at IS NULL") == [(0,)]

    async def test_a_new_freshness_of_resume_marks_counts_for_every_mark_that_stands(
        self, harness, fake_clock
    ):
        lane = await harness.lane()
        for_ever = harness.context(freshness=None)
        await ExpiryWatcher(for_ever, TIMING).sweep()
        await for_ever.apply(
            Actor.RECOVERY,
            partial(lane_changes.mark_resume_pending, session_key=lane.session_key, reason="restart_timeout"),
        )
        await fake_clock.advance(hours=2)
        assert (await ExpiryWatcher(for_ever, TIMING).sweep()).finalised == 0
        assert (await harness.watcher().sweep()).finalised == 1

    async def test_a_turn_that_ends_during_rescheduling_is_rescheduled_as_well(self, harness, fake_clock):
        """The page was read before, and is written after: whoever comes between must see to it alone."""
        lane = await harness.lane(SessionResetPolicy(mode=ResetMode.NONE))
        context = harness.context()
        page = (await harness.db.read(partial(expire.load_key_page, ""))).entries
        turn = lane_changes.EndOfTurn(session_key=lane.session_key)
        await context.apply(Actor.PERSON, partial(lane_changes.settle_clocks, turn=turn))
        await context.apply(Actor.WATCHER, partial(expire.reschedule, entries=page))
        settled = await harness.entry(lane)
        assert settled.policy_fingerprint == context.policy_of(settled).fingerprint
        assert settled.due_at == fake_clock.now() + 60 * MINUTE + TICK

    async def test_a_failing_database_ends_one_pass_and_not_the_duty(self, harness, fake_clock):
        lane = await harness.lane()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(harness.watcher().run)
            await fake_clock.advance(minutes=59)
            harness.db.failure = StorageUnavailableError("sessions.db", "is locked")
            await fake_clock.advance(minutes=20)
            harness.db.failure = None
            await fake_clock.advance(minutes=5)
            tasks.cancel_scope.cancel()
        assert await harness.state(lane) is SessionState.EXPIRED

    async def test_a_stopped_database_ends_the_duty(self, harness, fake_clock):
        harness.db.failure = StoreStoppedError("database")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(harness.watcher().run)
            tasks.start_soon(harness.pruner(timedelta(days=1)).run)
            await fake_clock.advance(minutes=1)
        assert fake_clock.sleepers == 0


class TestPruner:
    @pytest.mark.parametrize(("age", "forgotten"), [(timedelta(days=30), 0), (timedelta(days=30) + TICK, 1)])
    async def test_an_entry_is_forgotten_when_it_is_older_than_the_limit(
        self, harness, fake_clock, age, forgotten
    ):
        lane = await harness.lane()
        await fake_clock.advance(age)
        assert await harness.pruner().sweep(timedelta(days=30)) == forgotten
        assert (await harness.entry(lane) is None) == bool(forgotten)

    async def test_the_session_of_a_forgotten_lane_has_ended(self, harness, fake_clock):
        lane = await harness.lane()
        await fake_clock.advance(days=31)
        await harness.pruner().sweep(timedelta(days=30))
        assert harness.db.rows("SELECT end_reason FROM sessions") == [("pruned",)]
        assert harness.db.rows("SELECT session_id FROM hook_calls") == [(lane.session_id,)]
        assert harness.db.rows("SELECT * FROM lanes") == []

    async def test_suspended_running_and_working_lanes_are_kept(self, harness, fake_clock):
        suspended, running, working, unused = [await harness.lane() for _ in range(4)]
        await harness.context().apply(
            Actor.PERSON,
            partial(lane_changes.suspend_session, session_key=suspended.session_key, reason="stop"),
        )
        harness.lease(running)
        harness.busy = lambda lane: lane == working.session_key
        await fake_clock.advance(days=31)
        assert await harness.pruner().sweep(timedelta(days=30)) == 1
        assert await harness.entry(unused) is None
        assert None not in [await harness.entry(one) for one in (suspended, running, working)]

    async def test_a_lane_that_is_used_while_it_is_judged_is_kept(self, harness, fake_clock):
        lane = await harness.lane()
        context = harness.context()

        async def write_meanwhile(_key: str) -> bool:
            turn = lane_changes.EndOfTurn(session_key=lane.session_key)
            await context.apply(Actor.PERSON, partial(lane_changes.settle_clocks, turn=turn))
            return False

        harness.busy = write_meanwhile
        await fake_clock.advance(days=31)
        assert await harness.pruner().sweep(timedelta(days=30)) == 0

    async def test_many_lanes_are_forgotten_page_by_page(self, harness, fake_clock):
        for _ in range(250):
            await harness.lane()
        await fake_clock.advance(days=31)
        before = harness.db.writes
        assert await harness.pruner().sweep(timedelta(days=30)) == 250
        assert harness.db.writes - before == 3

    async def test_without_a_limit_there_is_no_duty(self, harness):
        await harness.pruner(None).run()

    async def test_it_works_after_the_first_pass_and_then_every_hour(self, harness, fake_clock):
        await harness.lane()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(harness.pruner(timedelta(hours=2)).run)
            await fake_clock.advance(hours=2)
            assert len(harness.db.rows("SELECT * FROM entries")) == 1
            await fake_clock.advance(minutes=1)
            assert harness.db.rows("SELECT * FROM entries") == []
            tasks.cancel_scope.cancel()

    async def test_a_failing_database_ends_one_pass_and_not_the_duty(self, harness, fake_clock):
        await harness.lane()
        harness.db.failure = StorageUnavailableError("sessions.db", "is locked")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(harness.pruner(timedelta(hours=2)).run)
            await fake_clock.advance(hours=3)
            harness.db.failure = None
            await fake_clock.advance(hours=1)
            tasks.cancel_scope.cancel()
        assert harness.db.rows("SELECT * FROM entries") == []
