"""Callers who want the same thing at the same time share one piece of work."""

from __future__ import annotations

import asyncio

import pytest

from gateway_sessions.runtime.queue.routing import SingleFlight


class Work:
    """Counts how often it is begun, and ends when it is told to."""

    def __init__(self, fails: bool = False) -> None:
        self.begun = 0
        self.ends = asyncio.Event()
        self.fails = fails

    async def __call__(self) -> int:
        self.begun += 1
        number = self.begun
        await self.ends.wait()
        if self.fails:
            raise LookupError(number)
        return number


@pytest.fixture
def flights() -> SingleFlight[int]:
    return SingleFlight()


async def started(tasks: list[asyncio.Task[int]]) -> list[asyncio.Task[int]]:
    """Let everybody come to where they wait."""
    for _ in range(10):
        await asyncio.sleep(0)
    return tasks


def callers(flights, work, count=3, key="k"):
    return [asyncio.create_task(flights.share(key, work)) for _ in range(count)]


async def test_the_work_is_done_once_for_all_who_ask_meanwhile(flights):
    work = Work()
    tasks = await started(callers(flights, work))
    work.ends.set()
    assert await asyncio.gather(*tasks) == [1, 1, 1]
    assert work.begun == 1


async def test_who_asks_later_has_it_done_again(flights):
    work = Work()
    work.ends.set()
    assert [await flights.share("k", work) for _ in range(3)] == [1, 2, 3]


async def test_who_wants_something_else_does_not_wait(flights):
    slow, quick = Work(), Work()
    quick.ends.set()
    waiting = await started(callers(flights, slow, 1))
    assert await flights.share("other", quick) == 1
    slow.ends.set()
    assert await waiting[0] == 1


async def test_a_failure_is_everybody_s_and_only_theirs(flights):
    work = Work(fails=True)
    tasks = await started(callers(flights, work))
    work.ends.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(one) for one in outcomes] == [LookupError] * 3
    assert work.begun == 1
    work.fails = False
    assert await flights.share("k", work) == 2


async def test_a_failure_that_nobody_else_waits_for_is_the_caller_s_alone(flights):
    work = Work(fails=True)
    work.ends.set()
    with pytest.raises(LookupError):
        await flights.share("k", work)


async def test_if_the_one_who_works_goes_away_one_of_the_others_takes_over(flights):
    work = Work()
    first, *others = await started(callers(flights, work, 4))
    first.cancel()
    await started(others)
    work.ends.set()
    assert await asyncio.gather(*others) == [2, 2, 2]
    assert first.cancelled()
    assert work.begun == 2


async def test_if_one_who_waits_goes_away_nobody_else_notices(flights):
    work = Work()
    first, second, third = await started(callers(flights, work))
    second.cancel()
    await started([])
    work.ends.set()
    assert await asyncio.gather(first, third) == [1, 1]
    assert second.cancelled()


async def test_if_all_go_away_the_next_one_begins_anew(flights):
    work = Work()
    tasks = await started(callers(flights, work))
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    work.ends.set()
    assert await flights.share("k", work) == work.begun
