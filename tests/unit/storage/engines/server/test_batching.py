"""Whatever waits when a place becomes free goes together, and nobody who went away is taken along."""

import asyncio
from collections.abc import Generator

import pytest

from gateway_sessions.ports import Rows, Statement
from gateway_sessions.storage.engines.server.batching import (
    Groups,
    TransactionGroup,
    TransactionOutcome,
    WaitingTransaction,
)
from gateway_sessions.storage.engines.server.executor import BegunTransaction


def nothing() -> Generator[Statement, Rows, None]:
    yield Statement("nothing")


def member(epoch: int | None = 1) -> WaitingTransaction[None]:
    return WaitingTransaction(BegunTransaction(nothing()), epoch)


async def waiting(groups: Groups, *members: WaitingTransaction[None]) -> list[asyncio.Task[object]]:
    tasks = [asyncio.ensure_future(groups.enter(one)) for one in members]
    await asyncio.sleep(0)
    return tasks


async def test_there_is_no_waiting_as_long_as_there_are_places():
    groups = Groups(places=2, largest=8)
    first, second = member(), member()
    assert (await groups.enter(first), await groups.enter(second)) == ((first,), (second,))


async def test_all_that_wait_go_together_behind_the_one_that_came_first():
    groups = Groups(places=1, largest=8)
    await groups.enter(member())
    some = [member() for _ in range(3)]
    leader, *others = await waiting(groups, *some)
    groups.leave()
    assert await leader == some
    assert not any(one.done() for one in others)
    TransactionGroup(some).settle([TransactionOutcome(None)] * 3)
    assert [await one for one in others] == [(), ()]


async def test_a_place_that_nobody_wants_is_there_for_the_next():
    groups = Groups(places=1, largest=8)
    for _ in range(2):
        one = member()
        assert await groups.enter(one) == (one,)
        groups.leave()


async def test_a_group_is_no_larger_than_allowed_and_of_one_node():
    groups = Groups(places=1, largest=2)
    await groups.enter(member())
    some = [member(1), member(1), member(1), member(2)]
    tasks = await waiting(groups, *some)
    led = []
    for leader in (tasks[0], tasks[2], tasks[3]):
        groups.leave()
        led.append(await leader)
    assert led == [some[:2], some[2:3], some[3:]]


async def test_who_goes_away_while_waiting_is_left_out():
    groups = Groups(places=1, largest=8)
    await groups.enter(member())
    some = [member() for _ in range(3)]
    tasks = await waiting(groups, *some)
    tasks[0].cancel()
    tasks[1].cancel()
    await asyncio.gather(*tasks[:2], return_exceptions=True)
    groups.leave()
    assert await tasks[2] == some[2:]
    groups.leave()
    again = member()
    assert await groups.enter(again) == (again,)


async def test_who_goes_away_when_it_is_about_to_lead_lets_the_next_one_lead():
    groups = Groups(places=1, largest=8)
    await groups.enter(member())
    some = [member() for _ in range(3)]
    tasks = await waiting(groups, *some)
    groups.leave()
    tasks[0].cancel()
    with pytest.raises(asyncio.CancelledError):
        await tasks[0]
    assert await tasks[1] == some[1:]


async def test_who_goes_away_when_it_is_about_to_lead_alone_leaves_its_place_behind():
    groups = Groups(places=1, largest=8)
    await groups.enter(member())
    (task,) = await waiting(groups, member())
    groups.leave()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    last = member()
    assert await groups.enter(last) == (last,)


async def test_who_goes_away_before_the_commit_tears_its_group():
    groups = Groups(places=1, largest=8)
    await groups.enter(member())
    some = [member() for _ in range(2)]
    tasks = await waiting(groups, *some)
    groups.leave()
    group = TransactionGroup(some)
    await tasks[0]
    assert not group.is_torn
    tasks[1].cancel()
    with pytest.raises(asyncio.CancelledError):
        await tasks[1]
    assert group.is_torn
    group.settle([None, None])
    assert some[0].outcome is None


async def test_who_goes_away_while_its_group_is_committed_learns_first_that_this_has_ended():
    groups = Groups(places=1, largest=8)
    await groups.enter(member())
    some = [member() for _ in range(2)]
    tasks = await waiting(groups, *some)
    groups.leave()
    group = TransactionGroup(some)
    await tasks[0]
    group.begin_commit()
    for _ in range(2):  # even who is cancelled twice
        tasks[1].cancel()
        await asyncio.sleep(0.01)
        assert not tasks[1].done()
    group.settle([TransactionOutcome(None)] * 2)
    with pytest.raises(asyncio.CancelledError):
        await tasks[1]


def test_an_outcome_is_a_result_or_an_error():
    assert TransactionOutcome(7).get() == 7
    with pytest.raises(ValueError, match="no"):
        TransactionOutcome(None, ValueError("no")).get()
