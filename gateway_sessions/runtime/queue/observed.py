"""`ObservedTalk`: keeps what people say to each other in a room, for the agent's next turn there."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from gateway_sessions.core.identity.keys import is_room_owner
from gateway_sessions.core.queue.inbound import (
    Accepted,
    Disposition,
    Duplicate,
    InboundMessage,
    Receipt,
    RejectReason,
    Speakers,
)
from gateway_sessions.errors import SentBeforeErasureError
from gateway_sessions.ports import Transaction
from gateway_sessions.runtime.queue.admission import QueueLimits, find_unfitness, make_rejection
from gateway_sessions.runtime.queue.routing import Routing
from gateway_sessions.runtime.queue.waiting import WaitingTurns
from gateway_sessions.storage.tables.change import Change
from gateway_sessions.storage.transactions.queue.admit import ObservedMessage, observe
from gateway_sessions.storage.transactions.sessions.find_or_create import (
    ActiveWorkUnknown,
    AliasesUnknown,
    SessionIdTaken,
    SessionRequest,
)

logger: Final = logging.getLogger(__name__)


class ObservedTalk:
    """Stores observed messages in the transcript of the session that would answer them.

    None of them begins a turn, joins one or stops one, or keeps a session alive; a session that is due ends
    before one of them, as before any message, so that the next turn has it in its own session.
    """

    def __init__(
        self, waiting: WaitingTurns, routing: Routing, limits: QueueLimits, speakers: Speakers
    ) -> None:
        self._waiting = waiting
        self._routing = routing
        self._limits = limits
        self._speakers = speakers
        self._has_warned = False

    async def keep(self, message: InboundMessage) -> Receipt:
        """Store a message once."""
        if (refused := find_unfitness(message, self._limits)) is not None:
            return refused
        routed = await self._routing.route_message(message.source, touched=False)
        named = self._speakers.with_speaker_names(message, routed.key, routed.aliases)
        transaction: Callable[
            [SessionRequest, Change],
            Transaction[ObservedMessage | Duplicate | ActiveWorkUnknown | AliasesUnknown | SessionIdTaken],
        ] = partial(observe, named)
        try:
            kept: ObservedMessage | Duplicate = await self._routing.run_until_answered(routed, transaction)
        except SentBeforeErasureError:
            return make_rejection(RejectReason.ERASED, None, routed.key)
        if isinstance(kept, Duplicate):
            self._waiting.known_events.remember(message.idempotency_key, kept.seq, kept.session_key)
            return kept
        entry = kept.entry
        self._waiting.known_events.remember(message.idempotency_key, kept.seq, entry.session_key)
        self._routing.remember_entry(entry)
        self._waiting.note_lane(kept.lane, entry.owner)
        self._warn_if_apart(entry.session_key, entry.owner)
        return Accepted(
            seq=kept.seq,
            session_key=entry.session_key,
            session_id=entry.session_id,
            disposition=Disposition.OBSERVED,
            depth=kept.lane.waiting,
        )

    def _warn_if_apart(self, session_key: str, owner: str) -> None:
        """Say once that nobody else's session has what a person says in a room."""
        if self._has_warned or is_room_owner(owner):
            return
        self._has_warned = True
        logger.warning(
            "what people say in a group is observed, but each has a session of their own there: "
            "with group_sessions_per_user: false they share one",
            extra={"action": "observed_apart", "lane": session_key},
        )
