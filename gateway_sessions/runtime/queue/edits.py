"""Edits and deletions of messages, applied in the queue, the running turn and transcripts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, NamedTuple

from gateway_sessions.core.queue.inbound import (
    Accepted,
    Disposition,
    Duplicate,
    InboundMessage,
    MessageKind,
    Receipt,
    Rejected,
    RejectReason,
)
from gateway_sessions.errors import SentBeforeErasureError
from gateway_sessions.ports import Transaction
from gateway_sessions.runtime.keyed_locks import KeyedLocks
from gateway_sessions.runtime.queue.admission import QueueLimits, encode_within_limits, make_rejection
from gateway_sessions.runtime.queue.routing import Routing
from gateway_sessions.runtime.queue.waiting import WaitingTurns
from gateway_sessions.storage.tables.change import Change
from gateway_sessions.storage.transactions.queue import edits as transactions
from gateway_sessions.storage.transactions.queue.admit import MessageRefusedError
from gateway_sessions.storage.transactions.queue.edits import AppliedEdit
from gateway_sessions.storage.transactions.sessions.find_or_create import AliasesUnknown, SessionRequest


async def _tell_no_turn(session_key: str, edit: InboundMessage) -> None:
    """Do nothing: a turn without a gateway finds the edit in the transcript."""


class EditListener(NamedTuple):
    """Hears of edits that concern a running turn or a warm agent."""

    tell_running: Callable[[str, InboundMessage], Awaitable[object]] = _tell_no_turn
    """Is given a lane and the edit of a message of its running turn."""
    on_rewritten: Callable[[str], object] = lambda _: None
    """Is given a lane whose transcript says something else now."""


NO_LISTENER: Final = EditListener()


class MessageEdits:
    """Carries out edits and deletions, wherever the message is by now that they change."""

    def __init__(self, waiting: WaitingTurns, routing: Routing, limits: QueueLimits) -> None:
        self._waiting = waiting
        self._routing = routing
        self._limits = limits
        self._under_way = KeyedLocks()

    async def carry_out(self, edit: InboundMessage, listener: EditListener = NO_LISTENER) -> Receipt:
        """Carry out an edit once; an edit of a message that nobody knows is refused.

        Edits of one message that come together are carried out in the order in which they came.
        """
        async with self._under_way.hold(edit.original_key):
            applied = await self._write(edit)
            if not isinstance(applied, AppliedEdit):
                return applied
            if not applied.reworded.stands:
                await _tell(listener, edit, applied)
        return Accepted(
            seq=applied.seq,
            session_key=applied.session_key,
            session_id=applied.session_id,
            disposition=Disposition.APPLIED,
        )

    async def _write(self, edit: InboundMessage) -> AppliedEdit | Duplicate | Rejected:
        payload = encode_within_limits(edit, self._limits)
        if isinstance(payload, Rejected):
            return payload
        routed = await self._routing.route_message(edit.source, touched=False)
        transaction: Callable[[SessionRequest, Change], Transaction[AppliedEdit | Duplicate | AliasesUnknown]]
        transaction = partial(transactions.apply_edit, edit)
        try:
            applied: AppliedEdit | Duplicate = await self._routing.run_until_answered(routed, transaction)
        except MessageRefusedError as refusal:
            return make_rejection(refusal.reason, refusal.retry_after, refusal.session_key)
        except SentBeforeErasureError:
            return make_rejection(RejectReason.ERASED, None, routed.key)
        if isinstance(applied, AppliedEdit):
            for lane in (applied.reworded.lane, applied.lane):
                if lane is not None:
                    self._waiting.note_lane(lane)
            if applied.reworded.lane is not None:
                self._waiting.announce_taken_out()
        return applied


async def _tell(listener: EditListener, edit: InboundMessage, applied: AppliedEdit) -> None:
    reworded = applied.reworded
    if reworded.running and edit.kind is MessageKind.EDIT:
        await listener.tell_running(reworded.session_key, edit)
    listener.on_rewritten(reworded.session_key)
