"""A reply that grows before people's eyes, on platforms where a message can be changed.

What is shown is a hint: nothing of it is promised. Whatever is said next is owed and sent like anything else,
and takes the place of what was shown; so nothing ever stands above what was said before it. If the reply goes
on growing after that, it does so in a new message.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime

from gateway_sessions.core.outbound import GROWING, OutboundMessage, ReplyTarget
from gateway_sessions.ports import Clock
from gateway_sessions.runtime.delivery import Delivery
from gateway_sessions.runtime.hints import hint


class Streaming:
    """Shows one growing reply, not more often than the platform likes."""

    def __init__(
        self, delivery: Delivery | None, target: ReplyTarget, clock: Clock, *, session_key: str, token: int
    ) -> None:
        able = delivery is not None and delivery.adapter.capabilities.edit
        self._delivery = delivery if able else None
        self._target = target
        self._clock = clock
        self._session_key = session_key
        self._token = token
        self._number = 1
        """Of the message that grows, among those of this turn."""
        self._shown_at: datetime | None = None
        self._showing = asyncio.Lock()
        self._message_id: str | None = None
        """Of what is shown, if anything is."""

    async def show(self, partial: str) -> None:
        """Show how the reply looks so far, unless that must wait or it is too long to be shown."""
        delivery, now = self._delivery, self._clock.now()
        if delivery is None or not partial.strip() or not delivery.adapter.capabilities.fits(partial):
            return
        if self._showing.locked() or self._too_early(delivery, now):
            return
        self._shown_at = now
        message = OutboundMessage(text=partial)
        async with self._showing:
            if not self._would_overtake(delivery):  # as something may have been said while this waited for it
                await hint(delivery.adapter, self._clock, lambda: self._show(delivery, message))

    async def settled(self) -> None:
        """Wait until nothing is on its way that would be shown; not for long, as that is a hint."""
        async with self._showing:
            return

    def followed_by(self, messages: Sequence[OutboundMessage]) -> Sequence[OutboundMessage]:
        """What is said next, the first of it in the place of what is shown; what grows then is new."""
        if self._message_id is None or not messages:
            return messages
        first, *others = messages
        shown, self._message_id = self._message_id, None
        self._number += 1
        return [first.instead_of(shown), *others]

    def not_followed_by(self, messages: Sequence[OutboundMessage]) -> None:
        """What was to be said next was not: whatever is said instead may have its place."""
        if self._message_id is None:
            self._message_id = next((one.replaces for one in messages), None)

    def _too_early(self, delivery: Delivery, now: datetime) -> bool:
        if self._would_overtake(delivery):
            return True
        interval = delivery.adapter.capabilities.min_edit_interval
        return self._shown_at is not None and now - self._shown_at < interval

    def _would_overtake(self, delivery: Delivery) -> bool:
        return self._message_id is None and delivery.owes(self._session_key)

    async def _show(self, delivery: Delivery, message: OutboundMessage) -> None:
        if self._message_id is not None:
            await delivery.adapter.edit(self._target, self._message_id, message)
            return
        key = f"{GROWING}{self._session_key}:{self._token}:{self._number}"
        self._message_id = await delivery.adapter.send(self._target, message, idempotency_key=key)
        if self._message_id is None:
            self._delivery = None  # without an id it could not be changed any more
