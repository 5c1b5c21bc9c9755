"""Hints that may be lost, such as notices about messages that came in, sent at once and never repeated.

Nothing depends on a hint, and no hint keeps anybody waiting for long. Within a pause that the platform has
asked for, a hint is lost at once.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from anyio.abc import TaskGroup
from cachetools import LRUCache

from gateway_sessions._process.background import start_task_in
from gateway_sessions.adapters.protocol import Adapter
from gateway_sessions.core.delivery.outbound_messages import ReplyTarget
from gateway_sessions.core.notices.notice import notice_message
from gateway_sessions.core.notices.notice_texts import acknowledgement_notice, dropped_notice
from gateway_sessions.core.queue.busy_modes import BusyBook, BusyRules, Demotion, is_acknowledgement_due
from gateway_sessions.core.queue.inbound import (
    Accepted,
    Disposition,
    Duplicate,
    InboundMessage,
    Receipt,
    Rejected,
    RejectReason,
)
from gateway_sessions.errors import RateLimitedError, StoreStoppedError
from gateway_sessions.ports import Clock
from gateway_sessions.runtime.delivery.delivery import Delivery, Pauses
from gateway_sessions.runtime.observability.event_stream import EventKind, Events
from gateway_sessions.runtime.user_code import problem_within

logger: Final = logging.getLogger(__name__)

HINT: Final = timedelta(seconds=5)
"""The time that a platform may take for a hint, on which nothing depends."""
LANES: Final = 4096
"""The number of lanes of which it is remembered when their people got the last notice."""
AT_ONCE: Final = 64
"""The most notices that are sent at the same time; what comes beyond that is not said."""
_OF_REFUSALS: Final = BusyRules()
"""The rules that say how often people hear of refusals; one object, as most of a flood is told nothing."""


class Hints:
    """Asks platforms for what may be lost."""

    def __init__(self, clock: Clock, pauses: Pauses) -> None:
        self._clock = clock
        self.pauses = pauses

    async def call_platform(
        self, adapter: Adapter, target: ReplyTarget, call: Callable[[], Awaitable[object]]
    ) -> bool:
        """Make a call for that target; return whether it succeeded in time."""
        if self.pauses.time_left(target):
            return False
        problem = await problem_within(HINT, self._clock, lambda: self._note_pause_of(target, call))
        if problem is not None:
            facts = {"action": "hint_lost", "platform": adapter.platform, "account": adapter.name}
            logger.debug("a hint was lost", extra={**facts, "problem": problem})
        return problem is None

    async def _note_pause_of(self, target: ReplyTarget, call: Callable[[], Awaitable[object]]) -> None:
        try:
            await call()
        except RateLimitedError as error:
            self.pauses.begin_pause(target, error)
            raise


class ReceiptNotices:
    """Tells of receipts: listeners by events, and people through the adapter that brought their message."""

    def __init__(
        self,
        tasks: TaskGroup,
        clock: Clock,
        deliveries: Mapping[tuple[str, str], Delivery],
        hints: Hints,
        events: Events,
        busy: BusyBook,
    ) -> None:
        self._tasks = tasks
        self._clock = clock
        self._deliveries = deliveries
        self._hints = hints
        self._events = events
        self._busy = busy
        self._noticed_at: LRUCache[str, datetime] = LRUCache(LANES)
        self._under_way = 0

    def tell_of_receipt(self, message: InboundMessage, receipt: Receipt, *, solo: bool = False) -> None:
        """Emit the events of a receipt, and tell people at once what they do not see by themselves.

        A person who asked for a turn of its own (*solo*) gets the answer of the command instead.
        """
        match receipt:
            case Duplicate():
                self._events.emit(EventKind.MESSAGE_DUPLICATE, receipt.session_key, seq=receipt.seq)
            case Rejected():
                reason = str(receipt.reason)
                self._events.emit(EventKind.MESSAGE_REJECTED, receipt.session_key, reason=reason)
                if receipt.reason is not RejectReason.ERASED:
                    self._tell_refused(message, receipt)
            case Accepted():
                merged = receipt.merged_into is not None
                kind = EventKind.MESSAGE_MERGED if merged else EventKind.MESSAGE_ACCEPTED
                where = (receipt.session_key, receipt.session_id)
                self._events.emit(kind, *where, seq=receipt.seq, disposition=str(receipt.disposition))
                for seq in receipt.dropped:
                    self._events.emit(EventKind.MESSAGE_DROPPED, *where, seq=seq)
                if receipt.dropped or receipt.disposition is not Disposition.STARTS:
                    self._tell_accepted(message, receipt, solo=solo)

    def _tell_accepted(self, message: InboundMessage, receipt: Accepted, *, solo: bool) -> None:
        """Say what becomes of a message that is not answered at once, unless that was said just now."""
        if receipt.dropped:
            self._start_sending_notice(message, dropped_notice(len(receipt.dropped)))
        demotion = Demotion(receipt.demoted) if receipt.demoted is not None else None
        text = acknowledgement_notice(receipt.disposition, receipt.depth, demotion)
        rules = self._busy.rules_for(message.source.platform, message.source.chat_type)
        rules = replace(rules, acknowledge=False) if solo else rules
        if text is not None and self._is_notice_due(receipt.session_key, rules):
            self._start_sending_notice(message, text)

    def _tell_refused(self, message: InboundMessage, receipt: Rejected) -> None:
        who = receipt.session_key or f"{message.source.platform}:{message.source.chat_id}:{message.sender}"
        if self._is_notice_due(f"refused {who}", _OF_REFUSALS):
            self._start_sending_notice(message, receipt.text)

    def _is_notice_due(self, who: str, rules: BusyRules) -> bool:
        now = self._clock.now()
        if not is_acknowledgement_due(self._noticed_at.get(who), now, rules):
            return False
        self._noticed_at[who] = now
        return True

    def _start_sending_notice(self, message: InboundMessage, text: str) -> None:
        if message.internal or message.observed:  # nobody waits for an answer
            return
        delivery = self._deliveries.get((message.source.platform, message.account))
        if delivery is not None and self._under_way < AT_ONCE:
            with suppress(StoreStoppedError):  # then nobody is told, as with any hint that is lost
                start_task_in(self._tasks, "gateway", self._send_notice, delivery, message, text)
                self._under_way += 1

    async def _send_notice(self, delivery: Delivery, message: InboundMessage, text: str) -> None:
        adapter, target = delivery.adapter, ReplyTarget.answering(message)
        key = f"notice:{message.message_id}:{self._clock.now().timestamp()}"
        try:
            for number, part in enumerate(delivery.split_for_platform(notice_message(text), target)):
                part_key = f"{key}:{number}" if number else key
                say = partial(adapter.send, target, part, idempotency_key=part_key)
                if not await self._hints.call_platform(adapter, target, say):
                    break
        finally:
            self._under_way -= 1
