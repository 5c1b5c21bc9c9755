"""What people who wrote agents, examples and guides stumbled over."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import anyio

from gateway_sessions import SessionDB, SessionStore, TurnContext
from gateway_sessions.adapters import InboundMessage, OutboundMessage, ReplyTarget
from gateway_sessions.core.delivery import DeliveryRules
from gateway_sessions.ports import Verb
from gateway_sessions.runtime.delivery import Delivery, Patience
from gateway_sessions.storage.verbs.outbox import Owed
from gateway_sessions.testing import FakeClock, FakePlatform
from gateway_sessions.testing.scripted_agent import Gate
from tests.integration.gateway.house import QUICK, open_house

T = TypeVar("T")


async def echo(turn: TurnContext) -> str:
    return f"you said: {turn.text}"


async def test_a_reset_is_told_although_the_agent_reports_no_usage(tmp_path: Path):
    async with open_house(tmp_path, agent=echo) as house:
        await house.platform.says("ann", "hello")
        await house.clock.advance(days=2)
        await house.platform.says("ann", "are you there?")
        await house.settles()
        notice, answer = house.platform.sent[-2:]
        assert notice.message.is_notice
        assert "/undo-reset brings the one before back" in notice.text
        assert answer.text == "you said: are you there?"


class SlowReads:
    """The truth, from which answers to reads come late while they are held back."""

    def __init__(self, truth: SessionDB) -> None:
        self._truth = truth
        self.gate: Gate | None = None

    async def read(self, verb: Callable[[], Verb[T]]) -> T:
        found = await self._truth.read(verb)
        if self.gate is not None:
            await self.gate.passage()
        return found

    async def write(self, verb: Callable[[], Verb[T]]) -> T:
        return await self._truth.write(verb)


async def test_a_reply_that_was_sent_while_others_were_looked_for_is_sent_once(tmp_path: Path):
    clock = FakeClock()
    platform = FakePlatform(clock=clock)
    patience = Patience(rules=DeliveryRules(), timeout=timedelta(seconds=30))
    async with SessionStore.open(tmp_path, QUICK, clock=clock) as store, anyio.create_task_group() as tasks:
        truth = SlowReads(store.db)
        delivery = Delivery(truth, platform, clock, patience, lambda *_: None)
        tasks.start_soon(delivery.run)
        await platform.settles()
        message = InboundMessage(source=platform.source("ann"), text="hello")
        await store.enqueue(message)
        turn = await store.claim()
        assert turn is not None
        owed = Owed(
            target=ReplyTarget.answering(message),
            message=OutboundMessage(text="hi"),
            owner=turn.entry.owner,
            under_way=delivery.expect(turn.session_key),
        )
        assert owed.under_way
        ended = await turn.commit([{"role": "assistant", "content": "hi"}], replies=[owed])
        truth.gate = Gate()
        tasks.start_soon(delivery.sweep)
        await truth.gate.reached()
        delivery.owed(turn.session_key, turn.entry.session_id, [owed], ended.reply_ids)
        await platform.settles()
        truth.gate.open()
        await platform.settles()
        assert platform.shown("ann") == ["hi"]
        tasks.cancel_scope.cancel()
