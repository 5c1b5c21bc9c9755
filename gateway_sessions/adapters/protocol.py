"""An adapter connects a gateway to one account of a platform, and this is the protocol between the two.

The adapter turns updates of the platform into `InboundMessage`s, and an `OutboundMessage` into what the
platform shows. The gateway keeps order, remembers, tries again and finds duplicates; the adapter tells the
truth about each single call.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeAlias

from gateway_sessions.core.delivery.outbound_messages import AdapterCapabilities, OutboundMessage, ReplyTarget
from gateway_sessions.core.queue.inbound import InboundMessage
from gateway_sessions.core.queue.receipts import Receipt

Submit: TypeAlias = Callable[[InboundMessage], Awaitable[Receipt]]
"""This function hands a message over.

Once it returns, the message is durable and may be acknowledged to the platform, or it was rejected. If it
raises, nothing was taken: the platform must deliver the message again, with the same id.
"""


class Adapter(Protocol):
    """An adapter speaks for one account of one platform.

    Its errors tell what was certainly not sent from what may have been: `AdapterUnavailableError` and
    `RateLimitedError` (not sent, later it may work) and `DeliveryRefusedError` (not sent, and never will be).
    After any other error, or none in time, nobody knows; then a reply may have to be sent a second time.
    """

    @property
    def name(self) -> str:
        """The account, as it stands in `InboundMessage.account`; "" where a platform has one only."""
        ...

    @property
    def platform(self) -> str:
        """The platform, as it stands in every source."""
        ...

    @property
    def capabilities(self) -> AdapterCapabilities:
        """The abilities of the adapter; they stay the same as long as it lives."""
        ...

    def connect(self, submit: Submit) -> AbstractAsyncContextManager[None]:
        """Listen within the block, and leave nothing running behind it; may be entered again afterwards.

        A connection that breaks is mended inside. If that cannot be, the block is left by the error; then the
        gateway connects again, after a pause.
        """
        ...

    async def send(
        self, target: ReplyTarget, message: OutboundMessage, *, idempotency_key: str
    ) -> str | None:
        """Send a message, and return its id on the platform if it has one.

        A text longer than `max_length` is refused as a whole. The key is the same in every attempt at one
        message, and in no other.
        """
        ...

    async def edit(self, target: ReplyTarget, message_id: str, message: OutboundMessage) -> None:
        """Let a message that was sent say something else; the gateway asks only adapters that can `edit`.

        So a reply is shown as it grows. At the end the whole reply takes that place (`message.replaces`), or
        its first part; refuse where the place is gone, and the reply is sent as a new message.
        """
        ...

    async def typing(self, target: ReplyTarget) -> None:
        """Show for a few seconds that an answer is being made; this is a hint, which may be lost."""
        ...
