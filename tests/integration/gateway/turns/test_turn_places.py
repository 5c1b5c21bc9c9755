"""Places for turns: whoever has waited longest for one has it with the commit that ends another turn."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from gateway_sessions import Config, SessionStore
from gateway_sessions.core.queue.inbound import Accepted, InboundMessage
from gateway_sessions.ports import Transaction
from gateway_sessions.runtime.agents.turn_context import TurnContext
from gateway_sessions.runtime.gateway.gateway_listener import GatewayListener
from gateway_sessions.runtime.gateway.scheduler import LaneScheduler
from gateway_sessions.runtime.gateway.turn_signals import TurnSignals
from gateway_sessions.runtime.queue.turn import Turn
from gateway_sessions.storage.engines.sqlite.worker import TransactionDrive
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.agents import Gate
from gateway_sessions.testing.fake_platform import FakePlatform
from gateway_sessions.testing.inside import queue_of
from tests.integration.gateway.gateway_harness import QUICK, open_harness, wait_until
from tests.raw_sql import execute_sql

PEOPLE = [f"p{number}" for number in range(12)]


def places(most: int, **gateway: int) -> Config:
    return replace(QUICK, gateway=replace(QUICK.gateway, max_turns=most, **gateway))


async def test_whoever_waits_for_a_place_begins_with_the_commit_that_ends_another_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    gate, begun, transactions = Gate(), list[str](), list[list[str]]()
    real = TransactionDrive.drive

    async def agent(turn: TurnContext) -> str:
        begun.append(turn.text)
        await gate.passage()
        return turn.text

    def drive(run: TransactionDrive, transaction: Transaction[object]) -> object:
        names: list[str] = []
        transactions.append(names)
        return real(run, _noted(transaction, names))

    async with open_harness(tmp_path, places(2), agent=agent) as harness:
        for person in PEOPLE:
            assert isinstance(await harness.platform.says(person, person), Accepted)
            harness.clock.step(timedelta(milliseconds=1))
        monkeypatch.setattr(TransactionDrive, "drive", drive)
        gate.open()
        await harness.wait_until_idle()
        monkeypatch.undo()
    assert begun == PEOPLE
    taken = [names for names in transactions if "take_item" in names]
    with_an_end = [names for names in taken if any(one.startswith("settle_turn") for one in names)]
    assert len(taken) == len(PEOPLE) - 2
    # Now and then a turn ends before it is known who waits longest.
    assert len(with_an_end) >= len(taken) / 2, taken


def _noted(transaction: Transaction[object], names: list[str]) -> Transaction[object]:
    try:
        statement = next(transaction)
        while True:
            names += [one.name for one in statement.parts or (statement,)]
            statement = transaction.send((yield statement))
    except StopIteration as stop:
        return stop.value


async def test_a_damaged_lane_that_waits_for_a_place_keeps_no_turn_from_its_end(tmp_path: Path):
    clock, gate = FakeClock(), Gate()
    platform = FakePlatform(clock=clock)
    async with SessionStore.open(tmp_path, QUICK, clock=clock) as store:
        for person in ("zoe", "ann", "bob"):
            message = InboundMessage(source=platform.source(person), text=f"from {person}", message_id=person)
            await store.enqueue(message)
            clock.step(seconds=1)
    execute_sql(tmp_path / "sessions.db", "UPDATE entries SET record = '{' WHERE session_key LIKE '%ann'")

    async def agent(turn: TurnContext) -> str:
        await gate.passage()
        return turn.text

    async with open_harness(tmp_path, places(1), clock=clock, platform=platform, agent=agent) as harness:
        await gate.reached()
        gate.open()
        await harness.wait_until_idle()
        assert platform.shown() == ["from zoe", "from bob"]
        assert await harness.outcomes("zoe") == {"turned": 1}
        assert await harness.outcomes("ann") == {"open": 1}


async def test_nobody_has_more_places_than_one_owner_may_have_when_turns_follow_others(tmp_path: Path):
    runs, most = Counter[str](), Counter[str]()

    async def agent(turn: TurnContext) -> str:
        person = turn.source.user_id or ""
        runs[person] += 1
        most[person] = max(most[person], runs[person])
        await asyncio.sleep(0)
        runs[person] -= 1
        return "ok"

    async with open_harness(tmp_path, places(4, max_turns_per_owner=2), agent=agent) as harness:
        async with asyncio.TaskGroup() as tasks:
            for number in range(20):
                tasks.create_task(harness.platform.says("flooder", "hello", thread=f"t{number}"))
                tasks.create_task(harness.platform.says(f"p{number}", "hello"))
        await harness.wait_until_idle()
        assert most["flooder"] == 2
        assert len(harness.platform.shown()) == 40


@pytest.fixture
async def lanes(tmp_path: Path):
    clock = FakeClock()
    async with SessionStore.open(tmp_path, QUICK, clock=clock) as store:
        begun: list[Turn] = []
        lanes = LaneScheduler(
            queue_of(store),
            clock,
            max_turns=1,
            max_turns_per_owner=1,
            start=begun.append,
        )
        turn_signals = TurnSignals(lanes, queue_of(store), store.db, clock, None)
        queue_of(store).attach_listener(GatewayListener(lanes, (), turn_signals, None, wants_versions=True))
        task = asyncio.create_task(lanes.run())
        yield store, lanes, begun
        task.cancel()


async def test_a_place_that_was_kept_and_not_used_is_given_to_whoever_waits(
    lanes: tuple[SessionStore, LaneScheduler, list[Turn]],
):
    store, places_of, begun = lanes
    bob = FakePlatform().source("bob")
    with places_of.reserve_place("ann") as free:
        assert free
        await store.enqueue(InboundMessage(source=bob, text="hello", message_id="m1"))
        for _ in range(10):  # until it was seen that there is no place for it
            await asyncio.sleep(0)
            await places_of.sweep()
        assert begun == []
    await wait_until(lambda: begun)
    assert begun[0].messages[0].text == "hello"
    await begun[0].release()


async def test_those_in_line_who_gave_up_keep_no_place_from_whoever_came_later(
    lanes: tuple[SessionStore, LaneScheduler, list[Turn]],
):
    store, places_of, begun = lanes
    platform = FakePlatform()
    with places_of.reserve_place("ann"):
        for person in ("bob", "carl"):
            message = InboundMessage(source=platform.source(person), text=person, message_id=person)
            await store.enqueue(message)
            for _ in range(10):
                await asyncio.sleep(0)
                await places_of.sweep()
            if person == "bob":
                await store.stop_turn(store.key_for(platform.source("bob")))
    await wait_until(lambda: begun)
    assert begun[0].messages[0].text == "carl"
    await begun[0].release()


async def test_a_place_for_which_nobody_waits_any_more_is_free_for_whoever_comes(
    lanes: tuple[SessionStore, LaneScheduler, list[Turn]],
):
    _, places_of, _ = lanes
    with places_of.reserve_place("ann") as first, places_of.reserve_place("bob") as second:
        assert (first, second) == (True, False)
    with places_of.reserve_place("carl") as third:
        assert third


async def test_who_gives_up_while_the_turn_is_claimed_leaves_the_place_to_the_next_in_line(
    lanes: tuple[SessionStore, LaneScheduler, list[Turn]], monkeypatch: pytest.MonkeyPatch
):
    store, places_of, begun = lanes
    platform = FakePlatform()
    claim = queue_of(store).claim

    async def claim_too_late(session_key: str | None = None) -> Turn | None:
        if session_key == store.key_for(platform.source("bob")):
            await store.stop_turn(session_key)
        return await claim(session_key)

    with places_of.reserve_place("ann"):
        for person in ("bob", "carl", "dora"):
            message = InboundMessage(source=platform.source(person), text=person, message_id=person)
            await store.enqueue(message)
        monkeypatch.setattr(queue_of(store), "claim", claim_too_late)
    await wait_until(lambda: begun)
    assert begun[0].messages[0].text == "carl"
    await begun[0].release()
