"""Growing replies on platforms that allow edits: throttled updates, and what follows a crash.

What is shown is a hint: nothing of it is promised. Whatever is said next is owed and sent like anything else,
and takes the place of what was shown; so nothing ever stands above what was said before it. If the reply goes
on growing after that, it does so in a new message.

Which message it grows in is written down once, as soon as the platform has it: after a kill the next try of
the turn goes on there. If no end comes to what was shown, the message says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import NamedTuple, Self

from gateway_sessions._process.failpoints import failpoint
from gateway_sessions.core.delivery.outbound_messages import GROWING, Growing, OutboundMessage, ReplyTarget
from gateway_sessions.core.notices.notice_texts import UNFINISHED
from gateway_sessions.ports import Clock
from gateway_sessions.runtime.delivery.delivery import Delivery
from gateway_sessions.runtime.delivery.notices import Hints
from gateway_sessions.runtime.queue.turn import Turn


class GrowingTurn(NamedTuple):
    """What a growing reply needs of its turn."""

    session_key: str
    """Its lane."""
    seq: int
    """Its place there: every try has the same."""
    kept: Growing | None
    """The message in which it has grown in an earlier try."""
    note: Callable[[Growing], Awaitable[object]]
    """Writes down which message it grows in."""
    is_trusted: Callable[[], bool]
    """Whether no other node can have taken the turn over, and shows its own try there."""

    @classmethod
    def of_turn(cls, turn: Turn, is_trusted: Callable[[], bool]) -> Self:
        """Return what is needed of that turn."""
        return cls(turn.session_key, turn.seq, turn.growing, turn.note_growing, is_trusted)


class Streaming:
    """Shows one growing reply, not more often than the platform likes."""

    def __init__(
        self, delivery: Delivery | None, hints: Hints, target: ReplyTarget, clock: Clock, turn: GrowingTurn
    ) -> None:
        able = delivery is not None and delivery.adapter.capabilities.edit
        self._delivery = delivery if able else None
        self._hints = hints
        self._target = target
        self._clock = clock
        self._turn = turn
        kept = turn.kept or Growing(number=0)
        self._message_id = kept.message_id if able else None
        """Of what is shown, if anything is."""
        self._number = kept.number + (self._message_id is None)
        """Of the message that grows, among those of this turn and its earlier tries."""
        self._noted = self._message_id is not None
        """Whether it is written down which message that is."""
        self._text: str | None = None
        """What this try has shown in it."""
        self._shown_at: datetime | None = None
        self._showing = asyncio.Lock()

    @property
    def last_grown(self) -> Growing:
        """What is to be known of messages in which nothing grows any more."""
        return Growing(number=self._number - 1)

    async def show(self, partial: str) -> None:
        """Show how the reply looks so far, unless that must wait or it is too long to be shown."""
        delivery, now = self._delivery, self._clock.now()
        if delivery is None or not partial.strip() or not delivery.adapter.capabilities.fits(partial):
            return
        if self._showing.locked() or self._must_wait(delivery, now) or not self._turn.is_trusted():
            return
        self._shown_at = now
        message = OutboundMessage(text=partial)
        async with self._showing:
            if not self._would_overtake_replies(
                delivery
            ):  # as something may have been said while this waited for it
                await self._hints.call_platform(
                    delivery.adapter, self._target, lambda: self._show_on_platform(delivery, message)
                )

    async def wait_until_shown(self) -> None:
        """Wait until nothing is on its way that would be shown; not for long, as that is a hint."""
        async with self._showing:
            return

    def replace_shown(self, messages: Sequence[OutboundMessage]) -> Sequence[OutboundMessage]:
        """What is said next, the first of it in the place of what is shown; what grows then is new."""
        if self._message_id is None or not messages:
            return messages
        first, *others = messages
        shown, self._message_id = self._message_id, None
        self._number += 1
        self._noted = False
        return [first.instead_of(shown), *others]

    def restore_shown(self, messages: Sequence[OutboundMessage]) -> None:
        """What was to be said next was not: whatever is said instead may have its place."""
        if self._message_id is None:
            self._message_id = next((one.replaces for one in messages), None)

    def unfinished_notice(self) -> Sequence[OutboundMessage]:
        """What people are told in the place of what is shown, if no end comes to that; nothing if none is."""
        if self._message_id is None:
            return ()
        if self._text is None:  # an earlier try has shown it, and nobody knows how far it came
            return self.replace_shown([OutboundMessage(text=UNFINISHED, is_notice=True)])
        return self.replace_shown([OutboundMessage(text=f"{self._text}\n\n{UNFINISHED}")])

    def _must_wait(self, delivery: Delivery, now: datetime) -> bool:
        if self._would_overtake_replies(delivery) or self._hints.pauses.left(self._target):
            return True
        interval = delivery.adapter.capabilities.min_edit_interval
        return self._shown_at is not None and now - self._shown_at < interval

    def _would_overtake_replies(self, delivery: Delivery) -> bool:
        return self._message_id is None and delivery.owes_lane(self._turn.session_key)

    async def _show_on_platform(self, delivery: Delivery, message: OutboundMessage) -> None:
        if self._message_id is not None:
            await delivery.adapter.edit(self._target, self._message_id, message)
            self._text = message.text
        elif not await self._send_growing_message(delivery, message):
            self._delivery = None  # without an id it could not be changed any more
            return
        if not self._noted:
            await self._turn.note(Growing(number=self._number, message_id=self._message_id))
            self._noted = True

    async def _send_growing_message(self, delivery: Delivery, message: OutboundMessage) -> bool:
        """Begin a message that can grow; whether the platform has told its id."""
        key = f"{GROWING}{self._turn.session_key}:{self._turn.seq}:{self._number}"
        self._message_id = await delivery.adapter.send(self._target, message, idempotency_key=key)
        self._text = message.text
        failpoint("growing_sent")
        return self._message_id is not None
