"""Growing replies on platforms that allow edits: throttled updates, and what follows a crash.

Where a platform has drafts, the reply grows in one, and is sent as a message of its own in the end.

A growing message is a hint that may be lost. The next message of the turn is owed and sent like any other,
and replaces the growing message; so no message ever stands above an earlier one. If the reply grows on after
that, it grows in a new message.

The id of the growing message is written down once, as soon as the platform has told it; after a kill, the
next try of the turn goes on in the same message. A growing message that gets no end says so in its text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from functools import cached_property
from typing import NamedTuple, Self

from gateway_sessions._process.failpoints import failpoint
from gateway_sessions.adapters.protocol import DraftingAdapter
from gateway_sessions.core.delivery.outbound_messages import Growing, OutboundMessage, ReplyTarget, TextFormat
from gateway_sessions.core.notices.notice import notice_message
from gateway_sessions.core.notices.notice_texts import UNFINISHED
from gateway_sessions.errors import DeliveryRefusedError
from gateway_sessions.ports import Clock
from gateway_sessions.runtime.delivery.delivery import Delivery
from gateway_sessions.runtime.delivery.receipt_notices import Hints
from gateway_sessions.runtime.queue.turn import Turn


class GrowingTurn(NamedTuple):
    """The facts and functions of a turn that its growing reply needs."""

    session_key: str
    """The lane."""
    seq: int
    """The turn's place on its lane, which all tries share."""
    kept: Growing | None
    """The message in which the reply grew in an earlier try."""
    note: Callable[[Growing], Awaitable[object]]
    """Writes down in which message the reply grows."""
    is_trusted: Callable[[], bool]
    """Returns whether no other node can have taken over the turn, and show its own try."""

    @classmethod
    def of_turn(cls, turn: Turn, is_trusted: Callable[[], bool]) -> Self:
        """Return what a growing reply needs of that turn."""
        return cls(turn.session_key, turn.seq, turn.growing, turn.note_growing, is_trusted)


def _drafts_of(delivery: Delivery | None, target: ReplyTarget) -> DraftingAdapter | None:
    """Return the adapter if it shows drafts there; None if replies grow as messages."""
    if delivery is None or not isinstance(adapter := delivery.adapter, DraftingAdapter):
        return None
    return adapter if adapter.can_draft(target) else None


class Streaming:
    """Shows one growing reply, as often as the platform allows."""

    def __init__(
        self, delivery: Delivery | None, hints: Hints, target: ReplyTarget, clock: Clock, turn: GrowingTurn
    ) -> None:
        self._edits: bool = delivery is not None and delivery.adapter.capabilities.edit
        self._delivery = delivery
        self._hints = hints
        self._target = target
        self._clock = clock
        self._turn = turn
        kept = turn.kept or Growing(number=0)
        self._message_id = kept.message_id if self._edits else None
        """The id of the growing message; None if none is shown."""
        self._number = kept.number + (self._message_id is None)
        """The number of the growing message, among all of this turn and its earlier tries."""
        self._noted = self._message_id is not None
        """Whether the id is written down."""
        self._shown: OutboundMessage | None = None
        """What this try has shown in the growing message, as the agent gave it."""
        self._shown_at: datetime | None = None
        self._showing = asyncio.Lock()

    @property
    def last_grown(self) -> Growing:
        """The record that no message grows any more, up to the last number."""
        return Growing(number=self._number - 1)

    @cached_property
    def _drafts(self) -> DraftingAdapter | None:
        """The adapter, where replies grow as drafts; a message that has begun to grow goes on growing."""
        return _drafts_of(self._delivery, self._target) if self._turn.kept is None else None

    async def show(self, partial: str, text_format: TextFormat) -> None:
        """Show how the reply looks so far, unless that must wait or it is too long to be shown."""
        delivery, now = self._delivery, self._clock.now()
        if delivery is None or not partial.strip() or not delivery.adapter.capabilities.fits(partial):
            return
        if not self._edits and self._drafts is None:
            return
        if self._showing.locked() or self._must_wait(delivery, now) or not self._turn.is_trusted():
            return
        message = OutboundMessage(text=partial, format=text_format)
        shown = message
        if text_format is TextFormat.MARKDOWN:
            shown, *more = delivery.split_for_platform(message, self._target)
            if more:
                return
        self._shown_at = now
        async with self._showing:
            if not self._would_overtake_replies(delivery):  # a message may have been sent meanwhile
                await self._hints.call_platform(
                    delivery.adapter, self._target, lambda: self._show_on_platform(delivery, shown, message)
                )

    async def wait_until_shown(self) -> None:
        """Wait until no update is on its way to the platform; that is short, because an update is a hint."""
        async with self._showing:
            return

    def replace_shown(self, messages: Sequence[OutboundMessage]) -> Sequence[OutboundMessage]:
        """Return the messages to send next, of which the first replaces the growing message."""
        if self._message_id is None or not messages:
            return messages
        first, *others = messages
        shown, self._message_id = self._message_id, None
        self._number += 1
        self._noted = False
        return [first.instead_of(shown), *others]

    def restore_shown(self, messages: Sequence[OutboundMessage]) -> None:
        """Let other messages replace the growing message, because these were not sent."""
        if self._message_id is None:
            self._message_id = next((one.replaces for one in messages), None)

    def unfinished_notice(self) -> Sequence[OutboundMessage]:
        """Return the message that ends a growing message without its end; none if none is shown."""
        if self._message_id is None:
            return ()
        if self._shown is None:  # shown by an earlier try, whose text is not known
            return self.replace_shown([notice_message(UNFINISHED)])
        end = notice_message(UNFINISHED)
        if self._delivery is not None:
            end = self._delivery.word_for_people(end, self._target)
        return self.replace_shown([self._shown.with_text(f"{self._shown.text}\n\n{end.text}")])

    def _must_wait(self, delivery: Delivery, now: datetime) -> bool:
        if self._would_overtake_replies(delivery) or self._hints.pauses.time_left(self._target):
            return True
        interval = delivery.adapter.capabilities.min_edit_interval
        return self._shown_at is not None and now - self._shown_at < interval

    def _would_overtake_replies(self, delivery: Delivery) -> bool:
        return self._message_id is None and delivery.owes_lane(self._turn.session_key)

    async def _show_on_platform(
        self, delivery: Delivery, message: OutboundMessage, given: OutboundMessage
    ) -> None:
        """Show a message, which is what the agent has *given* in the platform's markup."""
        if self._drafts is not None:
            key = delivery.growing_key(self._turn.session_key, self._turn.seq, self._number)
            try:
                await self._drafts.draft(self._target, message, key=key)
            except DeliveryRefusedError:
                self._drafts = None  # then the reply grows as a message, if it can
                raise
            return
        if self._message_id is not None:
            await delivery.adapter.edit(self._target, self._message_id, message)
            self._shown = given
        elif await self._send_growing_message(delivery, message):
            self._shown = given
        else:
            self._delivery = None  # a message without an id cannot be changed
            return
        if not self._noted:
            await self._turn.note(Growing(number=self._number, message_id=self._message_id))
            self._noted = True

    async def _send_growing_message(self, delivery: Delivery, message: OutboundMessage) -> bool:
        """Send a message that can grow; return whether the platform has told its id."""
        key = delivery.growing_key(self._turn.session_key, self._turn.seq, self._number)
        self._message_id = await delivery.adapter.send(self._target, message, idempotency_key=key)
        failpoint("growing_sent")
        return self._message_id is not None
