import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Self

import anyio
import pytest

from gateway_sessions.ports import Clock
from gateway_sessions.storage.files.threads import in_thread as own_thread
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.clock import TasksStillBusyError, TooFewSleepersError

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)


class Background:
    """Tasks of a test, cancelled at its end."""

    def __init__(self) -> None:
        self.tasks: list[asyncio.Task[object]] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    def start(self, work, name=None) -> asyncio.Task[object]:
        task = asyncio.create_task(work, name=name)
        self.tasks.append(task)
        return task


@pytest.fixture
async def background() -> AsyncIterator[Background]:
    async with Background() as tasks:
        yield tasks


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """A clock with which only those go on who have not to wait for anybody."""
    monkeypatch.setattr("gateway_sessions.testing.clock.GRACE", timedelta(hours=1))
    return FakeClock(patience=timedelta(hours=1))


async def in_thread(work: Callable[[], None] = lambda: time.sleep(0.02)) -> None:
    await asyncio.to_thread(work)


class Errands:
    """What a duty has ahead of it, as a test says."""

    def __init__(self, clock: FakeClock, due: datetime | None = None) -> None:
        self.clock = clock
        self.due = due
        self.changes = 0
        self.passes: list[datetime] = []

    def state(self) -> int:
        return self.changes

    async def next_due(self) -> datetime | None:
        return self.due

    def set(self, due: datetime | None) -> None:
        self.due = due
        self.changes += 1

    async def run(self, period: timedelta) -> None:
        while True:
            await self.clock.skip_idle_periods(period, self)
            self.passes.append(self.clock.now())
            if self.due is not None and self.due <= self.clock.now():
                self.due = None


def at(hour: int, minute: int = 0, *, day: int = 1) -> datetime:
    return NEW_YEAR.replace(day=day, hour=hour, minute=minute)


class TestIdlePeriods:
    """A duty that looks every five minutes costs a test nothing while it has nothing to do."""

    PERIOD = timedelta(minutes=5)

    async def test_periods_without_work_are_passed_over(self, clock, background):
        errands = Errands(clock)
        background.start(errands.run(self.PERIOD))
        await clock.advance(days=3650)
        assert errands.passes == []

    @pytest.mark.parametrize(
        ("due", "looked"),
        [
            (at(4, 1), at(4, 5)),
            (at(4, 5), at(4, 5)),
            (at(4, 5) + timedelta(microseconds=1), at(4, 10)),
            (at(0), at(0, 5)),
            (NEW_YEAR - timedelta(days=1), at(0, 5)),
        ],
    )
    async def test_work_is_done_at_the_end_of_the_period_that_it_falls_in(
        self, clock, background, due, looked
    ):
        errands = Errands(clock, due)
        background.start(errands.run(self.PERIOD))
        await clock.advance(days=1)
        assert errands.passes == [looked]

    async def test_work_that_comes_up_is_looked_at_in_the_same_period(self, clock, background):
        errands = Errands(clock, at(0, day=9))
        background.start(errands.run(self.PERIOD))
        await clock.advance(minutes=12)
        errands.set(None)
        await clock.advance(minutes=2)
        assert errands.passes == []
        await clock.advance(hours=1)
        assert errands.passes == [at(0, 15)]

    async def test_what_another_sleeper_brings_up_is_looked_at_in_its_period(self, clock, background):
        errands = Errands(clock)

        async def brings_work() -> None:
            await clock.sleep(timedelta(hours=7, minutes=3).total_seconds())
            errands.set(at(8, 1))

        background.start(errands.run(self.PERIOD))
        background.start(brings_work())
        await clock.advance(days=1)
        assert errands.passes == [at(7, 5), at(8, 5)]

    async def test_whoever_sets_the_wall_clock_is_noticed(self, clock, background):
        errands = Errands(clock, at(12))
        background.start(errands.run(self.PERIOD))
        await clock.advance(minutes=1)
        clock.step(hours=14)
        await clock.advance(minutes=5)
        assert errands.passes == [at(14, 5)]

    async def test_whoever_is_cancelled_skips_nothing_more(self, clock, background):
        task = background.start(Errands(clock).run(self.PERIOD))
        await clock.advance(minutes=1)
        assert clock.sleepers == 1
        task.cancel()
        await clock.advance(minutes=1)
        assert clock.sleepers == 0


