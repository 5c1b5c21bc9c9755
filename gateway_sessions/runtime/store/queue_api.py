"""Methods of `SessionStore` for the queue: enqueue, claim, list, cancel, move, requeue dead letters."""

from __future__ import annotations

from functools import partial
from typing import Final

from gateway_sessions.core.identity.row_ids import parse_row_id
from gateway_sessions.core.queue.busy_modes import BusyRules
from gateway_sessions.core.queue.inbound import InboundMessage, MessageKind, Receipt
from gateway_sessions.core.queue.items import DeadLetter, QueuedMessage
from gateway_sessions.runtime.queue.admission import LocalLane
from gateway_sessions.runtime.queue.turn import Turn
from gateway_sessions.runtime.store.open_store import OpenStore
from gateway_sessions.runtime.user_code import check_message
from gateway_sessions.storage.transactions.queue import outbox, waiting
from gateway_sessions.storage.transactions.queue.admit import NO_TURN, RunningTurnFacts
from gateway_sessions.storage.transactions.queue.outbox import OwedReply
from gateway_sessions.storage.transactions.queue.waiting import Overtaken

PAGE: Final = 100


class QueueMethods(OpenStore):
    """Methods of `SessionStore` for messages that wait: taken in once, given out one turn at a time."""

    async def enqueue(
        self,
        message: InboundMessage,
        *,
        rules: BusyRules | None = None,
        solo: bool = False,
        running: RunningTurnFacts = NO_TURN,
    ) -> Receipt:
        """Take a message in: after `Accepted` it is durable, and will be turned or kept as a dead letter.

        An edit or a deletion is carried out at once, wherever the message is by now that it changes.
        *solo* gives it a turn of its own, whatever comes after it. *running* says what only the caller knows
        of the turn that runs on the lane.
        """
        check_message(message)
        if message.kind is not MessageKind.NEW:
            return await self._parts.edits.carry_out(message)
        here = LocalLane(running=lambda: running)
        receipt, _ = await self._parts.queue.enqueue(message, rules, solo=solo, here=here)
        return receipt

    async def claim(self, session_key: str | None = None) -> Turn | None:
        """Claim the next turn of a lane, or of the longest waiting lane; None if no turn may begin now.

        Use it with `async with`, and end it with `commit`. Until then nobody else writes to the session.
        """
        return await self._parts.queue.claim(session_key)

    async def stop_turn(self, session_key: str, *, by: str = "person") -> Overtaken:
        """End the lane's turn and empty its queue; what the turn still writes is refused."""
        return await self._parts.queue.stop_turn(session_key, by=by)

    async def queue_depth(self, session_key: str) -> int:
        """Return the number of turns that wait on a lane."""
        return await self._read(partial(waiting.count_waiting, session_key))

    async def list_queued(self, session_key: str) -> list[QueuedMessage]:
        """Return all messages that wait or run on a lane, in the order of its turns."""
        return await self._read(partial(waiting.list_queue, session_key))

    async def cancel_queued(self, session_key: str, seq: int, *, by: str = "person") -> int:
        """Take a waiting message out, with what became part of its turn; return the number of messages."""
        cancel = partial(waiting.cancel_message, session_key, seq, by)
        return await self._parts.queue.rearrange(session_key, cancel)

    async def clear_queue(self, session_key: str, *, by: str = "person") -> int:
        """Take all waiting messages out; return their number. A running turn goes on."""
        clear = partial(waiting.clear_queue, session_key, by)
        return await self._parts.queue.rearrange(session_key, clear)

    async def move_queued(self, session_key: str, seq: int, to: int) -> list[int]:
        """Let a waiting turn begin as the *to*-th, counted from 1; return the new order."""
        return await self._parts.queue.rearrange(
            session_key, lambda _: waiting.move_turn(session_key, seq, to)
        )

    async def dead_letters(self, *, limit: int = PAGE, before: int | None = None) -> list[DeadLetter]:
        """Return messages whose turns failed for good, newest first; *before* is the last id of a page."""
        return await self._read(partial(waiting.dead_letters, limit, before or waiting.FIRST))

    async def requeue(self, item_id: int | str) -> str:
        """Let a dead letter wait again, behind all that waits; return its lane."""
        transaction = partial(waiting.requeue_dead_letter, parse_row_id("item_id", item_id))
        lane = await self._parts.queue.apply(transaction)
        self._parts.queue.note_lane(lane)
        return lane.session_key

    async def dead_replies(self, *, limit: int = PAGE, before: int | None = None) -> list[OwedReply]:
        """Return replies that were given up, newest first; *before* is the last id of a page."""
        return await self._parts.queue.read(partial(outbox.dead_replies, limit, before or outbox.FIRST))

    async def retry_reply(self, reply_id: int | str) -> None:
        """Let a reply that was given up be sent again; a gateway that runs is told with `look_again`."""
        found = parse_row_id("reply_id", reply_id)
        await self._parts.queue.apply(lambda change: outbox.revive_reply(found, change.now))
