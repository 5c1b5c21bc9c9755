"""Whether tasks rest."""

import asyncio
from collections.abc import Callable, Coroutine

import pytest

from gateway_sessions._process.waits import rests_while_waiting, works_while_waiting
from gateway_sessions.testing.clock import Stillness, Working


async def test_whoever_was_woken_by_a_task_that_has_ended_does_not_rest_yet():
    first, second = asyncio.Event(), asyncio.Event()

    async def wake_the_other() -> None:
        await first.wait()
        second.set()

    waking, woken = asyncio.create_task(wake_the_other()), asyncio.create_task(second.wait())
    stillness = Stillness()
    for _ in range(3):
        await asyncio.sleep(0)
        seen = stillness.find_working((), ())
    assert (seen.busy, seen.waiting, seen.ended) == ([], [], False)
    first.set()
    while not waking.done():  # noqa: ASYNC110 -- each turn of the loop is looked at
        await asyncio.sleep(0)
    assert not woken.done()
    seen = stillness.find_working((), ())
    assert seen.busy or seen.ended
    await woken


async def seen_after_moving(task: asyncio.Task[object]) -> Working:
    """Return what is seen of a task that waits for a future which no task brings."""
    stillness = Stillness()
    for _ in range(3):
        await asyncio.sleep(0)
        seen = stillness.find_working({task}, ())
    return seen


async def wait_for_outside(future: asyncio.Future[object]) -> object:
    return await future


@rests_while_waiting
async def serve(future: asyncio.Future[object]) -> object:
    return await wait_for_outside(future)


@works_while_waiting
async def work(future: asyncio.Future[object]) -> object:
    async with asyncio.Lock():
        return await wait_for_outside(future)


@pytest.mark.parametrize(("function", "rests"), [(wait_for_outside, False), (serve, True), (work, False)])
async def test_a_wait_says_by_its_mark_whether_its_task_rests(
    function: Callable[[asyncio.Future[object]], Coroutine[object, object, object]], rests: bool
):
    future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(function(future))
    seen = await seen_after_moving(task)
    assert (task not in {*seen.busy, *seen.waiting}) is rests
    future.set_result(None)
    await task
