"""The objects of LINE's Messaging API, as far as they are read; what else LINE sends is passed over."""

from __future__ import annotations

from typing import Literal

import msgspec


class LineSource(msgspec.Struct, frozen=True, rename="camel"):
    """Where something happened: with one person, in a group or in a room without a name."""

    type: Literal["user", "group", "room"]
    user_id: str | None = None
    group_id: str | None = None
    room_id: str | None = None


class LineMentionee(msgspec.Struct, frozen=True, rename="camel"):
    """One mention in a text, in UTF-16 units."""

    index: int = 0
    length: int = 0
    is_self: bool = False


class LineMention(msgspec.Struct, frozen=True):
    """The mentions in a text."""

    mentionees: list[LineMentionee] = []


class LineProvider(msgspec.Struct, frozen=True, rename="camel"):
    """Who keeps the content of a message: LINE, or somebody at an address."""

    type: str = "line"
    original_content_url: str | None = None


class LineImageSet(msgspec.Struct, frozen=True):
    """The pictures that somebody has sent together."""

    id: str


class LineMessage(msgspec.Struct, frozen=True, rename="camel"):
    """A message."""

    id: str
    type: str
    text: str | None = None
    mention: LineMention | None = None
    quoted_message_id: str | None = None
    content_provider: LineProvider | None = None
    image_set: LineImageSet | None = None
    file_name: str | None = None
    file_size: int | None = None
    title: str | None = None
    address: str | None = None
    latitude: float | None = None
    longitude: float | None = None
    package_id: str | None = None
    sticker_id: str | None = None
    keywords: list[str] | None = None


class LinePostback(msgspec.Struct, frozen=True):
    """What a button carries."""

    data: str


class LineUnsend(msgspec.Struct, frozen=True, rename="camel"):
    """Names the message that somebody has taken back."""

    message_id: str


class LineEventHead(msgspec.Struct, frozen=True):
    """The part of any event that tells whether it is read further."""

    type: str
    mode: str = "active"
    """`standby`: another program answers this chat at the moment."""


class LineEvent(msgspec.Struct, frozen=True, rename="camel"):
    """Something that happened."""

    type: str
    source: LineSource
    webhook_event_id: str
    timestamp: int
    """In milliseconds."""
    reply_token: str | None = None
    message: LineMessage | None = None
    postback: LinePostback | None = None
    unsend: LineUnsend | None = None


class LineBatch(msgspec.Struct, frozen=True):
    """The body of a webhook."""

    events: list[msgspec.Raw]


class LineSentMessage(msgspec.Struct, frozen=True):
    """A message that was sent."""

    id: str


class LineSendAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """The answer to a call, good or bad."""

    message: str = ""
    sent_messages: list[LineSentMessage] = []
