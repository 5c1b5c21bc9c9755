"""Limits of a queue: how much may wait and how large a message may be, and the refusal texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from gateway_sessions.config import Config
from gateway_sessions.core.notices.notice_texts import refusal
from gateway_sessions.core.queue.inbound import InboundMessage, MessageKind, stored_form
from gateway_sessions.core.queue.receipts import Rejected, RejectReason
from gateway_sessions.errors import UnidentifiedSourceError

OVERLOADED_RETRY_SECONDS: Final = 30.0
DRAINING_RETRY_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLimits:
    """How much may wait, how large a message may be, and how many lanes are known as they were left."""

    max_waiting: int
    max_waiting_per_owner: int
    max_message_bytes: int
    allow_unidentified: bool
    remembered_lanes: int

    @classmethod
    def configured(cls, config: Config) -> Self:
        """Return the limits that a configuration sets."""
        return cls(
            max_waiting=config.gateway.max_waiting,
            max_waiting_per_owner=config.gateway.max_waiting_per_owner,
            max_message_bytes=config.gateway.max_message_bytes,
            allow_unidentified=config.allow_unidentified_sources,
            remembered_lanes=config.cache.entries,
        )


def rejected(reason: RejectReason, retry_after: float | None, session_key: str | None) -> Rejected:
    """Say why a message was not taken in."""
    return Rejected(reason=reason, text=refusal(reason), retry_after=retry_after, session_key=session_key)


def unfit(message: InboundMessage, limits: QueueLimits) -> Rejected | None:
    """Return why a message can never be taken, as far as its fields tell without encoding it."""
    source = message.source
    if not source.has_identifier and not limits.allow_unidentified:
        raise UnidentifiedSourceError(source.platform)
    if message.is_empty and message.kind is MessageKind.NEW:
        return rejected(RejectReason.EMPTY, None, None)
    if len(message.text) > limits.max_message_bytes:
        return rejected(RejectReason.TOO_LARGE, None, None)
    return None


def payload_of(message: InboundMessage, limits: QueueLimits) -> str | Rejected:
    """Return the message as it is stored, or why it cannot be taken."""
    if (unfitness := unfit(message, limits)) is not None:
        return unfitness
    payload = stored_form(message)
    if len(payload.encode()) > limits.max_message_bytes:
        return rejected(RejectReason.TOO_LARGE, None, None)
    return payload


OVERLOADED: Final = rejected(RejectReason.OVERLOADED, OVERLOADED_RETRY_SECONDS, None)
"""More waits already than may."""
DRAINING: Final = rejected(RejectReason.DRAINING, DRAINING_RETRY_SECONDS, None)
"""The gateway is about to end, and there is no time to carry anything out."""
