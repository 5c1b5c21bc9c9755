"""Replies are sent once, in order, although the database answers late, fails, or loses a connection."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import anyio

from gateway_sessions import SessionDB, SessionStore
from gateway_sessions.adapters import InboundMessage, OutboundMessage, ReplyTarget
from gateway_sessions.core.delivery.retry_policy import DeliveryRules
from gateway_sessions.errors import StorageUnavailableError
from gateway_sessions.ports import Transaction
from gateway_sessions.runtime.delivery.delivery import Delivery, Patience
from gateway_sessions.runtime.observability.event_stream import Events
from gateway_sessions.storage.transactions.queue.outbox import Owed
from gateway_sessions.testing import FakeClock, FakePlatform
from gateway_sessions.testing.agents import Gate
from tests.integration.gateway.gateway_harness import QUICK

T = TypeVar("T")


class FailingDatabase:
    """A database whose answers can be held back, and whose writes can fail."""

    def __init__(self, truth: SessionDB) -> None:
        self._truth = truth
        self.gate: Gate | None = None
        self.failures = 0
        self.before_writes = truth.before_writes
        self.ownership = truth.ownership
        self.unheard = 0
        """The number of next writes that are committed, and whose answers are lost."""

    async def read(self, transaction: Callable[[], Transaction[T]]) -> T:
        found = await self._truth.read(transaction)
        if self.gate is not None:
            await self.gate.passage()
        return found

    async def write(self, transaction: Callable[[], Transaction[T]]) -> T:
        if self.failures:
            self.failures -= 1
            raise StorageUnavailableError("sessions.db", "a disk that fails now and then")
        written = await self._truth.write(transaction)
        if self.unheard:
            self.unheard -= 1
            raise StorageUnavailableError("sessions.db", "a connection that was lost during the commit")
        return written

    def begin_write(self, transaction: Callable[[], Transaction[T]]) -> Awaitable[T]:
        return self.write(transaction)


class DeliveryBench:
    """A delivery, and turns that owe replies to one person."""

    def __init__(
        self, store: SessionStore, database: FailingDatabase, clock: FakeClock, *, alone: bool = True
    ) -> None:
        self.platform = FakePlatform(clock=clock)
        patience = Patience(rules=DeliveryRules(), timeout=timedelta(seconds=30))
        self.delivery = Delivery(database, self.platform, clock, patience, Events(clock), alone=alone)
        self._store = store

    async def commits(self, text: str, *, tells: bool = True) -> Callable[[], None]:
        """End a turn that owes a reply, which is handed over by calling what is returned.

        Unless it *tells*, that is somebody else's turn, of whom the delivery knows nothing.
        """
        message = InboundMessage(source=self.platform.source("ann"), text="hello")
        await self._store.enqueue(message)
        turn = await self._store.claim()
        assert turn is not None
        key, entry = turn.session_key, turn.entry
        owed = Owed(
            target=ReplyTarget.answering(message),
            message=OutboundMessage(text=text),
            owner=entry.owner,
            under_way=tells and self.delivery.expect_commit(key),
        )
        ended = await turn.commit([{"role": "assistant", "content": text}], replies=[owed])
        return lambda: self.delivery.note_commit(key, entry.session_id, [owed], ended.reply_ids)


async def test_a_reply_that_was_sent_while_others_were_looked_for_is_sent_once(tmp_path: Path):
    clock = FakeClock()
    async with SessionStore.open(tmp_path, QUICK, clock=clock) as store, anyio.create_task_group() as tasks:
        truth = FailingDatabase(store.db)
        execution = DeliveryBench(store, truth, clock)
        tasks.start_soon(execution.delivery.run)
        await execution.platform.wait_until_idle()
        hand_over = await execution.commits("hi")
        truth.gate = Gate()
        tasks.start_soon(execution.delivery.sweep)
        await truth.gate.reached()
        hand_over()
        await execution.platform.wait_until_idle()
        truth.gate.open()
        await execution.platform.wait_until_idle()
        assert execution.platform.shown("ann") == ["hi"]
        tasks.cancel_scope.cancel()


async def test_replies_that_somebody_else_owed_are_sent_one_after_the_other(tmp_path: Path):
    clock = FakeClock()
    async with SessionStore.open(tmp_path, QUICK, clock=clock) as store, anyio.create_task_group() as tasks:
        execution = DeliveryBench(store, FailingDatabase(store.db), clock)
        tasks.start_soon(execution.delivery.run)
        await execution.platform.wait_until_idle()
        for text in ("one", "two", "three"):
            await execution.commits(text, tells=False)
        execution.delivery.check_soon()
        await execution.platform.wait_until_idle()
        assert execution.platform.shown("ann") == ["one", "two", "three"]
        tasks.cancel_scope.cancel()


async def test_a_reply_is_sent_although_nobody_heard_that_it_is_marked_as_being_sent(tmp_path: Path):
    clock = FakeClock()
    async with SessionStore.open(tmp_path, QUICK, clock=clock) as store, anyio.create_task_group() as tasks:
        truth = FailingDatabase(store.db)
        execution = DeliveryBench(store, truth, clock, alone=False)  # so it is marked by a commit of its own
        tasks.start_soon(execution.delivery.run)
        await execution.platform.wait_until_idle()
        truth.unheard = 1
        (await execution.commits("hi"))()
        await execution.platform.wait_until_idle()
        await clock.advance(seconds=10)
        assert execution.platform.shown("ann") == ["hi"]
        tasks.cancel_scope.cancel()


async def test_a_reply_whose_fate_cannot_be_noted_for_a_while_is_sent_once_and_does_not_hold_its_lane(
    tmp_path: Path,
):
    clock = FakeClock()
    async with SessionStore.open(tmp_path, QUICK, clock=clock) as store, anyio.create_task_group() as tasks:
        truth = FailingDatabase(store.db)
        execution = DeliveryBench(store, truth, clock)
        tasks.start_soon(execution.delivery.run)
        await execution.platform.wait_until_idle()
        truth.failures = 3
        for text in ("one", "two"):
            (await execution.commits(text))()
            await execution.platform.wait_until_idle()
        assert execution.platform.shown("ann") == ["one", "two"]
        assert not execution.delivery.is_idle
        await clock.advance(seconds=10)
        assert execution.platform.shown("ann") == ["one", "two"]
        assert execution.delivery.is_idle
        tasks.cancel_scope.cancel()
