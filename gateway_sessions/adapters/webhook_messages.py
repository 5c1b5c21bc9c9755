"""The JSON that a webhook is sent, and what it answers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Final

import msgspec

from gateway_sessions.adapters.http import Response
from gateway_sessions.core.inbound import Attachment, InboundMessage, MessageKind, ReplyTo
from gateway_sessions.core.messages import NO_EXTRA
from gateway_sessions.core.receipts import Accepted, Duplicate, Receipt, Rejected, RejectReason
from gateway_sessions.core.source import SessionSource
from gateway_sessions.errors import InvalidInputError

STATUS_OF: Final[Mapping[RejectReason, HTTPStatus]] = MappingProxyType(
    {
        RejectReason.BUSY: HTTPStatus.TOO_MANY_REQUESTS,
        RejectReason.QUEUE_FULL: HTTPStatus.TOO_MANY_REQUESTS,
        RejectReason.OVERLOADED: HTTPStatus.TOO_MANY_REQUESTS,
        RejectReason.TOO_LARGE: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        RejectReason.DRAINING: HTTPStatus.SERVICE_UNAVAILABLE,
        RejectReason.ERASED: HTTPStatus.GONE,
        RejectReason.NOT_ALLOWED: HTTPStatus.FORBIDDEN,
        RejectReason.NOT_ADDRESSED: HTTPStatus.UNPROCESSABLE_ENTITY,
        RejectReason.EMPTY: HTTPStatus.UNPROCESSABLE_ENTITY,
        RejectReason.UNKNOWN: HTTPStatus.UNPROCESSABLE_ENTITY,
    }
)


class _Source(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    chat_id: str = ""
    chat_name: str | None = None
    chat_type: str = "dm"
    user_id: str | None = None
    user_name: str | None = None
    thread_id: str | None = None
    is_bot: bool = False


class _Message(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    source: _Source
    text: str = ""
    message_id: str | None = None
    kind: MessageKind = MessageKind.NEW
    revision: int = 0
    sent_at: datetime | None = None
    attachments: tuple[Attachment, ...] = ()
    reply_to: ReplyTo | None = None
    metadata: Mapping[str, Any] = NO_EXTRA


_DECODER: Final = msgspec.json.Decoder(_Message)


def decode_message(body: bytes, platform: str, account: str, webhook_id: str) -> InboundMessage:
    """The message in a body, or `InvalidInputError`. A new one without an id has that of the request."""
    try:
        sent = _DECODER.decode(body)
    except RecursionError:
        problem = "the message is nested too deeply"
        raise InvalidInputError(problem) from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidInputError(str(error)) from error
    members = {name: getattr(sent, name) for name in sent.__struct_fields__}
    members["source"] = SessionSource(platform=platform, **msgspec.structs.asdict(sent.source))
    if sent.message_id is None and sent.kind is MessageKind.NEW:
        members["message_id"] = webhook_id
    return InboundMessage(account=account, **members)


def answer_to(receipt: Receipt) -> Response:
    """What the sender of a message is told."""
    headers = {"content-type": "application/json"}
    match receipt:
        case Accepted():
            status = HTTPStatus.ACCEPTED
        case Duplicate():
            status = HTTPStatus.OK
        case Rejected(reason=reason, retry_after=retry_after):
            status = STATUS_OF[reason]
            if retry_after is not None:
                headers["retry-after"] = str(math.ceil(retry_after))
    told = {"receipt": type(receipt).__name__.lower(), **msgspec.to_builtins(receipt)}
    return Response(status, msgspec.json.encode(told), headers)
