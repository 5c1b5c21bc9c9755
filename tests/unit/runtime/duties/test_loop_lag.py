"""The event loop's lag is what whoever was ready had to wait for."""

import asyncio
import time

import pytest

from gateway_sessions.core.process_load import LoopLag
from gateway_sessions.runtime.duties.loop_lag import NAP, REMEMBERED, LoopWatch

STALL = NAP + 0.1


@pytest.mark.parametrize(
    ("late", "lag"),
    [
        ([], None),
        ([0.5], (500, 500)),
        ([0.001, 0.003], (3, 3)),
        ([0.004, 0.001, 0.002], (2, 4)),
    ],
)
def test_it_is_told_by_the_middle_and_the_worst(late: list[float], lag: tuple[float, float] | None):
    told = LoopLag.from_waits(late)
    assert (told and (told.usual_ms, told.worst_ms)) == (lag and pytest.approx(lag))


async def test_whoever_holds_the_loop_up_is_seen():
    watch = LoopWatch()
    assert watch.lag is None
    async with asyncio.TaskGroup() as tasks:
        napping = tasks.create_task(watch.measure_nap())
        await asyncio.sleep(0)
        time.sleep(STALL)  # noqa: ASYNC251 -- holds the loop up
        await napping
    assert watch.lag is not None
    assert watch.lag.worst_ms >= (STALL - NAP) * 1000 * 0.99


async def test_what_is_long_ago_is_forgotten():
    watch = LoopWatch()
    watch.note_lag(1.0)
    for _ in range(REMEMBERED):
        watch.note_lag(0.001)
    assert watch.lag == LoopLag(usual_ms=1.0, worst_ms=1.0)
