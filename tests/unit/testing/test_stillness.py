"""Whether tasks rest."""

import asyncio

from gateway_sessions.testing.clock import Stillness


async def test_whoever_was_woken_by_a_task_that_has_ended_does_not_rest_yet():
    first, second = asyncio.Event(), asyncio.Event()

    async def wake_the_other() -> None:
        await first.wait()
        second.set()

    waking, woken = asyncio.create_task(wake_the_other()), asyncio.create_task(second.wait())
    stillness = Stillness()
    for _ in range(3):
        await asyncio.sleep(0)
        seen = stillness.working((), ())
    assert (seen.busy, seen.waiting, seen.ended) == ([], [], False)
    first.set()
    while not waking.done():  # noqa: ASYNC110 -- each turn of the loop is looked at
        await asyncio.sleep(0)
    assert not woken.done()
    seen = stillness.working((), ())
    assert seen.busy or seen.ended
    await woken