class TestTheTime:
    def test_it_begins_at_new_year_2026(self, clock):
        assert clock.now() == NEW_YEAR

    @pytest.mark.parametrize(
        "start", ["2030-05-06T07:08:09+02:00", datetime.fromisoformat("2030-05-06T07:08:09+02:00")]
    )
    def test_it_begins_where_the_test_says(self, start):
        assert FakeClock(start).now().isoformat() == "2030-05-06T05:08:09+00:00"

    def test_a_start_without_a_zone_is_read_as_utc(self):
        assert FakeClock("2030-05-06T07:08:09").now() == datetime(2030, 5, 6, 7, 8, 9, tzinfo=UTC)

    def test_it_stands_still(self, clock):
        assert clock.now() == clock.now()

    def test_it_is_a_clock_for_the_runtime(self, clock):
        port: Clock = clock
        assert port.now().tzinfo is UTC

    async def test_it_moves_by_what_is_advanced(self, clock):
        await clock.advance(timedelta(days=1), hours=2, minutes=3, seconds=4.5)
        assert clock.now() == NEW_YEAR + timedelta(days=1, hours=2, minutes=3, seconds=4.5)

    async def test_it_moves_to_an_instant(self, clock):
        await clock.advance_to("2026-03-01T12:00:00Z")
        assert clock.now() == datetime(2026, 3, 1, 12, tzinfo=UTC)

    async def test_it_does_not_pass_backwards(self, clock):
        with pytest.raises(ValueError, match="step"):
            await clock.advance(seconds=-1)
        with pytest.raises(ValueError, match="step"):
            await clock.advance_to("2025-12-31T00:00:00Z")
        assert clock.now() == NEW_YEAR


class TestSleeping:
    async def test_a_sleeper_wakes_at_its_deadline_and_not_before(self, clock, background):
        sleeper = background.start(clock.sleep(60))
        await clock.advance(seconds=59.999999)
        assert not sleeper.done()
        await clock.advance(seconds=0.000001)
        assert sleeper.done()

    @pytest.mark.parametrize("seconds", [0, -1, float("-inf")])
    async def test_sleeping_for_no_time_only_lets_others_run(self, clock, background, seconds):
        other = background.start(asyncio.sleep(0))
        await clock.sleep(seconds)
        await asyncio.sleep(0)
        assert other.done()
        assert clock.sleepers == 0

    @pytest.mark.parametrize("seconds", [float("inf"), 1e30])
    async def test_one_may_sleep_for_ever(self, clock, background, seconds):
        sleeper = background.start(clock.sleep(seconds))
        await clock.advance(days=100 * 365)
        assert not sleeper.done()
        assert clock.sleepers == 1

    async def test_each_sleeper_sees_its_own_moment(self, clock, background):
        seen = []

        async def note_after(seconds):
            await clock.sleep(seconds)
            seen.append((clock.now() - NEW_YEAR).total_seconds())

        for seconds in (30, 10, 20):
            background.start(note_after(seconds))
        await clock.advance(minutes=1)
        assert seen == [10, 20, 30]

    async def test_equal_deadlines_wake_in_the_order_of_coming(self, clock, background):
        seen = []

        async def note(name):
            await clock.sleep(5)
            seen.append(name)

        for name in "abc":
            background.start(note(name))
        await clock.advance(seconds=5)
        assert seen == ["a", "b", "c"]

    async def test_a_loop_that_sleeps_runs_at_each_of_its_moments_within_one_advance(self, clock, background):
        seen = []

        async def tick():
            while True:
                await clock.sleep(3600)
                seen.append(clock.now())

        background.start(tick())
        await clock.advance(days=1)
        assert seen == [NEW_YEAR + timedelta(hours=hour) for hour in range(1, 25)]

    async def test_a_cancelled_sleeper_is_forgotten(self, clock, background):
        first, second = background.start(clock.sleep(5)), background.start(clock.sleep(5))
        await clock.wait_for_sleepers(2)
        first.cancel()
        await asyncio.wait({first})
        assert clock.sleepers == 1
        await clock.advance(seconds=5)
        assert second.done()
        assert clock.sleepers == 0

    async def test_a_sleeper_may_be_cancelled_in_the_moment_it_is_woken(self, clock, background):
        async def cancel(tasks):
            await clock.sleep(5)
            tasks[-1].cancel()

        background.start(cancel(background.tasks))
        woken = background.start(clock.sleep(5))
        await clock.advance(seconds=10)
        assert woken.cancelled()
        assert clock.sleepers == 0

    async def test_a_cancel_scope_interrupts_a_sleep(self, clock):
        async with anyio.create_task_group() as group:
            with anyio.CancelScope() as scope:
                group.start_soon(self.cancel_at, clock, scope, 30)
                await clock.sleep(3600)
            assert scope.cancelled_caught
            assert clock.now() == NEW_YEAR + timedelta(seconds=30)

    @staticmethod
    async def cancel_at(clock, scope, seconds):
        await clock.advance(seconds=seconds)
        scope.cancel()

    def test_one_clock_serves_several_loops_one_after_the_other(self, clock):
        async def one_hour():
            async with Background() as background:
                sleeper = background.start(clock.sleep(3600))
                background.start(clock.sleep(7200))
                await clock.advance(hours=1)
                assert sleeper.done()

        for _ in range(2):
            with asyncio.Runner() as runner:
                runner.run(one_hour())
        assert clock.now() == NEW_YEAR + timedelta(hours=2)
        assert clock.sleepers == 0


