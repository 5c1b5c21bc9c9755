"""`WebhookEvent`: what a platform tells by a webhook: messages, the fate of replies, and all the rest."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeAlias

from gateway_sessions.core.queue.inbound import InboundMessage


class DeliveryState(StrEnum):
    """What became of a message that was sent."""

    SENT = "sent"  # the platform has it
    DELIVERED = "delivered"  # the person's device has it
    READ = "read"
    FAILED = "failed"  # it will never be shown


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryStatus:
    """The report of a platform on a message that was sent."""

    message_id: str
    """The id that the platform gave the message."""
    state: DeliveryState
    idempotency_key: str | None = None
    """The key with which the message was sent, if the platform returns it."""
    chat_id: str = ""
    at: datetime | None = None
    problem: str | None = None
    """Why the message failed, with what to do, in words for the operator."""


@dataclass(frozen=True, slots=True)
class UnreadableEvent:
    """An event that was signed and cannot be read; it is put aside, and those behind it go on."""

    update: Any
    """The event as it came."""
    problem: str


@dataclass(frozen=True, slots=True)
class PassedOver:
    """An event that is nobody's message: somebody joined, a reaction, an answer to ourselves."""

    what: str


WebhookEvent: TypeAlias = InboundMessage | DeliveryStatus | UnreadableEvent | PassedOver
