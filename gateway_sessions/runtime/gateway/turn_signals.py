"""Signals to a running turn in this process or on another node: interrupt, roll back, steer.

A message that comes in on one node may stop or steer a turn that runs on another node. The first node writes
a signal into the database, and the second one reads it within about a second. A turn that lost its lane is
found even if all signals are lost.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable
from enum import StrEnum
from functools import partial
from typing import Final

import anyio
import msgspec

from gateway_sessions.core.queue.inbound import Accepted, Disposition, InboundMessage, encode_message
from gateway_sessions.errors import StorageCorruptError
from gateway_sessions.ports import Clock
from gateway_sessions.runtime.alarm import Alarm
from gateway_sessions.runtime.duties.cluster import Cluster
from gateway_sessions.runtime.duty import failure_reporter, repeat_sweep
from gateway_sessions.runtime.gateway.running_turn import RunningTurn, StopReason
from gateway_sessions.runtime.gateway.scheduler import LaneScheduler
from gateway_sessions.runtime.queue.queue_operations import QueueOperations
from gateway_sessions.storage.database import SessionDB
from gateway_sessions.storage.tables import nodes as transactions
from gateway_sessions.storage.tables.column_decoding import decode_json
from gateway_sessions.storage.tables.lanes import decode_message_or_none, load_lane
from gateway_sessions.storage.tables.nodes import SignalRow

logger: Final = logging.getLogger(__name__)

UNHEARD_SECONDS: Final = 15.0
"""The time for which the begin of a turn may still be on its way to the task that asked for it."""


class Signal(StrEnum):
    """The request of one node to another about the turn that runs there."""

    INTERRUPT = "interrupt"  # end it; what it did stands
    ROLL_BACK = "roll_back"  # end it, and take it back
    STEER = "steer"  # give it a message that waits, and make that part of it
    TELL = "tell"  # tell it what one of its messages says now


_STOPS = {Signal.INTERRUPT: StopReason.MESSAGE, Signal.ROLL_BACK: StopReason.ROLLBACK}
_ASKED_BY = {
    Disposition.INTERRUPTS: Signal.INTERRUPT,
    Disposition.ROLLS_BACK: Signal.ROLL_BACK,
    Disposition.STEERS: Signal.STEER,
}


class _SignalBody(msgspec.Struct):
    """The body of a signal."""

    payload: str = ""
    seq: int = 0


class TurnSignals:
    """Applies new messages and edits to running turns, in this process or by signals."""

    def __init__(
        self,
        lanes: LaneScheduler,
        queue: QueueOperations,
        db: SessionDB,
        clock: Clock,
        cluster: Cluster | None,
    ) -> None:
        self._lanes = lanes
        self._queue = queue
        self._unheard: dict[tuple[str, int], float] = {}
        """By lane and token, leases of this node without a turn here, and since when that is so."""
        self._db = db
        self._cluster = cluster
        self._alarm = Alarm(clock)

    async def apply_to_running_turn(self, message: InboundMessage, receipt: Accepted) -> None:
        """Interrupt, roll back or steer the running turn, as the receipt of a message says."""
        signal = _ASKED_BY.get(receipt.disposition)
        if signal is None:
            return
        running = self._lanes.running.get(receipt.session_key)
        if running is not None:
            await self._apply_signal(signal, running, message, receipt.seq)
        else:
            await self._send_signal(signal, receipt.session_key, message, receipt.seq)

    async def tell_of_edit(self, session_key: str, message: InboundMessage) -> None:
        """Tell the turn of a lane of an edit of one of its messages; the agent may ignore it."""
        if (running := self._lanes.running.get(session_key)) is not None:
            await running.take_edit(message)
        elif (turn := self._queue.find_turn_on(session_key)) is not None:
            turn.apply_edit(message)  # it was claimed and is about to run
        else:
            await self._send_signal(Signal.TELL, session_key, message)

    def read_soon(self) -> None:
        """Read signals soon: there may be new ones."""
        self._alarm.ring()

    async def run(self) -> None:
        """Read signals whenever there may be new ones, until cancelled."""
        failed = failure_reporter(
            logger, "signals could not be read", {"action": "signals_failed"}, logging.WARNING
        )
        await self._wait_until_woken(None)
        await repeat_sweep(self.sweep, self._wait_until_woken, failed=failed)

    async def _wait_until_woken(self, _: int | None) -> None:
        await self._alarm.wait(None)
        self._alarm.reset()

    async def sweep(self) -> int:
        """Stop turns that lost their lanes, and obey signals of other nodes; return the number of signals."""
        epoch, before = self._db.ownership.epoch, list(self._lanes.running.values())
        post = await self._db.read(partial(transactions.signals_and_leases, epoch))
        for one in before:
            if one.turn.lease.epoch != epoch or (one.turn.session_key, one.turn.token) not in post.leases:
                self._stop_lost_turn(one)
        await self._take_back_unheard(post.leases)
        await self._obey_all(post.signals)
        if post.signals:
            await self._db.write(partial(transactions.remove_signals, epoch, post.signal_ids))
        return len(post.signals)

    async def _take_back_unheard(self, leases: Collection[tuple[str, int]]) -> None:
        """Release turns whose begin was committed without anybody hearing of it; they wait again."""
        now = anyio.current_time()
        unknown = [one for one in leases if not self._queue.has_turn(*one)]
        self._unheard = {one: self._unheard.get(one, now) for one in unknown}
        for lease, since in tuple(self._unheard.items()):
            if now - since >= UNHEARD_SECONDS:
                facts = {"action": "turn_taken_back", "session_key": lease[0], "token": lease[1]}
                logger.warning("a turn had begun without anybody hearing of it", extra=facts)
                await self._queue.give_turn_back(*lease)

    def _stop_lost_turn(self, running: RunningTurn) -> None:
        if self._lanes.running.get(running.turn.session_key) is running and not running.turn.ended:
            running.stop(StopReason.OVERTAKEN)

    async def _obey_all(self, signals: Iterable[SignalRow]) -> None:
        """Obey the signals of each lane in order, and of all lanes at once: a slow agent delays one lane."""
        lanes: defaultdict[str, list[SignalRow]] = defaultdict(list)
        for one in signals:
            lanes[one.session_key].append(one)
        async with anyio.create_task_group() as tasks:
            for of_lane in lanes.values():
                tasks.start_soon(self._obey_in_order, of_lane)

    async def _obey_in_order(self, of_lane: Iterable[SignalRow]) -> None:
        for one in of_lane:
            await self._obey_signal(one)

    async def _obey_signal(self, signals: SignalRow) -> None:
        running = self._lanes.running.get(signals.session_key)
        if running is None or running.turn.token != signals.token or signals.kind not in set(Signal):
            return
        try:
            said = decode_json("a signal", signals.body or "{}", _SignalBody)
        except StorageCorruptError:  # the signal is removed like any other
            logger.exception("a signal could not be read", extra={"action": "signal_damaged"})
            return
        message = decode_message_or_none(signals.session_key, said.payload) if said.payload else None
        await self._apply_signal(Signal(signals.kind), running, message, said.seq)

    async def _apply_signal(
        self, signal: Signal, running: RunningTurn, message: InboundMessage | None, seq: int
    ) -> None:
        if (reason := _STOPS.get(signal)) is not None:
            running.stop(reason)
        elif message is not None and signal is Signal.STEER:
            await running.steer(message, seq)
        elif message is not None:
            await running.take_edit(message)

    async def _send_signal(
        self, signal: Signal, session_key: str, message: InboundMessage, seq: int = 0
    ) -> None:
        """Write a signal for the node that runs the lane's turn."""
        if self._cluster is None:
            return
        lane = await self._db.read(partial(load_lane, session_key))
        if lane.lease_epoch is None or lane.lease_epoch == self._db.ownership.epoch:
            return
        brings = (
            None
            if signal in _STOPS
            else msgspec.json.encode(_SignalBody(encode_message(message), seq)).decode()
        )
        signals = SignalRow(session_key=session_key, token=lane.lease_token, kind=str(signal), body=brings)
        await self._db.write(
            partial(transactions.add_signal, lane.lease_epoch, signals, next(self._db.ownership.change_ids))
        )
        self._cluster.call_nodes(lane.lease_epoch)
