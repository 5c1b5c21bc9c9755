"""What people are told at once about what became of their message: hints that may be lost, and never many."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Final

from anyio.abc import TaskGroup
from cachetools import LRUCache

from gateway_sessions.adapters.protocol import Adapter
from gateway_sessions.core.busy import BusyRules, Demotion, acknowledge_due
from gateway_sessions.core.busy_notices import acknowledgement, dropped_notice
from gateway_sessions.core.inbound import InboundMessage
from gateway_sessions.core.outbound import OutboundMessage, ReplyTarget
from gateway_sessions.core.receipts import Accepted, Rejected
from gateway_sessions.errors import StoreStoppedError
from gateway_sessions.ports import Clock
from gateway_sessions.runtime.hints import Hints
from gateway_sessions.runtime.open_calls import start_in

LANES: Final = 4096
"""Of so many it is remembered when they were last told something."""
AT_ONCE: Final = 64
"""No more hints than this are under way; what comes beyond that is not said."""
_OF_REFUSALS: Final = BusyRules()
"""How often refusals are told; made once, as most of a flood is told nothing."""


class Notices:
    """Tells people, through the adapter that brought their message."""

    def __init__(
        self, tasks: TaskGroup, clock: Clock, adapters: Mapping[tuple[str, str], Adapter], hints: Hints
    ) -> None:
        self._tasks = tasks
        self._hints = hints
        self._clock = clock
        self._adapters = adapters
        self._told: LRUCache[str, datetime] = LRUCache(LANES)
        self._under_way = 0

    def accepted(self, message: InboundMessage, receipt: Accepted, rules: BusyRules) -> None:
        """Say what becomes of a message that is not answered at once, unless that was said just now."""
        if receipt.dropped:
            self._tell(message, dropped_notice(len(receipt.dropped)))
        demotion = Demotion(receipt.demoted) if receipt.demoted is not None else None
        text = acknowledgement(receipt.disposition, receipt.depth, demotion)
        if text is not None and self._is_due(receipt.session_key, rules):
            self._tell(message, text)

    def refused(self, message: InboundMessage, receipt: Rejected) -> None:
        """Say that a message was not taken."""
        who = receipt.session_key or f"{message.source.platform}:{message.source.chat_id}:{message.sender}"
        if self._is_due(f"refused {who}", _OF_REFUSALS):
            self._tell(message, receipt.text)

    def _is_due(self, who: str, rules: BusyRules) -> bool:
        now = self._clock.now()
        if not acknowledge_due(self._told.get(who), now, rules):
            return False
        self._told[who] = now
        return True

    def _tell(self, message: InboundMessage, text: str) -> None:
        adapter = self._adapters.get((message.source.platform, message.account))
        if adapter is not None and self._under_way < AT_ONCE:
            with suppress(StoreStoppedError):  # then nobody is told, as with any hint that is lost
                start_in(self._tasks, "gateway", self._send, adapter, message, text)
                self._under_way += 1

    async def _send(self, adapter: Adapter, message: InboundMessage, text: str) -> None:
        target = ReplyTarget.answering(message)
        notice = OutboundMessage(text=text, is_notice=True)
        key = f"notice:{message.message_id}:{self._clock.now().timestamp()}"
        try:
            say = partial(adapter.send, target, notice, idempotency_key=key)
            await self._hints.give(adapter, target, say)
        finally:
            self._under_way -= 1
