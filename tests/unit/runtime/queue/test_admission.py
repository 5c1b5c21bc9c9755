"""The line before the database, and what is remembered to refuse a message without asking it."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from datetime import timedelta

import pytest

from gateway_sessions.core.queue.busy_modes import BusyRules, LaneLoad
from gateway_sessions.core.queue.inbound import Duplicate, RejectReason
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.runtime.queue.admission import (
    CROWDED_SECONDS,
    REFUSES_FOR_SECONDS,
    REMEMBERED_LANES,
    AdmissionLine,
    FullLanes,
    RecentOwners,
)
from gateway_sessions.runtime.queue.waiting import KnownEvents
from gateway_sessions.storage.transactions.queue.admit import NO_TURN, RunningTurnFacts
from tests.unit.core.queue.busy_lanes import arrival, busy_lane_load

FLOOD = 200
APART = BusyRules(debounce=timedelta(0), max_queued=2)
FULL_LANE = busy_lane_load(waiting=2)


async def steps(times: int = 5) -> None:
    for _ in range(times):
        await asyncio.sleep(0)


class Store:
    """Takes in what got through the line, one commit after another."""

    def __init__(self, places: int) -> None:
        self.line = AdmissionLine(places)
        self.under_way: deque[tuple[str, asyncio.Event]] = deque()
        self.committed: list[str] = []

    async def take_in(self, owner: str) -> None:
        if not self.line.take_place(owner):
            await self.line.wait_for_place(owner)
        done = asyncio.Event()
        self.under_way.append((owner, done))
        try:
            await done.wait()
        finally:
            self.line.leave_place(owner)

    async def commit(self) -> Counter[str]:
        """Commit all that got through; whose it was."""
        batch, self.under_way = self.under_way, deque()
        for owner, done in batch:
            self.committed.append(owner)
            done.set()
        await steps()
        return Counter(owner for owner, _ in batch)


async def test_of_a_flood_no_more_goes_on_at_once_than_there_are_places():
    store = Store(places=8)
    async with asyncio.TaskGroup() as tasks:
        for _ in range(FLOOD):
            tasks.create_task(store.take_in("flooder"))
        await steps()
        batches = [len(store.under_way)]
        while store.under_way:
            await store.commit()
            batches.append(len(store.under_way))
        assert batches == [8] * 25 + [0]
    assert store.committed == ["flooder"] * FLOOD


async def test_beside_a_flood_everybody_else_is_in_the_next_commit():
    store = Store(places=8)
    people = [f"p{number}" for number in range(20)]
    async with asyncio.TaskGroup() as tasks:
        for _ in range(FLOOD):
            tasks.create_task(store.take_in("flooder"))
        await steps()
        await store.commit()
        for _ in range(5):
            for person in people:
                tasks.create_task(store.take_in(person))
            await steps()
            batch = await store.commit()
            assert {person: batch[person] for person in people} == dict.fromkeys(people, 1)
            assert batch["flooder"] <= 8
        for _ in range(FLOOD):
            await store.commit()


async def test_among_others_a_flood_has_a_place_like_everybody_and_more_again_when_they_have_gone():
    store = Store(places=8)
    people = [f"p{number}" for number in range(8)]
    async with asyncio.TaskGroup() as tasks:
        for person in people:
            tasks.create_task(store.take_in(person))
        await steps()
        for _ in range(20):
            tasks.create_task(store.take_in("flooder"))
        await steps()
        assert Counter(owner for owner, _ in store.under_way)["flooder"] == 1
        sizes = []
        while store.under_way:
            sizes.append((await store.commit())["flooder"])
        assert (sizes[0], max(sizes), sum(sizes)) == (1, 8, 20)


async def test_messages_of_an_owner_go_on_in_their_order():
    line, order = AdmissionLine(1), list[int]()

    async def go(number: int) -> None:
        if not line.take_place("ann"):
            await line.wait_for_place("ann")
        order.append(number)
        await asyncio.sleep(0)
        line.leave_place("ann")

    await asyncio.gather(*map(go, range(20)))
    assert order == list(range(20))


async def test_whoever_goes_away_while_waiting_or_in_the_moment_of_being_let_in_keeps_no_place():
    line = AdmissionLine(1)
    assert line.take_place("ann")
    waiting = [asyncio.create_task(line.wait_for_place("ann")) for _ in range(3)]
    await steps()
    waiting[0].cancel()
    await steps()
    line.leave_place("ann")
    waiting[1].cancel()  # it has its place by now, and does not know it yet
    await steps()
    assert [one.cancelled() for one in waiting] == [True, True, False]
    line.leave_place("ann")
    assert line.take_place("ann")


# What is remembered


def test_events_that_were_taken_in_are_known_the_latest_ones():
    known = KnownEvents(most=2)
    for seq, event in enumerate(("a", "b", "c", None), 1):
        known.remember(event, seq, "lane")
    assert [known.find(one) for one in ("a", "b", "c", None)] == [
        None,
        Duplicate(seq=2, session_key="lane"),
        Duplicate(seq=3, session_key="lane"),
        None,
    ]


def refusals(lanes: FullLanes, now: float = 0.0, **found: object) -> RejectReason | None:
    rules = found.pop("rules", APART)
    running = found.pop("running", NO_TURN)
    assert isinstance(rules, BusyRules)
    assert isinstance(running, RunningTurnFacts)
    refuse = lanes.refusal("lane", arrival(**found), rules, running, now)
    return None if refuse is None else refuse.reason


def full(**found: object) -> FullLanes:
    lanes = FullLanes()
    lanes.note_refusal("lane", LaneLoad(**found) if found else FULL_LANE, NO_TURN, 0.0)
    return lanes


def test_a_lane_that_has_refused_a_message_refuses_the_next_one():
    assert refusals(full()) is RejectReason.QUEUE_FULL
    assert refusals(FullLanes()) is None
    busy = full(running=True)
    assert refusals(busy, rules=BusyRules(mode=BusyMode.REJECT)) is RejectReason.BUSY
    assert refusals(busy, rules=BusyRules(mode=BusyMode.REJECT), solo=True) is None


def test_a_message_that_the_lane_would_take_is_not_refused():
    assert refusals(full(), rules=BusyRules(max_queued=3, debounce=timedelta(0))) is None
    assert refusals(full(), running=RunningTurnFacts(can_steer=True)) is None


def test_where_room_was_made_as_many_go_on_as_there_is_room_for_and_no_more():
    lanes = full()
    lanes.note_change("lane", 1)
    assert refusals(lanes) is None
    lanes.count_coming("lane", 1)
    assert refusals(lanes) is RejectReason.QUEUE_FULL
    lanes.note_change("lane", 2)
    lanes.count_coming("lane", -1)
    assert refusals(lanes) is RejectReason.QUEUE_FULL
    lanes.note_change("lane", 0)
    assert "lane" not in lanes


def test_where_something_has_changed_a_message_that_might_join_another_is_let_through():
    lanes = full()
    lanes.note_change("lane", 2)
    assert refusals(lanes, rules=BusyRules(max_queued=2)) is None


def test_a_lane_is_looked_at_again_now_and_then_by_one_message():
    lanes = full()
    assert refusals(lanes, REFUSES_FOR_SECONDS * 0.9) is RejectReason.QUEUE_FULL
    looks = [refusals(lanes, REFUSES_FOR_SECONDS) for _ in range(3)]
    assert looks == [None, RejectReason.QUEUE_FULL, RejectReason.QUEUE_FULL]
    assert refusals(lanes, 2 * REFUSES_FOR_SECONDS) is None


def test_lanes_are_forgotten_when_there_are_too_many():
    lanes = full()
    for number in range(REMEMBERED_LANES):
        lanes.note_refusal(str(number), FULL_LANE, NO_TURN, 0.0)
    assert refusals(lanes) is None
    assert "0" in lanes


def test_owners_are_counted_only_while_it_is_crowded_and_for_as_long_as_they_come():
    owners = RecentOwners()
    assert not owners.is_crowded_for("ann", 0.0)
    assert len(owners) == 0
    owners.note_refusal(0.0)
    assert owners.is_crowded_for("ann", 0.0)
    assert owners.is_crowded_for("bob", 0.5)
    assert len(owners) == 2
    owners.note_refusal(0.2 + CROWDED_SECONDS)
    assert owners.is_crowded_for("bob", 0.3 + CROWDED_SECONDS)
    assert len(owners) == 1
    assert not owners.is_crowded_for("bob", 0.2 + 2 * CROWDED_SECONDS)


@pytest.mark.parametrize("seconds", [-1.0])
def test_a_loop_whose_time_went_back_asks_the_database(seconds: float):
    assert refusals(full(), seconds) is None
