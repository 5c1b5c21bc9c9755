"""A reply that grows before people's eyes, on platforms where a message can be changed.

What is shown is a hint: nothing of it is promised. The reply itself is owed and sent like any other, in the
place of what was shown.
"""

from __future__ import annotations

from datetime import datetime

from gateway_sessions.adapters.port import Adapter
from gateway_sessions.core.outbound import OutboundMessage, ReplyTarget
from gateway_sessions.ports import Clock
from gateway_sessions.runtime.hints import hint


class Streaming:
    """Shows one growing reply, not more often than the platform likes."""

    def __init__(self, adapter: Adapter | None, target: ReplyTarget, key: str, clock: Clock) -> None:
        able = adapter is not None and adapter.capabilities.edit
        self._adapter = adapter if able else None
        self._target = target
        self._key = key
        self._clock = clock
        self._shown_at: datetime | None = None
        self.message_id: str | None = None
        """Of what is shown, if anything is."""

    async def show(self, partial: str) -> None:
        """Show how the reply looks so far, unless it was shown just now or is too long to be shown."""
        adapter, now = self._adapter, self._clock.now()
        if adapter is None or not partial.strip() or not adapter.capabilities.fits(partial):
            return
        if self._shown_at is not None and now - self._shown_at < adapter.capabilities.min_edit_interval:
            return
        self._shown_at = now
        message = OutboundMessage(text=partial)
        await hint(adapter, self._clock, lambda: self._show(adapter, message))

    async def _show(self, adapter: Adapter, message: OutboundMessage) -> None:
        if self.message_id is None:
            self.message_id = await adapter.send(self._target, message, idempotency_key=self._key)
            if self.message_id is None:
                self._adapter = None  # without an id it could not be changed any more
        else:
            await adapter.edit(self._target, self.message_id, message)
