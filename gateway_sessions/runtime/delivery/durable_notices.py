"""Durable notices: owed in the same transaction as the message or command that they are about."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.core.queue.inbound import InboundMessage
from gateway_sessions.ports import Transaction
from gateway_sessions.runtime.delivery.delivery import Delivery, expecting_replies
from gateway_sessions.runtime.queue.queue_operations import QueueOperations
from gateway_sessions.storage.tables.change import Change
from gateway_sessions.storage.transactions.queue.outbox import Owed


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """The person who gets a notice, and the message that it answers."""

    message: InboundMessage
    session_key: str
    owner: str
    seq: int


class DurableNotices:
    """Owes people notices of the gateway."""

    def __init__(self, queue: QueueOperations, deliveries: Mapping[tuple[str, str], Delivery]) -> None:
        self._queue = queue
        self._deliveries = deliveries

    async def owe(
        self,
        asker: Asker,
        text: str | None,
        transaction: Callable[[Sequence[Owed], Change], Transaction[tuple[int, ...]]],
    ) -> None:
        """Run a transaction that owes the notice, or none for None; the notice is sent after the commit."""
        message, target = asker.message, ReplyTarget.answering(asker.message)
        texts = [] if text is None else [OutboundMessage(text=text, is_notice=True)]
        notices = [Owed(target=target, message=one, owner=asker.owner, seq=asker.seq) for one in texts]
        delivery = self._deliveries.get((message.source.platform, message.account))
        with expecting_replies(delivery, asker.session_key, notices) as owed:
            ids = await self._queue.apply(lambda change: transaction(owed.replies, change))
            owed.note_committed(ids, None)
