"""Foreign code sees nothing of its caller, takes no longer than it may, and cannot end anybody else."""

from __future__ import annotations

import asyncio
import gc
import weakref
from contextvars import ContextVar
from datetime import timedelta
from functools import partial

import anyio
import pytest

from gateway_sessions.errors import CancelledItselfError
from gateway_sessions.runtime.user_code import (
    CANCEL_AGAIN_EVERY,
    GRACE,
    MAX_PROBLEM,
    PATIENCE,
    answer_within,
    call_user_code,
    problem_within,
    run_in_fresh_context,
)
from gateway_sessions.testing import FakeClock

canary: ContextVar[str] = ContextVar("canary", default="none")
LIMIT = timedelta(seconds=30)


async def seen() -> str:
    return canary.get()


async def cancel_itself() -> None:
    raise asyncio.CancelledError


class TestFreshContext:
    async def test_it_sees_no_variable_of_the_caller(self):
        canary.set("mine")
        assert await run_in_fresh_context("it", seen, FakeClock()) == "none"

    async def test_it_leaves_no_variable_behind(self):
        async def sing() -> None:
            canary.set("theirs")

        await run_in_fresh_context("it", sing, FakeClock())
        assert canary.get() == "none"

    async def test_its_failure_is_raised_as_it_is(self):
        failure = LookupError("theirs")

        async def fail() -> None:
            raise failure

        with pytest.raises(LookupError) as caught:
            await run_in_fresh_context("it", fail, FakeClock())
        assert caught.value is failure

    async def test_its_failure_leaves_no_garbage_behind(self):
        class TheirError(Exception):
            pass

        async def fail() -> None:
            raise TheirError

        gc.collect()
        try:
            await run_in_fresh_context("it", fail, FakeClock())
        except TheirError as error:
            failure = weakref.ref(error)
        assert failure() is None

    async def test_who_cancels_himself_ends_nobody_else(self):
        with pytest.raises(CancelledItselfError, match="it cancelled itself") as caught:
            await run_in_fresh_context("it", cancel_itself, FakeClock())
        assert caught.value.what == "it"


class TestCalled:
    def test_a_plain_function_sees_no_context_variable_of_its_caller(self):
        token = canary.set("mine")
        assert call_user_code("it", canary.get) == "none"
        canary.reset(token)

    async def test_what_it_has_of_something_that_was_cancelled_cancels_nobody(self):
        gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        gone.cancel()
        with pytest.raises(CancelledItselfError, match="it cancelled itself"):
            call_user_code("it", gone.result)


class Steps(list[str]):
    """What some work did when it was stopped."""

    async def tidy(self, started: asyncio.Event) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.append("stopped")
            for _ in range(5):
                await asyncio.sleep(0)
            self.append("cleaned up")

    async def dawdle(self, started: asyncio.Event) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.append("stopped")
            try:
                await asyncio.Event().wait()
            finally:
                self.append("cut off")

    async def ignore(self, started: asyncio.Event, times: int) -> None:
        started.set()
        while len(self) < times:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.append("ignored")