class TestSteppingTheWallClock:
    @pytest.mark.parametrize("hours", [-5, 5])
    async def test_a_step_wakes_nobody_and_moves_no_deadline(self, clock, background, hours):
        sleeper = background.start(clock.sleep(60))
        await clock.advance(seconds=30)
        clock.step(hours=hours)
        assert clock.now() == NEW_YEAR + timedelta(hours=hours, seconds=30)
        await clock.advance(seconds=29)
        assert not sleeper.done()
        await clock.advance(seconds=1)
        assert sleeper.done()

    async def test_an_instant_is_reached_by_the_wall_clock(self, clock):
        clock.step(timedelta(days=-1))
        await clock.advance_to(NEW_YEAR)
        assert clock.now() == NEW_YEAR


class TestWaitingForWork:
    async def test_work_in_a_thread_ends_before_time_goes_on(self, clock, background):
        swept = []

        async def sweep():
            while True:
                await clock.sleep(60)
                began = clock.now()
                await in_thread()
                swept.append((began, clock.now()))

        background.start(sweep())
        await clock.advance(minutes=3)
        assert swept == [(NEW_YEAR + timedelta(minutes=n),) * 2 for n in (1, 2, 3)]

    async def test_work_may_take_several_turns_and_threads(self, clock, background):
        async def work():
            await clock.sleep(1)
            for _ in range(5):
                await in_thread(lambda: time.sleep(0.001))
                await asyncio.sleep(0)
                await anyio.to_thread.run_sync(lambda: time.sleep(0.001))

        done = background.start(work())
        await clock.advance(seconds=1)
        assert done.done()

    async def test_work_handed_to_another_task_is_waited_for(self, clock, background):
        jobs: asyncio.Queue[asyncio.Event] = asyncio.Queue()
        done = []

        async def serve():
            while True:
                finished = await jobs.get()
                await in_thread()
                finished.set()

        async def ask():
            while True:
                await clock.sleep(60)
                finished = asyncio.Event()
                await jobs.put(finished)
                await finished.wait()
                done.append(clock.now())

        background.start(serve())
        background.start(ask())
        await clock.advance(minutes=2)
        assert done == [NEW_YEAR + timedelta(minutes=n) for n in (1, 2)]

    async def test_work_that_nobody_waits_for_is_done_when_advance_returns(self, clock, background):
        jobs: asyncio.Queue[None] = asyncio.Queue()
        done = []

        async def serve():
            while True:
                await jobs.get()
                await in_thread()
                done.append(clock.now())

        async def post():
            while True:
                await clock.sleep(60)
                jobs.put_nowait(None)

        background.start(serve())
        background.start(post())
        await clock.advance(minutes=1)
        assert done == [NEW_YEAR + timedelta(minutes=1)]

    @pytest.mark.parametrize("group", [anyio.create_task_group, asyncio.TaskGroup])
    async def test_a_task_whose_child_keeps_the_time_is_waited_for(self, clock, background, group):
        swept = []

        async def sweep():
            while True:
                async with group() as tasks:
                    start = getattr(tasks, "start_soon", None)
                    if start:
                        start(clock.sleep, 60)
                    else:
                        tasks.create_task(clock.sleep(60))
                await in_thread(lambda: time.sleep(0.005))
                swept.append(clock.now())

        background.start(sweep())
        await clock.advance(minutes=3)
        assert swept == [NEW_YEAR + timedelta(minutes=n) for n in (1, 2, 3)]

    async def test_work_inside_a_context_manager_is_waited_for(self, clock, background):
        @asynccontextmanager
        async def connection():
            await in_thread()
            yield
            await in_thread()

        async def work():
            await clock.sleep(1)
            async with connection():
                await asyncio.sleep(0)

        done = background.start(work())
        await clock.advance(seconds=1)
        assert done.done()

    async def test_a_task_that_was_just_started_reaches_its_first_sleep(self, clock, background):
        async def work():
            await in_thread()
            await clock.sleep(60)

        done = background.start(work())
        await clock.advance(minutes=1)
        assert done.done()

    async def test_a_task_that_sleeps_inside_a_context_manager_rests(self, waits_for_ever, background):
        clock = waits_for_ever

        @asynccontextmanager
        async def opened():
            for _ in range(3):
                await clock.sleep(1)
            yield

        async def work():
            async with opened():
                pass

        task = background.start(work())
        for _ in range(3):
            await clock.advance(seconds=1)
        assert task.done()

    async def test_without_arguments_advance_waits_until_everything_rests(self, clock, background):
        done = background.start(in_thread())
        await clock.advance()
        assert done.done()
        assert clock.now() == NEW_YEAR

    async def test_a_task_that_then_waits_for_others_does_not_hold_time_up(self, clock, background):
        events = []
        wake = asyncio.Event()

        async def work():
            await clock.sleep(10)
            await in_thread()
            events.append(clock.now())
            await wake.wait()

        background.start(work())
        other = background.start(clock.sleep(20))
        await clock.advance(seconds=30)
        assert events == [NEW_YEAR + timedelta(seconds=10)]
        assert other.done()

    async def test_a_failing_sleeper_does_not_hold_time_up(self, clock, background):
        async def fail():
            await clock.sleep(1)
            raise LookupError

        failing = background.start(fail())
        await clock.advance(seconds=2)
        assert isinstance(failing.exception(), LookupError)

    async def test_a_task_polling_in_real_time_does_not_hold_time_up(self, waits_for_ever, background):
        clock = waits_for_ever
        polls = 0

        async def poll():
            nonlocal polls
            while True:
                await asyncio.sleep(0.005)
                polls += 1

        background.start(poll())
        for _ in range(5):
            background.start(clock.sleep(1))
            await clock.advance(seconds=2)

    async def test_advances_of_two_tasks_take_turns(self, clock, background):
        seen = []

        async def tick():
            while True:
                await clock.sleep(1)
                await in_thread(lambda: time.sleep(0.001))
                seen.append(clock.now())

        background.start(tick())
        async with asyncio.TaskGroup() as group:
            group.create_task(clock.advance(seconds=3))
            group.create_task(clock.advance(seconds=3))
        assert seen == [NEW_YEAR + timedelta(seconds=n) for n in range(1, 7)]


