"""Notices that may be lost, such as acknowledgements, sent at once through the adapter of a message.

What people are told at once about what became of their message: hints that may be lost, and never many.

What a platform is asked for that may be lost: nothing depends on it, and nobody waits long for it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from anyio.abc import TaskGroup
from cachetools import LRUCache

from gateway_sessions.adapters.protocol import Adapter
from gateway_sessions.core.delivery.outbound import OutboundMessage, ReplyTarget
from gateway_sessions.core.notices.notice_texts import acknowledgement, dropped_notice
from gateway_sessions.core.queue.busy_modes import BusyRules, Demotion, acknowledge_due
from gateway_sessions.core.queue.inbound import InboundMessage
from gateway_sessions.core.queue.receipts import Accepted, Rejected
from gateway_sessions.errors import RateLimitedError, StoreStoppedError
from gateway_sessions.ports import Clock
from gateway_sessions.runtime.delivery.pauses import Pauses
from gateway_sessions.runtime.open_calls import start_in
from gateway_sessions.runtime.user_code import problem_within

logger: Final = logging.getLogger(__name__)

HINT: Final = timedelta(seconds=5)
"""How long a platform may take for what nothing depends on."""


class Hints:
    """Asks platforms for what may be lost; within a pause that one has asked for, it is lost at once."""

    def __init__(self, clock: Clock, pauses: Pauses) -> None:
        self._clock = clock
        self.pauses = pauses

    async def give(
        self, adapter: Adapter, target: ReplyTarget, call: Callable[[], Awaitable[object]]
    ) -> bool:
        """Ask for something at that place; whether it went well."""
        if self.pauses.left(target):
            return False
        problem = await problem_within(HINT, self._clock, lambda: self._minding(target, call))
        if problem is not None:
            facts = {"action": "hint_lost", "platform": adapter.platform, "account": adapter.name}
            logger.debug("a hint was lost", extra={**facts, "problem": problem})
        return problem is None

    async def _minding(self, target: ReplyTarget, call: Callable[[], Awaitable[object]]) -> None:
        try:
            await call()
        except RateLimitedError as error:
            self.pauses.note(target, error)
            raise


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
