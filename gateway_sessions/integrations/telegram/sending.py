"""The calls of the Bot API that show a message to people."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final, NamedTuple
from urllib.parse import unquote_to_bytes

from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.core.identity.source import Platform
from gateway_sessions.core.queue.inbound import Attachment, AttachmentKind
from gateway_sessions.core.text_length import LengthUnit
from gateway_sessions.errors import DeliveryRefusedError
from gateway_sessions.integrations.telegram.bot_api import Upload
from gateway_sessions.integrations.telegram.updates import FILE

LONGEST_TEXT: Final = 4096
LONGEST_CAPTION: Final = 1024
UTF16: Final = LengthUnit.UTF16

_METHODS: Final = {
    AttachmentKind.PHOTO: ("sendPhoto", "photo"),
    AttachmentKind.VIDEO: ("sendVideo", "video"),
    AttachmentKind.AUDIO: ("sendAudio", "audio"),
    AttachmentKind.VOICE: ("sendVoice", "voice"),
    AttachmentKind.DOCUMENT: ("sendDocument", "document"),
}
SHOWN_ATTACHMENTS: Final = frozenset(_METHODS)


class BotCall(NamedTuple):
    """A call of the Bot API; `plain` has the parameters for the case that the markup is refused."""

    method: str
    parameters: dict[str, Any]
    plain: dict[str, Any] | None = None


def calls_that_show(target: ReplyTarget, message: OutboundMessage) -> list[BotCall]:
    """Return the calls that show a message, the text first; refuse what Telegram would."""
    place = _place_of(target)
    caption_fits = len(message.attachments) == 1 and UTF16.length(message.text) <= LONGEST_CAPTION
    calls: list[BotCall] = []
    if message.text.strip() and not caption_fits:
        calls.append(_with_text("sendMessage", place, message, "text"))
    for attachment in message.attachments:
        method, name = _METHODS[attachment.kind]
        call = {**place, name: _file_of(attachment)}
        if caption_fits and message.text.strip():
            calls.append(_with_text(method, call, message, "caption"))
        else:
            calls.append(BotCall(method, call))
    return calls


def call_that_edits(target: ReplyTarget, message_id: str, message: OutboundMessage) -> BotCall:
    """Return the call that lets a message say something else; refuse what one message cannot hold."""
    place = {"chat_id": _chat_of(target), "message_id": int(message_id)}
    return _with_text("editMessageText", place, message, "text")


def _with_text(method: str, parameters: dict[str, Any], message: OutboundMessage, name: str) -> BotCall:
    """Return a call with the text of a message; refuse a text that is too long for it."""
    if (length := UTF16.length(message.text)) > LONGEST_TEXT:
        problem = f"a message may have {LONGEST_TEXT} UTF-16 units, this one has {length}"
        raise DeliveryRefusedError(Platform.TELEGRAM, problem)
    extra = message.extra.get(Platform.TELEGRAM, {})
    plain = {**parameters, name: message.text, **extra}
    if message.markup is None:
        return BotCall(method, plain)
    return BotCall(method, {**plain, name: message.markup, "parse_mode": "HTML"}, plain)


def _place_of(target: ReplyTarget) -> dict[str, Any]:
    place: dict[str, Any] = {"chat_id": _chat_of(target)}
    if target.thread_id is not None:
        place["message_thread_id"] = int(target.thread_id)
    if target.reply_to is not None:
        # Somebody may have deleted the question meanwhile.
        answered = {"message_id": int(target.reply_to), "allow_sending_without_reply": True}
        place["reply_parameters"] = answered
    return place


def _chat_of(target: ReplyTarget) -> int | str:
    chat = target.chat_id or target.user_id or ""
    return int(chat) if chat.lstrip("-").isdigit() else chat


def _file_of(attachment: Attachment) -> str | Upload:
    """Return the file of an attachment: one that Telegram has, its address, or its content."""
    url = attachment.url
    if url.startswith(FILE):
        return url.removeprefix(FILE)
    if url.startswith("data:"):
        return Upload(attachment.name or "file", content_of_data_url(url))
    if url.startswith(("http://", "https://")):
        return url
    problem = f"{attachment.name or 'an attachment'} has no address that Telegram can read: http(s) or data"
    raise DeliveryRefusedError(Platform.TELEGRAM, problem)


def content_of_data_url(url: str) -> bytes:
    """Return the content of an address that holds it; refuse one that is damaged."""
    head, _, data = url.partition(",")
    try:
        return base64.b64decode(data, validate=True) if head.endswith(";base64") else unquote_to_bytes(data)
    except (binascii.Error, ValueError) as error:
        problem = f"the content of an attachment cannot be read ({error})"
        raise DeliveryRefusedError(Platform.TELEGRAM, problem) from error
