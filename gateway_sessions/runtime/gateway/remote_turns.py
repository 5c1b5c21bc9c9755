"""Signals to a running turn in this process or on another node: interrupt, roll back, steer.

What comes in on one node may stop a turn that runs on another, or be said into it. That is asked for by mail,
which is read within about a second. A turn that lost its lane is found out even if all mail is lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Collection, Iterable
from enum import StrEnum
from functools import partial
from typing import Final

import anyio
import msgspec

from gateway_sessions.core.queue.inbound import InboundMessage, stored_form
from gateway_sessions.core.queue.receipts import Accepted, Disposition
from gateway_sessions.errors import StorageCorruptError, StorageError, StoreStoppedError
from gateway_sessions.runtime.duties.cluster import Cluster
from gateway_sessions.runtime.gateway.running_turn import RunningTurn, StopReason
from gateway_sessions.runtime.gateway.scheduler import Lanes
from gateway_sessions.runtime.queue.ledger import Ledger
from gateway_sessions.storage.database import SessionDB
from gateway_sessions.storage.tables import nodes as verbs
from gateway_sessions.storage.tables.columns import from_json
from gateway_sessions.storage.tables.inbox import readable
from gateway_sessions.storage.tables.lanes import load_lane
from gateway_sessions.storage.tables.nodes import Mail

logger = logging.getLogger(__name__)

UNHEARD_SECONDS: Final = 15.0
"""As long as that, whoever has begun a turn may still be waiting to hear of it."""


class Letter(StrEnum):
    """What one node asks another to do with the turn that it runs."""

    INTERRUPT = "interrupt"  # end it; what it did stands
    ROLL_BACK = "roll_back"  # end it, and take it back
    STEER = "steer"  # give it a message that waits, and make that part of it
    TELL = "tell"  # tell it what one of its messages says now


_STOPS = {Letter.INTERRUPT: StopReason.MESSAGE, Letter.ROLL_BACK: StopReason.ROLLBACK}
_ASKED_BY = {
    Disposition.INTERRUPTS: Letter.INTERRUPT,
    Disposition.ROLLS_BACK: Letter.ROLL_BACK,
    Disposition.STEERS: Letter.STEER,
}


class _Said(msgspec.Struct):
    """What a letter brings."""

    payload: str = ""
    seq: int = 0


class Reach:
    """Does to running turns what people ask for, wherever they run."""

    def __init__(self, lanes: Lanes, ledger: Ledger, db: SessionDB, cluster: Cluster | None) -> None:
        self._lanes = lanes
        self._ledger = ledger
        self._unheard: dict[tuple[str, int], float] = {}
        """Turns of this node that nobody here has, and since when that was seen."""
        self._db = db
        self._cluster = cluster
        self._wanted = asyncio.Event()

    async def follow_up(self, message: InboundMessage, receipt: Accepted) -> None:
        """Do to the running turn what a message asks for that was taken in."""
        letter = _ASKED_BY.get(receipt.disposition)
        if letter is None:
            return
        running = self._lanes.running.get(receipt.session_key)
        if running is not None:
            await self._carry_out(letter, running, message, receipt.seq)
        else:
            await self._write(letter, receipt.session_key, message, receipt.seq)

    async def tell(self, session_key: str, message: InboundMessage) -> None:
        """Tell the turn of a lane what one of its messages says now; its agent need not listen."""
        if (running := self._lanes.running.get(session_key)) is not None:
            await running.hear(message)
        elif (turn := self._ledger.given_on(session_key)) is not None:
            turn.hear(message)  # it was given out, and is about to run
        else:
            await self._write(Letter.TELL, session_key, message)

    def look(self) -> None:
        """There may be mail."""
        self._wanted.set()

    async def run(self) -> None:
        """Read the mail whenever there may be some, until cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            try:
                await self.sweep()
            except StoreStoppedError:
                return
            except StorageError:
                logger.warning("mail could not be read", exc_info=True, extra={"action": "mail_failed"})

    async def sweep(self) -> int:
        """Find out which turns lost their lanes, and do what the others ask for; how much mail there was."""
        epoch, before = self._db.epoch, list(self._lanes.running.values())
        post = await self._db.read(partial(verbs.post_of, epoch))
        for one in before:
            if one.turn.held.epoch != epoch or (one.turn.session_key, one.turn.token) not in post.leases:
                self._lose(one)
        await self._take_back(post.leases)
        await self._read_all(post.mail)
        if post.mail:
            await self._db.write(partial(verbs.throw_away, epoch, post.mail_ids))
        return len(post.mail)

    async def _take_back(self, leases: Collection[tuple[str, int]]) -> None:
        """Let turns wait again that began in a commit of which nobody heard that it stands."""
        now = anyio.current_time()
        unknown = [one for one in leases if not self._ledger.knows(*one)]
        self._unheard = {one: self._unheard.get(one, now) for one in unknown}
        for lease, since in tuple(self._unheard.items()):
            if now - since >= UNHEARD_SECONDS:
                facts = {"action": "turn_taken_back", "session_key": lease[0], "token": lease[1]}
                logger.warning("a turn had begun without anybody hearing of it", extra=facts)
                await self._ledger.take_back(*lease)

    def _lose(self, running: RunningTurn) -> None:
        if self._lanes.running.get(running.turn.session_key) is running and not running.turn.ended:
            running.stop(StopReason.OVERTAKEN)

    async def _read_all(self, mail: Iterable[Mail]) -> None:
        """Each lane's in its order; an agent that is slow to take a message keeps no other lane waiting."""
        lanes: defaultdict[str, list[Mail]] = defaultdict(list)
        for one in mail:
            lanes[one.session_key].append(one)
        async with anyio.create_task_group() as tasks:
            for letters in lanes.values():
                tasks.start_soon(self._read_in_order, letters)

    async def _read_in_order(self, letters: Iterable[Mail]) -> None:
        for one in letters:
            await self._read(one)

    async def _read(self, mail: Mail) -> None:
        running = self._lanes.running.get(mail.session_key)
        if running is None or running.turn.token != mail.token or mail.kind not in set(Letter):
            return
        try:
            said = from_json("a letter", mail.body or "{}", _Said)
        except StorageCorruptError:  # it is thrown away like any other
            logger.exception("a letter could not be read", extra={"action": "mail_damaged"})
            return
        message = readable(mail.session_key, said.payload) if said.payload else None
        await self._carry_out(Letter(mail.kind), running, message, said.seq)

    async def _carry_out(
        self, letter: Letter, running: RunningTurn, message: InboundMessage | None, seq: int
    ) -> None:
        if (reason := _STOPS.get(letter)) is not None:
            running.stop(reason)
        elif message is not None and letter is Letter.STEER:
            await running.steer(message, seq)
        elif message is not None:
            await running.hear(message)

    async def _write(self, letter: Letter, session_key: str, message: InboundMessage, seq: int = 0) -> None:
        """Ask the node that runs the lane's turn."""
        if self._cluster is None:
            return
        lane = await self._db.read(partial(load_lane, session_key))
        if lane.lease_epoch is None or lane.lease_epoch == self._db.epoch:
            return
        brings = None if letter in _STOPS else msgspec.json.encode(_Said(stored_form(message), seq)).decode()
        mail = Mail(session_key=session_key, token=lane.lease_token, kind=str(letter), body=brings)
        await self._db.write(partial(verbs.send, lane.lease_epoch, mail, next(self._db.change_ids)))
        self._cluster.call(lane.lease_epoch)
