"""Refusing costs less than answering: what is counted is work, so it is the same on a busy machine.

No statement reaches the database for a message that is refused, except one now and then that looks whether
the lane is still full; and nobody is refused for what somebody else has written.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from gateway_sessions import Config
from gateway_sessions.core.queue.busy_modes import BusyRules
from gateway_sessions.core.queue.inbound import Accepted, Duplicate, Receipt, Rejected, RejectReason
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.ports import Transaction
from gateway_sessions.runtime.agents.turn_context import TurnContext
from gateway_sessions.runtime.queue.admission import REFUSES_FOR_SECONDS
from gateway_sessions.storage.database import SessionDB
from gateway_sessions.storage.engines.sqlite.worker import TransactionDrive
from gateway_sessions.storage.transactions.queue.admit import MessageRefusedError
from gateway_sessions.testing.agents import Gate
from tests.integration.gateway.gateway_harness import QUICK, GatewayHarness, echo, open_harness, wait_until

FLOOD = 200
LOOK = 2
"""What one look may ask of the database, which finds out whether a lane is still full."""
MAX_QUEUED = 4


def strict(*, mode: BusyMode = BusyMode.QUEUE, **gateway: int) -> Config:
    rules = BusyRules(mode=mode, debounce=timedelta(0), max_queued=MAX_QUEUED, acknowledge=False)
    return replace(QUICK, busy=rules, gateway=replace(QUICK.gateway, **gateway))


@contextmanager
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Count what the database is asked."""
    count: Counter[str] = Counter()
    for method in ("read", "write", "change"):
        real = getattr(SessionDB, method)

        def counted(db: SessionDB, what: object, real: object = real, method: str = method) -> object:
            count[method] += 1
            assert callable(real)
            return real(db, what)

        monkeypatch.setattr(SessionDB, method, counted)
    yield count
    monkeypatch.undo()


async def flood(harness: GatewayHarness, person: str, times: int = FLOOD) -> list[Receipt]:
    """So many messages of somebody, all at the same moment."""
    said = (harness.platform.says(person, f"{n}", message_id=f"{person}{n}") for n in range(times))
    return await asyncio.gather(*said)


def refused(receipts: list[Receipt], reason: RejectReason) -> int:
    """How many were refused, each for that reason and with a time after which another try makes sense."""
    rejected = [one for one in receipts if isinstance(one, Rejected)]
    assert {one.reason for one in rejected} <= {reason}
    assert all(one.retry_after and one.retry_after > 0 for one in rejected)
    return len(rejected)


def at_the_gate(gate: Gate) -> object:
    async def agent(turn: TurnContext) -> str:
        await gate.passage()
        return turn.text

    return agent


@pytest.mark.parametrize(
    ("config", "reason", "takes"),
    [
        (strict(), RejectReason.QUEUE_FULL, 1 + MAX_QUEUED),
        (strict(mode=BusyMode.REJECT), RejectReason.BUSY, 1),
        (strict(max_waiting=3), RejectReason.OVERLOADED, 1 + 3),
        (strict(max_waiting_per_owner=2), RejectReason.OVERLOADED, 1 + 2),
    ],
    ids=["queue_full", "busy", "overloaded", "overloaded by one"],
)
async def test_a_flood_that_is_refused_asks_nothing_of_the_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: Config, reason: RejectReason, takes: int
):
    gate = Gate()
    async with open_harness(tmp_path, config, agent=at_the_gate(gate)) as harness:
        first = await flood(harness, "eve")
        assert FLOOD - refused(first, reason) == takes, gate.open()
        loop = asyncio.get_running_loop()
        with asked(monkeypatch) as count:
            begun = loop.time()
            again = await asyncio.gather(*(harness.platform.says("eve", "more") for _ in range(FLOOD)))
            looks = 1 + (loop.time() - begun) / REFUSES_FOR_SECONDS
        gate.open()
        assert refused(list(again), reason) == FLOOD
        assert count.total() <= LOOK * looks, count
        await harness.wait_until_idle()
        assert isinstance(await harness.platform.says("eve", "at last"), Accepted)