class TestLimits:
    async def test_a_task_that_stays_busy_is_named(self, background):
        clock = FakeClock(patience=timedelta(milliseconds=50))
        release = threading.Event()

        async def hang():
            await clock.sleep(60)
            await in_thread(release.wait)

        hanging = background.start(hang(), name="the watcher")
        try:
            with pytest.raises(
                TasksStillBusyError, match=r"after 0\.05 s: the watcher at .*\.py:\d+"
            ) as caught:
                await clock.advance(minutes=5)
        finally:
            release.set()
        assert caught.value.tasks == (hanging,)
        assert clock.now() == NEW_YEAR + timedelta(minutes=1)

    async def test_after_a_task_was_too_busy_time_can_go_on(self, background):
        clock = FakeClock(patience=timedelta(milliseconds=50))
        release = threading.Event()

        async def hang():
            await clock.sleep(60)
            await in_thread(release.wait)
            await clock.sleep(60)

        hanging = background.start(hang())
        try:
            with pytest.raises(TasksStillBusyError):
                await clock.advance(minutes=1)
        finally:
            release.set()
        await clock.advance(minutes=1)
        assert hanging.done()

    async def test_a_machine_that_stood_still_has_not_used_up_the_patience(self, background):
        clock = FakeClock(patience=timedelta(milliseconds=300))
        done = asyncio.Event()

        async def work():
            for turn in range(300):
                await asyncio.sleep(0)
                if turn % 100 == 50:
                    time.sleep(0.4)  # noqa: ASYNC251 -- stands for a machine that stops
            done.set()

        background.start(work())
        await clock.advance()
        assert done.is_set()

    async def test_whoever_moves_is_not_taken_for_idle(self, background, monkeypatch):
        monkeypatch.setattr("gateway_sessions.testing.clock.GRACE", timedelta(milliseconds=20))
        clock = FakeClock()
        done = asyncio.Event()

        async def work():
            for _ in range(100):
                await in_thread(lambda: time.sleep(0.002))
            done.set()

        background.start(work())
        await clock.advance()
        assert done.is_set()

    async def test_a_slow_disk_is_waited_for(self, background, monkeypatch):
        monkeypatch.setattr("gateway_sessions.testing.clock.GRACE", timedelta(milliseconds=20))
        clock = FakeClock()
        done = background.start(own_thread(lambda: time.sleep(0.2)))
        await clock.advance()
        assert done.done()

    async def test_a_woken_task_that_sleeps_in_real_time_is_busy(self, background):
        clock = FakeClock(patience=timedelta(milliseconds=50))

        async def nap():
            await clock.sleep(1)
            await asyncio.sleep(3600)

        background.start(nap(), name="napping")
        with pytest.raises(TasksStillBusyError, match="napping"):
            await clock.advance(seconds=1)

    @pytest.mark.alone
    async def test_others_that_wait_for_the_outer_world_are_waited_for_once_and_in_bounds(self, background):
        clock = FakeClock(patience=timedelta(milliseconds=300))
        answer = asyncio.get_running_loop().create_future()

        async def listen():
            await answer

        background.start(listen())
        durations = []
        for _ in range(2):
            background.start(clock.sleep(1))
            began = time.monotonic()
            await clock.advance(seconds=1)
            durations.append(time.monotonic() - began)
        assert durations[0] >= 0.3
        assert durations[1] < 0.3

    async def test_sleepers_can_be_awaited(self, clock, background):
        async def work():
            await in_thread()
            await clock.sleep(60)

        background.start(work())
        background.start(work())
        await clock.wait_for_sleepers(2)
        assert clock.sleepers == 2

    async def test_too_few_sleepers_are_reported(self, background):
        clock = FakeClock(patience=timedelta(milliseconds=20))
        background.start(clock.sleep(1))
        with pytest.raises(TooFewSleepersError, match="1 tasks sleep on the clock, 2 were expected"):
            await clock.wait_for_sleepers(2)

    async def test_a_year_of_sweeps_is_one_call(self, clock, background):
        sweeps = 0

        async def sweep():
            nonlocal sweeps
            while True:
                await clock.sleep(3600)
                sweeps += 1

        background.start(sweep())
        await clock.advance(days=365)
        assert sweeps == 365 * 24
