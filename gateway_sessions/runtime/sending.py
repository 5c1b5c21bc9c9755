"""Handing one reply to its platform, and hearing what became of it."""

from __future__ import annotations

import asyncio

import anyio

from gateway_sessions.adapters.protocol import Adapter
from gateway_sessions.core.delivery import marked
from gateway_sessions.core.outbound import OutboundMessage
from gateway_sessions.errors import CancelledItselfError
from gateway_sessions.storage.verbs.outbox import OwedReply


async def hand_over(
    adapter: Adapter, reply: OwedReply, scope: anyio.CancelScope
) -> tuple[str | None, Exception | None]:
    """Send a reply, marked if it may be seen twice; the id it got, or what went wrong.

    *scope* is what whoever stops it cancels: any other cancellation has leaked out of the adapter.
    """
    message = reply.message
    shown_once = adapter.capabilities.idempotent_send or message.replaces is not None
    if reply.maybe_duplicate and not shown_once:
        message = marked(message)
    try:
        return await _sent(adapter, reply, message), None
    except asyncio.CancelledError:
        if scope.cancel_called:
            raise
        return None, CancelledItselfError("an adapter's send")  # it may have happened
    except Exception as error:  # noqa: BLE001 -- foreign code: told apart by its kind
        return None, error


async def _sent(adapter: Adapter, reply: OwedReply, message: OutboundMessage) -> str | None:
    if message.replaces is not None:
        await adapter.edit(reply.target, message.replaces, message)
        return message.replaces
    return await adapter.send(reply.target, message, idempotency_key=reply.idempotency_key)