class TestStopping:
    """Work that is stopped may clean up, in its own time and within limits."""

    @pytest.fixture
    def started(self) -> asyncio.Event:
        return asyncio.Event()

    async def test_by_a_cancelled_task(self, fake_clock, started):
        steps = Steps()
        task = asyncio.create_task(run_in_fresh_context("it", partial(steps.tidy, started), fake_clock))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert steps == ["stopped", "cleaned up"]

    async def test_by_a_cancelled_scope(self, fake_clock, started):
        steps = Steps()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(run_in_fresh_context, "it", partial(steps.tidy, started), fake_clock))
            await started.wait()
            tasks.cancel_scope.cancel()
        assert steps == ["stopped", "cleaned up"]

    async def test_as_soon_as_it_has_begun(self, fake_clock, started):
        steps = Steps()
        task = asyncio.create_task(run_in_fresh_context("it", partial(steps.tidy, started), fake_clock))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert steps == ["stopped", "cleaned up"]

    async def test_a_clean_up_that_takes_too_long_is_cut_off(self, fake_clock, started):
        steps = Steps()
        task = asyncio.create_task(run_in_fresh_context("it", partial(steps.dawdle, started), fake_clock))
        await started.wait()
        task.cancel()
        await fake_clock.wait_for_sleepers(1)
        await fake_clock.advance(GRACE - timedelta(microseconds=1))
        assert steps == ["stopped"]
        await fake_clock.advance(timedelta(microseconds=1))
        assert task.cancelled()
        assert steps == ["stopped", "cut off"]

    async def test_who_ignores_it_is_stopped_again_and_again(self, fake_clock, started):
        steps = Steps()
        task = asyncio.create_task(run_in_fresh_context("it", partial(steps.ignore, started, 3), fake_clock))
        await started.wait()
        task.cancel()
        await fake_clock.wait_for_sleepers(1)
        await fake_clock.advance(GRACE + 10 * CANCEL_AGAIN_EVERY)
        assert task.cancelled()
        assert steps == ["ignored"] * 3

    async def test_who_ignores_it_for_good_is_left_alone(self, fake_clock, started, caplog):
        steps, often = Steps(), PATIENCE // CANCEL_AGAIN_EVERY + 1
        task = asyncio.create_task(
            run_in_fresh_context("it", partial(steps.ignore, started, often + 1), fake_clock)
        )
        await started.wait()
        task.cancel()
        await fake_clock.wait_for_sleepers(1)
        await fake_clock.advance(GRACE + PATIENCE - timedelta(microseconds=1))
        assert not task.done()
        await fake_clock.advance(timedelta(microseconds=1))
        assert task.cancelled()
        assert steps == ["ignored"] * often
        assert [one.what for one in caplog.records if one.action == "left_alone"] == ["it"]
        (stray,) = (one for one in asyncio.all_tasks() if one is not asyncio.current_task())
        stray.cancel()
        await asyncio.wait({stray})
        assert fake_clock.sleepers == 0

    async def test_what_ends_the_program_is_not_kept_from_it(self, fake_clock):
        class TheEnd(BaseException):
            pass

        async def end() -> None:
            raise TheEnd

        with pytest.raises(TheEnd):
            await run_in_fresh_context("it", end, fake_clock)
        with pytest.raises(TheEnd):
            await problem_within(LIMIT, fake_clock, end)

    async def test_who_stops_twice_waits_for_the_end_as_well(self, fake_clock, started):
        steps = Steps()
        task = asyncio.create_task(run_in_fresh_context("it", partial(steps.dawdle, started), fake_clock))
        await started.wait()
        task.cancel()
        await fake_clock.wait_for_sleepers(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert steps == ["stopped", "cut off"]

    async def test_a_failure_on_the_way_out_does_not_keep_the_caller_alive(self, fake_clock, started):
        async def work() -> None:
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                raise LookupError

        task = asyncio.create_task(run_in_fresh_context("it", work, fake_clock))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def test_an_answer_on_the_way_out_does_not_keep_the_caller_alive(self, fake_clock, started):
        task = asyncio.create_task(
            run_in_fresh_context("it", partial(Steps().ignore, started, 1), fake_clock)
        )
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


class TestTimeLimit:
    async def test_what_ends_well_in_time_is_no_problem(self):
        clock = FakeClock()
        assert await problem_within(LIMIT, clock, seen) is None
        assert clock.sleepers == 0

    async def test_a_failure_is_told_in_a_line_that_has_an_end(self):
        async def fail() -> None:
            raise LookupError("x" * 1000)

        problem = await problem_within(LIMIT, FakeClock(), fail)
        assert problem is not None
        assert problem.startswith("LookupError: xxx")
        assert len(problem) == MAX_PROBLEM

    async def test_what_takes_too_long_is_stopped(self):
        clock = FakeClock()
        stopped: list[bool] = []

        async def hang() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                stopped.append(True)

        task = asyncio.create_task(problem_within(LIMIT, clock, hang))
        await clock.wait_for_sleepers(1)
        await clock.advance(LIMIT - timedelta(microseconds=1))
        assert not task.done()
        await clock.advance(timedelta(microseconds=1))
        assert await task == "took longer than 30 s"
        assert stopped == [True]

    async def test_who_cancels_himself_is_told_of(self):
        assert await problem_within(LIMIT, FakeClock(), cancel_itself) == "cancelled itself"

    async def test_whoever_waits_can_be_stopped_and_waits_for_the_end(self):
        steps, started, clock = Steps(), asyncio.Event(), FakeClock()
        task = asyncio.create_task(problem_within(LIMIT, clock, partial(steps.tidy, started)))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (steps, clock.sleepers) == (["stopped", "cleaned up"], 0)

    async def test_what_was_stopped_may_clean_up_within_limits(self):
        steps, clock = Steps(), FakeClock()
        task = asyncio.create_task(problem_within(LIMIT, clock, partial(steps.dawdle, asyncio.Event())))
        await clock.wait_for_sleepers(1)
        await clock.advance(LIMIT)
        assert steps == ["stopped"]
        await clock.advance(GRACE)
        assert await task == "took longer than 30 s"
        assert steps == ["stopped", "cut off"]

    async def test_it_sees_no_variable_of_the_caller(self):
        canary.set("mine")
        found: list[str] = []

        async def look() -> None:
            found.append(canary.get())

        await problem_within(LIMIT, FakeClock(), look)
        assert found == ["none"]


class TestAnAnswerWithinALimit:
    async def test_it_is_what_the_work_returns(self):
        canary.set("mine")
        assert await answer_within(LIMIT, "it", seen, FakeClock()) == "none"

    async def test_its_failure_is_raised_as_it_is(self):
        failure = LookupError("theirs")

        async def fail() -> None:
            raise failure

        with pytest.raises(LookupError) as caught:
            await answer_within(LIMIT, "it", fail, FakeClock())
        assert caught.value is failure

    async def test_one_that_cancels_itself_is_named(self):
        with pytest.raises(CancelledItselfError, match="it cancelled itself"):
            await answer_within(LIMIT, "it", cancel_itself, FakeClock())

    async def test_one_that_takes_too_long_is_stopped_and_its_late_answer_does_not_count(self):
        clock = FakeClock()

        async def late() -> str:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return "late"
            return "never"

        async def asked() -> None:
            with pytest.raises(TimeoutError, match="it took longer than 30 s"):
                await answer_within(LIMIT, "it", late, clock)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(asked())
            await clock.advance(LIMIT)
