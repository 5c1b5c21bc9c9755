"""What is opened with `async with` may be closed by another task, and leaves nothing running."""

import asyncio
from contextlib import AsyncExitStack

import pytest
from anyio.abc import TaskGroup

from gateway_sessions._process.background import Resource
from gateway_sessions.errors import StoreStoppedError


class FaultError(Exception):
    """What went wrong in the background."""


class Machine(Resource):
    """A resource that records what it does, and fails where it is told to."""

    def __init__(self, *, fails_in: str = "") -> None:
        super().__init__("machine")
        self.fails_in = fails_in
        self.fault = asyncio.Event()
        self.steps: list[str] = []
        self.begun = asyncio.Event()
        self.ready = asyncio.Event()
        self.ready.set()

    async def _start(self, tasks: TaskGroup, cleanup: AsyncExitStack) -> None:
        cleanup.callback(self.steps.append, "closed")
        self.begun.set()
        await self.ready.wait()
        self._fail("start")
        tasks.start_soon(self._work)
        self.steps.append("started")

    async def _finish(self) -> None:
        self._fail("finish")
        self.steps.append("finished")

    async def _work(self) -> None:
        try:
            await self.fault.wait()
            raise FaultError
        finally:
            self.steps.append("stopped")

    def _fail(self, where: str) -> None:
        if self.fails_in == where:
            raise FaultError

    def use(self) -> str:
        self._check_running()
        return "used"


async def crashed(machine: Machine) -> None:
    """Let the background fail, and wait for its end."""
    (host,) = [task for task in asyncio.all_tasks() if task.get_name() == "machine"]
    machine.fault.set()
    await asyncio.wait({host})


async def test_everything_happens_in_order():
    machine = Machine()
    async with machine as entered:
        assert entered is machine
        assert machine.use() == "used"
    assert machine.steps == ["started", "finished", "stopped", "closed"]


async def test_one_task_may_open_what_another_one_closes():
    machine = Machine()
    await asyncio.create_task(machine.__aenter__())
    assert machine.use() == "used"
    await asyncio.create_task(machine.__aexit__(None, None, None))
    assert machine.steps[-1] == "closed"
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_nothing_can_be_used_before_it_is_opened_or_after_it_is_closed():
    machine = Machine()
    with pytest.raises(StoreStoppedError, match="machine"):
        machine.use()
    async with machine:
        pass
    with pytest.raises(StoreStoppedError) as stopped:
        machine.use()
    assert stopped.value.__cause__ is None


async def test_a_crash_is_the_cause_in_later_calls_and_is_raised_at_the_end():
    machine = Machine()
    await machine.__aenter__()
    await crashed(machine)
    with pytest.raises(StoreStoppedError) as stopped:
        machine.use()
    assert isinstance(stopped.value.__cause__, FaultError)
    with pytest.raises(FaultError):
        await machine.__aexit__(None, None, None)


async def test_a_crash_does_not_hide_the_error_of_the_block():
    machine = Machine()

    async def block() -> None:
        async with machine:
            await crashed(machine)
            machine.use()

    with pytest.raises(StoreStoppedError) as stopped:
        await block()
    assert isinstance(stopped.value.__cause__, FaultError)


async def test_what_cannot_start_raises_its_own_error_and_closes_what_it_had():
    machine = Machine(fails_in="start")
    with pytest.raises(FaultError):
        await machine.__aenter__()
    assert machine.steps == ["closed"]
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_work_that_fails_at_the_end_is_told_and_closes_all_the_same():
    machine = Machine(fails_in="finish")
    with pytest.raises(FaultError):
        async with machine:
            pass
    assert machine.steps == ["started", "stopped", "closed"]


async def test_it_opens_only_once():
    machine = Machine()
    async with machine:
        with pytest.raises(StoreStoppedError, match="once"):
            await machine.__aenter__()
        assert machine.use() == "used"
    with pytest.raises(StoreStoppedError, match="once"):
        await machine.__aenter__()


async def test_closing_twice_or_before_opening_does_no_harm():
    machine = Machine()
    await machine.__aexit__(None, None, None)
    async with machine:
        pass
    await machine.__aexit__(None, None, None)
    assert machine.steps.count("closed") == 1


async def test_two_tasks_may_close_it_at_the_same_time():
    machine = Machine()
    await machine.__aenter__()
    await asyncio.gather(*[machine.__aexit__(None, None, None) for _ in range(3)])
    assert machine.steps.count("closed") == 1


async def test_a_cancelled_opening_closes_everything_before_it_goes():
    machine = Machine()
    machine.ready.clear()
    opening = asyncio.create_task(machine.__aenter__())
    await machine.begun.wait()
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert machine.steps == ["closed"]
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_cancelled_closing_still_closes_everything():
    machine = Machine()
    await machine.__aenter__()
    closing = asyncio.create_task(machine.__aexit__(None, None, None))
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert machine.steps[-1] == "closed"
    with pytest.raises(StoreStoppedError):
        machine.use()


async def test_whoever_stops_all_tasks_while_it_opens_does_not_leave_it_looking_open():
    machine = Machine()
    machine.ready.clear()
    opening = asyncio.create_task(machine.__aenter__())
    await machine.begun.wait()
    (host,) = asyncio.all_tasks() - {opening, asyncio.current_task()}
    host.cancel()
    with pytest.raises(StoreStoppedError):
        await opening
