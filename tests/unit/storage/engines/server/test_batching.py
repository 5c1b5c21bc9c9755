"""Whatever waits when a place becomes free goes together, and nobody who went away is taken along."""

import asyncio
from collections.abc import Generator

import pytest

from gateway_sessions.ports import Rows, Statement
from gateway_sessions.storage.engines.server.batching import (
    PlacesForGroups,
    TransactionGroup,
    TransactionOutcome,
    WaitingTransaction,
)
from gateway_sessions.storage.engines.server.executor import BegunTransaction


def nothing() -> Generator[Statement, Rows, None]:
    yield Statement("nothing")


def member(epoch: int | None = 1) -> WaitingTransaction[None]:
    return WaitingTransaction(BegunTransaction(nothing()), epoch)


async def waiting(groups: PlacesForGroups, *members: WaitingTransaction[None]) -> list[asyncio.Task[object]]:
    tasks = [asyncio.ensure_future(groups.wait_for_place(one)) for one in members]
    await asyncio.sleep(0)
    return tasks


async def test_there_is_no_waiting_as_long_as_there_are_places():
    groups = PlacesForGroups(places=2, largest=8)
    first, second = member(), member()
    assert (await groups.wait_for_place(first), await groups.wait_for_place(second)) == ((first,), (second,))


async def test_all_that_wait_go_together_behind_the_one_that_came_first():
    groups = PlacesForGroups(places=1, largest=8)
    await groups.wait_for_place(member())
    some = [member() for _ in range(3)]
    leader, *others = await waiting(groups, *some)
    groups.free_place()
    assert await leader == some
    assert not any(one.done() for one in others)
    TransactionGroup(some).set_outcomes([TransactionOutcome(None)] * 3)
    assert [await one for one in others] == [(), ()]


async def test_a_place_that_nobody_wants_is_there_for_the_next():
    groups = PlacesForGroups(places=1, largest=8)
    for _ in range(2):
        one = member()
        assert await groups.wait_for_place(one) == (one,)
        groups.free_place()


async def test_a_group_is_no_larger_than_allowed_and_of_one_node():
    groups = PlacesForGroups(places=1, largest=2)
    await groups.wait_for_place(member())
    some = [member(1), member(1), member(1), member(2)]
    tasks = await waiting(groups, *some)
    led = []
    for leader in (tasks[0], tasks[2], tasks[3]):
        groups.free_place()
        led.append(await leader)
    assert led == [some[:2], some[2:3], some[3:]]


async def test_who_goes_away_while_waiting_is_left_out():
    groups = PlacesForGroups(places=1, largest=8)
    await groups.wait_for_place(member())
    some = [member() for _ in range(3)]
    tasks = await waiting(groups, *some)
    tasks[0].cancel()
    tasks[1].cancel()
    await asyncio.gather(*tasks[:2], return_exceptions=True)
    groups.free_place()
    assert await tasks[2] == some[2:]
    groups.free_place()
    again = member()
    assert await groups.wait_for_place(again) == (again,)


async def test_who_goes_away_when_it_is_about_to_lead_lets_the_next_one_lead():
    groups = PlacesForGroups(places=1, largest=8)
    await groups.wait_for_place(member())
    some = [member() for _ in range(3)]
    tasks = await waiting(groups, *some)
    groups.free_place()
    tasks[0].cancel()
    with pytest.raises(asyncio.CancelledError):
        await tasks[0]
    assert await tasks[1] == some[1:]


async def test_who_goes_away_when_it_is_about_to_lead_alone_leaves_its_place_behind():
    groups = PlacesForGroups(places=1, largest=8)
    await groups.wait_for_place(member())
    (task,) = await waiting(groups, member())
    groups.free_place()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    last = member()
    assert await groups.wait_for_place(last) == (last,)


async def test_who_goes_away_before_the_commit_tears_its_group():
    groups = PlacesForGroups(places=1, largest=8)
    await groups.wait_for_place(member())
    some = [member() for _ in range(2)]
    tasks = await waiting(groups, *some)
    groups.free_place()
    group = TransactionGroup(some)
    await tasks[0]
    assert not group.has_cancelled_member
    tasks[1].cancel()
    with pytest.raises(asyncio.CancelledError):
        await tasks[1]
    assert group.has_cancelled_member
    group.set_outcomes([None, None])
    assert some[0].outcome is None


async def test_who_goes_away_while_its_group_is_committed_learns_first_that_this_has_ended():
    groups = PlacesForGroups(places=1, largest=8)
    await groups.wait_for_place(member())
    some = [member() for _ in range(2)]
    tasks = await waiting(groups, *some)
    groups.free_place()
    group = TransactionGroup(some)
    await tasks[0]
    group.begin_commit()
    for _ in range(2):  # even who is cancelled twice
        tasks[1].cancel()
        await asyncio.sleep(0.01)
        assert not tasks[1].done()
    group.set_outcomes([TransactionOutcome(None)] * 2)
    with pytest.raises(asyncio.CancelledError):
        await tasks[1]


def test_an_outcome_is_a_result_or_an_error():
    assert TransactionOutcome(7).result_or_raise() == 7
    with pytest.raises(ValueError, match="no"):
        TransactionOutcome(None, ValueError("no")).result_or_raise()
