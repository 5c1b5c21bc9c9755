"""Reading of LINE's events: which message one brings, for whom it is, and what came with it.

Nothing here waits or asks anybody.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import msgspec

from gateway_sessions.adapters.group_talk import MENTIONS, Address, GroupRules, Hearing, without_mention
from gateway_sessions.adapters.webhooks import PassedOver, UnreadableEvent, WebhookEvent
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.queue.inbound import (
    Attachment,
    AttachmentKind,
    InboundMessage,
    MessageKind,
    ReplyTo,
)
from gateway_sessions.core.text_length import place_of_utf16
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.integrations.line.objects import (
    LineBatch,
    LineEvent,
    LineEventHead,
    LineMessage,
    LineSource,
)

PLATFORM: Final = "line"
CONTENT: Final = "line:"
"""The beginning of an attachment's address: behind it stands the id of the message that holds it."""
REPLY_TOKEN: Final = "reply_token"  # noqa: S105 -- the name of a member
"""The member of a message's metadata that holds the token for one reply."""

_READ: Final = frozenset({"message", "postback", "unsend"})
_MEDIA: Final = {
    "image": AttachmentKind.PHOTO,
    "video": AttachmentKind.VIDEO,
    "audio": AttachmentKind.AUDIO,
    "file": AttachmentKind.DOCUMENT,
}
_UNREADABLE: Final = (
    msgspec.MsgspecError,
    InvalidInputError,
    UnicodeDecodeError,
    ValueError,
    OverflowError,
    OSError,
    RecursionError,
)


@dataclass(frozen=True, slots=True)
class LineReadingRules:
    """Which events an adapter reads, and for which account."""

    account: str = ""
    groups: GroupRules[LineEvent] = MENTIONS
    own_messages: Container[str] = field(default_factory=frozenset[str])
    """The ids of what the account has sent; an answer to one of these is for it."""


def read_batch(raw: bytes, rules: LineReadingRules) -> Sequence[WebhookEvent]:
    """Return what each event of a webhook tells; `InvalidInputError` if it is none of LINE's."""
    try:
        events = msgspec.json.decode(raw, type=LineBatch).events
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        problem = f"a webhook of LINE cannot be read ({type(error).__name__}: {error})"
        raise InvalidInputError(problem) from error
    return [_read_event(event, rules) for event in events] or [PassedOver("a test of the webhook")]


def _read_event(raw: msgspec.Raw, rules: LineReadingRules) -> WebhookEvent:
    try:
        head = msgspec.json.decode(raw, type=LineEventHead)
        if head.type not in _READ or head.mode != "active":
            return PassedOver(f"{head.type}, {head.mode}")
        event = msgspec.json.decode(raw, type=LineEvent)
        hearing = rules.groups.hearing(_address_of(event, rules), event)
        message = _inbound(event, rules, hearing) if rules.groups.keeps(hearing) else None
    except _UNREADABLE as error:
        problem = f"an event of LINE cannot be read ({type(error).__name__}: {error})"
        return UnreadableEvent(bytes(raw).decode("utf-8", "replace"), problem)
    return message or PassedOver(f"{head.type} for nobody")


def _inbound(event: LineEvent, rules: LineReadingRules, hearing: Hearing) -> InboundMessage | None:
    source = _source_of(event.source, rules.account)
    sent_at = datetime.fromtimestamp(event.timestamp / 1000, UTC)
    metadata = {REPLY_TOKEN: event.reply_token} if event.reply_token else {}
    if event.unsend is not None:
        return InboundMessage(
            source=source, message_id=event.unsend.message_id, kind=MessageKind.DELETE, sent_at=sent_at
        )
    if event.postback is not None:
        return InboundMessage(
            source=source,
            text=event.postback.data,
            message_id=event.webhook_event_id,
            sent_at=sent_at,
            action=event.postback.data,
            metadata=metadata,
        )
    message = event.message
    if message is None:
        return None
    text, attachments = _text_of(message), tuple(_attachments_of(message))
    if not text and not attachments:
        text = f"[{message.type}]"  # a kind of message that LINE has added: the agent hears of it
    return InboundMessage(
        source=source,
        text=text,
        message_id=message.id,
        sent_at=sent_at,
        attachments=attachments,
        group_id=message.image_set.id if message.image_set else None,
        reply_to=_reply_of(message, rules),
        observed=hearing is Hearing.OVERHEARD,
        metadata=metadata,
    )


# Where, who and for whom


def _source_of(source: LineSource, account: str) -> SessionSource:
    chat = {"user": source.user_id, "group": source.group_id, "room": source.room_id}[source.type]
    if not chat:
        problem = f"the source does not name its {source.type}"
        raise InvalidInputError(problem)
    return SessionSource(
        platform=PLATFORM,
        chat_id=chat,
        chat_type="dm" if source.type == "user" else "group",
        user_id=source.user_id,
        account=account,
    )


def _address_of(event: LineEvent, rules: LineReadingRules) -> Address:
    message = event.message
    if message is None:
        # A button belongs to a message of the account, and what is taken back to whoever took it.
        return Address(private=event.source.type == "user", answers=True, changes=event.unsend is not None)
    return Address(
        text=without_mention(message.text or "", _mentions_in(message)),
        private=event.source.type == "user",
        mentions=bool(_mentions_in(message)),
        answers=(message.quoted_message_id or "") in rules.own_messages,
    )


def _reply_of(message: LineMessage, rules: LineReadingRules) -> ReplyTo | None:
    quoted = message.quoted_message_id
    return ReplyTo(message_id=quoted, own=quoted in rules.own_messages) if quoted else None


# What


def _text_of(message: LineMessage) -> str:
    """Return the text without a mention of the account, or the words for what has no file."""
    match message.type:
        case "text":
            return without_mention(message.text or "", _mentions_in(message))
        case "location":
            return " ".join(filter(None, (message.title, message.address)))
        case "sticker":
            words = ", ".join((message.keywords or [])[:3])
            return message.text or (f"[sticker: {words}]" if words else "[sticker]")
        case _:
            return ""


def _mentions_in(message: LineMessage) -> list[tuple[int, int]]:
    """Return the places of the account's mentions in a text."""
    mentioned = message.mention.mentionees if message.mention else []
    return [place_of_utf16(message.text or "", one.index, one.length) for one in mentioned if one.is_self]


def _attachments_of(message: LineMessage) -> Iterator[Attachment]:
    if (kind := _MEDIA.get(message.type)) is not None:
        provider = message.content_provider
        elsewhere = provider.original_content_url if provider and provider.type == "external" else None
        url = elsewhere or f"{CONTENT}{message.id}"
        yield Attachment(kind=kind, url=url, name=message.file_name, size=message.file_size)
    elif message.type == "location" and message.latitude is not None and message.longitude is not None:
        url = f"geo:{message.latitude},{message.longitude}"
        yield Attachment(kind=AttachmentKind.LOCATION, url=url, name=message.title)
    elif message.type == "sticker" and message.sticker_id:
        name = f"{message.package_id or ''}/{message.sticker_id}"
        yield Attachment(kind=AttachmentKind.STICKER, url=f"line-sticker:{name}", name=name)
