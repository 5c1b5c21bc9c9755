"""Durable notices: owed in the same transaction as the message or command that they are about."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.core.queue.inbound import InboundMessage
from gateway_sessions.ports import Transaction
from gateway_sessions.runtime.delivery.delivery import Delivery
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
        source, key = asker.message.source, asker.session_key
        delivery = self._deliveries.get((source.platform, asker.message.account))
        if delivery is None or text is None:
            messages = [] if text is None else [OutboundMessage(text=text, is_notice=True)]
            owed = [_owed_notice(asker, one) for one in messages]
            await self._queue.apply(lambda change: transaction(owed, change))
            return
        parts = delivery.split_for_platform(OutboundMessage(text=text, is_notice=True))
        follows = delivery.expect_commit(key)
        owed = [_owed_notice(asker, one, under_way=follows and not at) for at, one in enumerate(parts)]
        ids: tuple[int, ...] = ()
        try:
            ids = await self._queue.apply(lambda change: transaction(owed, change))
        finally:
            delivery.note_commit(key, None, owed if ids else (), ids)


def _owed_notice(asker: Asker, message: OutboundMessage, *, under_way: bool = False) -> Owed:
    return Owed(
        target=ReplyTarget.answering(asker.message),
        message=message,
        owner=asker.owner,
        seq=asker.seq,
        under_way=under_way,
    )
