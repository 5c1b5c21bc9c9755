"""`Adapter`: the protocol between a gateway and the adapter of one account of a platform.

The adapter turns updates of the platform into `InboundMessage`s, and an `OutboundMessage` into what the
platform shows. The gateway keeps order, stores, retries and finds duplicates; the adapter reports truthfully
what became of each single call.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeAlias, runtime_checkable

from gateway_sessions.core.delivery.adapter_capabilities import AdapterCapabilities
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.core.notices.command_replies import CommandHelp
from gateway_sessions.core.queue.inbound import Attachment, InboundMessage, Receipt

Submit: TypeAlias = Callable[[InboundMessage], Awaitable[Receipt]]
"""The function by which an adapter submits a message.

When it returns, the message is durable and may be acknowledged to the platform, or it was rejected. If it
raises, the message was not accepted: the platform must deliver it again with the same id.
"""


class AdapterMemory(Protocol):
    """Short texts that an adapter keeps by name, such as the place up to which it has fetched messages.

    A gateway keeps them in its store, so that they are there after a restart, and on every node.
    """

    async def get(self, name: str) -> str | None:
        """Return the text that was kept under that name; None if there is none."""
        ...

    async def put(self, name: str, value: str | None) -> None:
        """Keep a text, durably when this returns; None forgets it."""
        ...


class Adapter(Protocol):
    """The adapter of one account of one platform.

    Its errors say whether a reply was certainly not sent: `AdapterUnavailableError` and `RateLimitedError`
    (not sent, and later it may work) and `DeliveryRefusedError` (not sent, and it never will be). After any
    other error, or a timeout, nobody knows, and the reply may be sent a second time.
    """

    @property
    def name(self) -> str:
        """The account, as in `InboundMessage.account`; "" for the only account of a platform."""
        ...

    @property
    def platform(self) -> str:
        """The platform, as in every source."""
        ...

    @property
    def capabilities(self) -> AdapterCapabilities:
        """The abilities of the adapter; they never change while it lives."""
        ...

    def connect(self, submit: Submit) -> AbstractAsyncContextManager[None]:
        """Listen within the block, and leave nothing running after it; it may be entered again.

        Repair a broken connection inside. If that is impossible, raise the error out of the block: the
        gateway connects again after a pause.
        """
        ...

    async def send(
        self, target: ReplyTarget, message: OutboundMessage, *, idempotency_key: str
    ) -> str | None:
        """Send a message, and return its id on the platform, if it has one.

        Refuse a text longer than `max_length` as a whole. The key is the same in all attempts at one message,
        and differs between messages.
        """
        ...

    async def edit(self, target: ReplyTarget, message_id: str, message: OutboundMessage) -> None:
        """Change the text of a sent message; the gateway calls this only for adapters that can `edit`.

        This shows a reply while it grows. At the end the whole reply, or its first part, replaces that
        message (`message.replaces`). If the message is gone, refuse, and the reply is sent as a new one.
        """
        ...

    async def typing(self, target: ReplyTarget) -> None:
        """Show for a few seconds that an answer is being made; this hint may be lost."""
        ...


@runtime_checkable
class FindingAdapter(Protocol):
    """An adapter that can look up whether a message was sent; its capabilities say `finds`."""

    async def find(self, target: ReplyTarget, *, idempotency_key: str) -> str | None:
        """Return the id of the message that was sent with that key; None: it certainly was not sent.

        The gateway asks before it sends a message again whose first send had no answer. Raise
        `DeliveryRefusedError` if this can never be found out: the message is sent again with a mark.
        """
        ...


@runtime_checkable
class CommandMenuAdapter(Protocol):
    """An adapter whose platform shows people a menu of commands."""

    async def show_commands(self, commands: Sequence[CommandHelp]) -> None:
        """Put these commands into the menu, in place of what is there.

        The gateway calls this after it has connected. A failure is logged, and nothing else follows from it.
        """
        ...


@runtime_checkable
class DraftingAdapter(Protocol):
    """An adapter whose platform shows a reply that is being written, before it is a message."""

    def can_draft(self, target: ReplyTarget) -> bool:
        """Return whether drafts are shown in that chat."""
        ...

    async def draft(self, target: ReplyTarget, message: OutboundMessage, *, key: str) -> None:
        """Show how far the reply has come. Drafts of one key follow each other; a sent message ends them."""
        ...


@runtime_checkable
class AdvisingAdapter(Protocol):
    """An adapter that sees for itself what is not set up as it should be."""

    def advice(self) -> str | None:
        """Return in one sentence what does not work and what to do, once it is connected; None: nothing."""
        ...


@runtime_checkable
class FetchingAdapter(Protocol):
    """An adapter that can fetch the files that people send. Agents do so by `turn.fetch`."""

    async def fetch(self, attachment: Attachment, *, most: int) -> bytes:
        """Return the content of an attachment; `InvalidInputError` if it has more than *most* bytes.

        Fetch from the platform only, and never from a path: the address may be one that a model made up.
        """
        ...


@runtime_checkable
class RememberingAdapter(Protocol):
    """An adapter that must know after a restart how far it has come."""

    def remember_in(self, memory: AdapterMemory) -> None:
        """Use this memory from now on. The gateway calls this once, before `connect`."""
        ...
