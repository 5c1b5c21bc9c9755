"""One send of a reply: as it is, in a growing message's place, looked up first, or marked as a repeat."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from typing import Final, TypeAlias

import anyio

from gateway_sessions.adapters.protocol import Adapter, FindingAdapter
from gateway_sessions.core.delivery.message_parts import render_stored
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.errors import AdapterUnavailableError, CancelledItselfError, DeliveryRefusedError
from gateway_sessions.storage.transactions.queue.outbox import OwedReply

logger: Final = logging.getLogger(__name__)

Mark: TypeAlias = Callable[[OutboundMessage, ReplyTarget], OutboundMessage]
"""Returns a message with the mark that it may be a repeat."""


async def send_reply(
    adapter: Adapter, reply: OwedReply, scope: anyio.CancelScope, now: datetime, mark: Mark
) -> tuple[str | None, Exception | None]:
    """Send a reply, marked if people may see it twice; return its id on the platform, or the error.

    The send is stopped by *scope*; any other cancellation has leaked out of the adapter.
    """
    able = adapter.capabilities
    message = render_stored(reply.message, able)
    try:
        if reply.maybe_duplicate and not able.shows_once(message, now - reply.created_at):
            return await _send_again(adapter, reply, message, mark), None
        return await _send_or_edit(adapter, reply, message), None
    except asyncio.CancelledError:
        if scope.cancel_called:
            raise
        return None, CancelledItselfError("an adapter's send")  # the send may have happened
    except Exception as error:  # noqa: BLE001 -- foreign code: told apart by its kind
        return None, error


async def _send_again(adapter: Adapter, reply: OwedReply, message: OutboundMessage, mark: Mark) -> str | None:
    """Send a reply that people may have: look it up where that is possible, else mark it as a repeat."""
    if not isinstance(adapter, FindingAdapter) or not adapter.capabilities.finds:
        return await _send_or_edit(adapter, reply, mark(message, reply.target))
    try:
        found = await adapter.find(reply.target, idempotency_key=reply.idempotency_key)
    except DeliveryRefusedError as refused:  # it cannot look, now or later
        facts = {"action": "reply_not_findable", "platform": adapter.platform, "reply_id": reply.reply_id}
        logger.warning("it cannot be looked up whether a reply was sent: %s", refused, extra=facts)
        message = mark(message, reply.target)
    except OSError as error:  # what failed is a question, and so nothing was sent
        problem = f"cannot be asked whether a reply was sent ({error})"
        raise AdapterUnavailableError(adapter.platform, problem) from error
    else:
        if found is not None:
            return found
    return await _send_or_edit(adapter, reply, message)


async def _send_or_edit(adapter: Adapter, reply: OwedReply, message: OutboundMessage) -> str | None:
    if message.replaces is not None:
        await adapter.edit(reply.target, message.replaces, message)
        return message.replaces
    return await adapter.send(reply.target, message, idempotency_key=reply.idempotency_key)
