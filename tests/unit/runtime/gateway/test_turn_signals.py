import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgspec

from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.queue.inbound import InboundMessage, encode_message
from gateway_sessions.runtime.gateway.running_turn import StopReason
from gateway_sessions.runtime.gateway.turn_signals import Signal, TurnSignals
from gateway_sessions.storage.tables.nodes import SignalRow, SignalsAndLeases
from gateway_sessions.testing import FakeClock

KEY, OTHER = "agent:main:telegram:dm:ann", "agent:main:telegram:dm:bob"


class Database:
    """Has that post, once."""

    ownership = SimpleNamespace(epoch=7)

    def __init__(self, *signals: SignalRow) -> None:
        self.signals = list(enumerate(signals, 1))
        self.thrown_away = 0

    async def read(self, _transaction: Callable[[], object]) -> SignalsAndLeases:
        return SignalsAndLeases(
            signals=tuple(one for _, one in self.signals),
            signal_ids=tuple(at for at, _ in self.signals),
            leases=frozenset({(KEY, 3), (OTHER, 3)}),
        )

    async def write(self, _transaction: Callable[[], object]) -> None:
        self.thrown_away, self.signals = len(self.signals), []


class Running:
    """A turn of this node."""

    def __init__(self, session_key: str = KEY) -> None:
        self.turn = SimpleNamespace(
            session_key=session_key,
            token=3,
            lease=Database.ownership,
            ended=False,
        )
        self.stopped: list[StopReason] = []
        self.told: list[str] = []
        self.takes = asyncio.Event()

    def stop(self, reason: StopReason) -> None:
        self.stopped.append(reason)
        self.takes.set()

    async def steer(self, message: InboundMessage, _seq: int | None) -> None:
        self.told.append(message.text)
        await self.takes.wait()


async def test_a_signal_that_cannot_be_read_is_thrown_away_and_the_next_one_is_read():
    """A node of another version may have written it: it must not end the gateway."""
    database = Database(
        SignalRow(session_key=KEY, token=3, kind=Signal.STEER, body="{"),
        SignalRow(session_key=KEY, token=3, kind="of tomorrow", body=None),
        SignalRow(session_key=KEY, token=3, kind=Signal.INTERRUPT, body=None),
    )
    running = Running()
    lanes: Any = SimpleNamespace(running={KEY: running})
    ledger: Any = SimpleNamespace(has_turn=lambda *_: True)
    db: Any = database
    assert await TurnSignals(lanes, ledger, db, FakeClock(), None).sweep() == 3
    assert running.stopped == [StopReason.MESSAGE]
    assert database.thrown_away == 3


def signal_about(text: str) -> str:
    message = InboundMessage(source=SessionSource(platform="telegram", chat_id="ann"), text=text)
    return msgspec.json.encode({"payload": encode_message(message), "seq": 2}).decode()


async def test_an_agent_that_is_slow_to_take_a_message_keeps_no_other_lane_waiting():
    source = SessionSource(platform="telegram", chat_id="ann")
    first, second = (
        msgspec.json.encode(
            {"payload": encode_message(InboundMessage(source=source, text=text)), "seq": 2}
        ).decode()
        for text in ("one", "two")
    )
    slow, other = Running(), Running(OTHER)
    other.takes = slow.takes  # it takes the message only once the other one was stopped
    database = Database(
        SignalRow(session_key=KEY, token=3, kind=Signal.STEER, body=first),
        SignalRow(session_key=KEY, token=3, kind=Signal.STEER, body=second),
        SignalRow(session_key=OTHER, token=3, kind=Signal.INTERRUPT, body=None),
    )
    lanes: Any = SimpleNamespace(running={KEY: slow, OTHER: other})
    ledger: Any = SimpleNamespace(has_turn=lambda *_: True)
    db: Any = database
    async with asyncio.timeout(15):
        assert await TurnSignals(lanes, ledger, db, FakeClock(), None).sweep() == 3
    assert other.stopped == [StopReason.MESSAGE]
    assert slow.told == ["one", "two"]
