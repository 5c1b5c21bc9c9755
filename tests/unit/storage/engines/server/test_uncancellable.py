"""Work that nobody breaks off."""

import asyncio

import anyio
import pytest

from gateway_sessions.storage.engines.server.driver import run_to_the_end


class Work:
    def __init__(self) -> None:
        self.goes_on = asyncio.Event()
        self.done = False

    async def __call__(self) -> None:
        await self.goes_on.wait()
        self.done = True


async def test_work_is_done_when_nobody_disturbs():
    work = Work()
    work.goes_on.set()
    assert await run_to_the_end(work, 1) is None
    assert work.done


async def test_a_cancellation_waits_for_the_end():
    work = Work()
    task = asyncio.create_task(run_to_the_end(work, 5))
    for _ in range(2):
        await asyncio.sleep(0.01)
        task.cancel()
    await asyncio.sleep(0.01)
    assert not task.done()
    work.goes_on.set()
    assert isinstance(await task, asyncio.CancelledError)
    assert work.done


async def test_a_cancelled_scope_waits_as_well():
    work = Work()
    with anyio.CancelScope() as scope:
        scope.cancel()
        asyncio.get_running_loop().call_later(0.01, work.goes_on.set)
        await run_to_the_end(work, 5)
    assert work.done


async def test_work_that_takes_too_long_is_broken_off():
    work = Work()
    with pytest.raises(TimeoutError):
        await run_to_the_end(work, 0.01)
    assert not work.done


async def test_work_that_ends_slowly_is_broken_off_in_a_cancelled_scope_as_well():
    async def ending_slowly() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)

    with anyio.CancelScope() as scope:
        scope.cancel()
        with pytest.raises(TimeoutError):
            await run_to_the_end(ending_slowly, 0.01)
    assert not scope.cancelled_caught


async def test_who_was_told_to_end_meanwhile_ends_although_the_work_failed():
    """Else it would try again, and nobody tells it a second time."""
    goes_on = asyncio.Event()

    async def fail() -> None:
        await goes_on.wait()
        raise OSError(5, "broken")

    task = asyncio.create_task(run_to_the_end(fail, 5))
    await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.sleep(0.01)
    assert not task.done()
    goes_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_failure_is_that_of_the_caller():
    async def fail() -> None:
        raise OSError(5, "broken")

    with pytest.raises(OSError, match="broken"):
        await run_to_the_end(fail, 1)
