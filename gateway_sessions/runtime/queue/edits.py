"""Edits and deletions of messages, applied in the queue, the running turn and transcripts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from gateway_sessions.core.queue.inbound import InboundMessage, MessageKind
from gateway_sessions.core.queue.receipts import Accepted, Disposition, Receipt
from gateway_sessions.runtime.keyed_locks import KeyedLocks
from gateway_sessions.runtime.queue.ledger import Ledger
from gateway_sessions.storage.transactions.queue.edits import AppliedEdit


class Changes:
    """Carries out edits and deletions: in the queue, in the running turn, and in transcripts."""

    def __init__(
        self,
        ledger: Ledger,
        *,
        tell_running: Callable[[str, InboundMessage], Awaitable[object]],
        on_rewritten: Callable[[str], object],
    ) -> None:
        self._ledger = ledger
        self._tell_running = tell_running
        """Given the lane and the edit of what its running turn is about."""
        self._on_rewritten = on_rewritten
        """Given a lane whose transcript says something else now."""
        self._under_way = KeyedLocks()

    async def apply(self, message: InboundMessage) -> Receipt:
        """Carry a change out once; one of a message that nobody knows is refused.

        Changes of one message that come together are carried out in the order in which they came.
        """
        async with self._under_way.held(message.original_key):
            changed = await self._ledger.change_message(message)
            if not isinstance(changed, AppliedEdit):
                return changed
            if not changed.reworded.stands:
                await self._tell_of(message, changed)
        return Accepted(
            seq=changed.seq,
            session_key=changed.session_key,
            session_id=changed.session_id,
            disposition=Disposition.APPLIED,
        )

    async def _tell_of(self, message: InboundMessage, changed: AppliedEdit) -> None:
        """Let whoever works with what the message said know of it."""
        reworded = changed.reworded
        if reworded.running and message.kind is MessageKind.EDIT:
            await self._tell_running(reworded.session_key, message)
        self._on_rewritten(reworded.session_key)