async def test_a_message_that_the_database_refuses_has_written_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Else all that shares its transaction would have to be undone and done again, one savepoint for each."""
    gate, wrote = Gate(), list[bool]()
    real = TransactionDrive.drive

    def drive(run: TransactionDrive, transaction: Transaction[object]) -> object:
        try:
            return real(run, transaction)
        except MessageRefusedError:
            wrote.append(run.wrote)
            raise

    async with open_harness(tmp_path, strict(), agent=at_the_gate(gate)) as harness:
        assert isinstance(await harness.platform.says("eve", "first"), Accepted)
        monkeypatch.setattr(TransactionDrive, "drive", drive)
        # Several are on their way at once, and each finds that those before it have touched the session.
        receipts = await flood(harness, "eve")
        monkeypatch.undo()
        gate.open()
        assert refused(receipts, RejectReason.QUEUE_FULL) == FLOOD - MAX_QUEUED
        assert wrote
        assert not any(wrote)
        await harness.wait_until_idle()


async def test_a_message_that_was_taken_in_is_known_however_often_it_comes_into_a_flood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    gate = Gate()
    config = strict()
    async with open_harness(tmp_path, config, agent=at_the_gate(gate)) as harness:
        taken = {f"eve{n}" for n, one in enumerate(await flood(harness, "eve")) if isinstance(one, Accepted)}
        with asked(monkeypatch) as count:
            again = [await harness.platform.says("eve", "x", message_id=f"eve{n}") for n in range(20)]
        known = {f"eve{n}" for n, one in enumerate(again) if isinstance(one, Duplicate)}
        assert known == taken & {f"eve{n}" for n in range(20)}
        assert count.total() <= 4 * LOOK, count
        gate.open()
        await harness.wait_until_idle()


async def test_what_waited_when_the_process_ended_is_known_to_the_next_one_before_it_refuses(tmp_path: Path):
    gate = Gate()
    async with open_harness(tmp_path, strict(), agent=at_the_gate(gate)) as harness:
        receipts = await flood(harness, "eve", 20)
        taken = [f"eve{n}" for n, one in enumerate(receipts) if isinstance(one, Accepted)]
        key = harness.key("eve")
        assert await harness.gateway.drain(timedelta(0)) is False
    async with open_harness(tmp_path, strict(max_waiting=1), agent=at_the_gate(gate)) as harness:
        receipts = [await harness.platform.says("eve", "x", message_id=one) for one in taken]
        assert [type(one) for one in receipts] == [Duplicate] * len(taken)
        assert {one.session_key for one in receipts if isinstance(one, Duplicate)} == {key}
        gate.open()
        await harness.wait_until_idle()


async def test_beside_a_flood_nobody_else_is_refused_and_each_has_a_turn_at_once(tmp_path: Path):
    gate = Gate()

    async def agent(turn: TurnContext) -> str:
        if turn.messages[0].source.chat_id == "eve":
            await gate.passage()
        return turn.text

    people = [f"p{number}" for number in range(20)]

    def answered(harness: GatewayHarness, times: int) -> bool:
        """Whether each was told so often, and no turn of theirs runs: a message would not have to wait."""
        return all(harness.platform.shown(one).count(one) == times for one in people) and not any(
            harness.gateway.running_turn(harness.key(one)) for one in people
        )

    async with open_harness(tmp_path, strict(max_waiting=10), agent=agent) as harness:
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(flood(harness, "eve"))
                for number in range(1, 4):
                    asks = [harness.platform.says(one, one) for one in people]
                    assert refused(await asyncio.gather(*asks), RejectReason.OVERLOADED) == 0
                    await wait_until(lambda number=number: answered(harness, number), seconds=60)
        finally:
            gate.open()  # else a failure would hang in the end of the gateway, where nobody sees it
        await harness.wait_until_idle()


async def test_nobody_starves_among_people_who_come_back_at_once(tmp_path: Path):
    """Four times as many as there is room for: whoever was answered and whoever was refused comes again."""
    people = [f"p{number}" for number in range(24)]
    async with open_harness(tmp_path, strict(max_turns=2, max_waiting=6), agent=echo) as harness:
        answered: Counter[str] = Counter()

        async def keeps_coming(person: str) -> None:
            while answered.total() < 24 * 25:
                if isinstance(await harness.platform.says(person, "x"), Accepted):
                    answered[person] += 1
                harness.clock.step(timedelta(milliseconds=1))  # else the lanes would all be ready at once
                await asyncio.sleep(0)

        async with asyncio.TaskGroup() as tasks:
            for person in people:
                tasks.create_task(keeps_coming(person))
        await harness.wait_until_idle()
        fewest, most = min(answered[one] for one in people), max(answered.values())
        # Shares of this few turns are uneven by chance; how equal they are is measured by the benchmark.
        assert fewest >= 25 / 5, answered
        assert most <= 3 * 25, answered
