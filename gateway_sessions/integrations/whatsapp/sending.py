"""The calls of the Graph API that show a message to people."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from gateway_sessions.adapters.webhooks.api_calls import ApiCall, FileToSend, PlatformAnswer
from gateway_sessions.adapters.webhooks.data_urls import file_of_data_url
from gateway_sessions.core.delivery.outbound_messages import Button, OutboundMessage, ReplyTarget
from gateway_sessions.core.identity.source import Platform
from gateway_sessions.core.queue.inbound import Attachment, AttachmentKind
from gateway_sessions.core.text_length import LengthUnit
from gateway_sessions.errors import DeliveryRefusedError
from gateway_sessions.integrations.whatsapp.webhooks import MEDIA

LONGEST_TEXT: Final = 4096
LONGEST_CAPTION: Final = 1024
LONGEST_QUESTION: Final = 1024
"""The longest text that has buttons below it."""
MOST_BUTTONS: Final = 3
MOST_ROWS: Final = 10
LONGEST_LABEL: Final = 20
LONGEST_ROW: Final = 24
LONGEST_ROW_DETAIL: Final = 72
LONGEST_KEY: Final = 512
"""The longest text that comes back in reports on a message."""
MENU_LABEL: Final = "☰"
"""The label of the button that opens a list: a sign, because nobody knows the language of the talk."""
CONTINUED: Final = "…"
"""The text above buttons whose question was too long for them, and stands in the message before."""

_MEDIA: Final = {
    AttachmentKind.PHOTO: "image",
    AttachmentKind.VIDEO: "video",
    AttachmentKind.AUDIO: "audio",
    AttachmentKind.VOICE: "audio",
    AttachmentKind.DOCUMENT: "document",
    AttachmentKind.STICKER: "sticker",
}
SHOWN_ATTACHMENTS: Final = frozenset({*_MEDIA, AttachmentKind.LOCATION})
_CAPTIONED: Final = frozenset({"image", "video", "document"})
_USER_ID: Final = re.compile(r"[A-Z]{2}\.(?:ENT\.)?[0-9A-Za-z]+")
_GEO: Final = re.compile(r"geo:(-?[0-9.]+),(-?[0-9.]+)")


@dataclass(frozen=True, slots=True)
class SendingNumber:
    """The number that sends, and where its API is."""

    api_url: str
    """The address of the Graph API with its version."""
    phone_number_id: str

    @property
    def messages_url(self) -> str:
        """The address at which messages are posted."""
        return f"{self.api_url}/{self.phone_number_id}/messages"

    @property
    def media_url(self) -> str:
        """The address at which files are uploaded."""
        return f"{self.api_url}/{self.phone_number_id}/media"


def callback_key(idempotency_key: str) -> str:
    """Return the key that comes back in reports: the key itself, or always the same hash of a long one."""
    if len(idempotency_key) <= LONGEST_KEY and idempotency_key.isprintable():
        return idempotency_key
    return hashlib.sha256(idempotency_key.encode("utf-8", "replace")).hexdigest()


def calls_that_show(
    message: OutboundMessage, target: ReplyTarget, number: SendingNumber, *, idempotency_key: str
) -> list[ApiCall]:
    """Return the calls that show a message, the text first; refuse what WhatsApp would."""
    text = message.text if message.markup is None else message.markup
    if LengthUnit.UTF16.length(text) > LONGEST_TEXT:
        problem = f"a message may have {LONGEST_TEXT} UTF-16 units, this one has more"
        raise DeliveryRefusedError(Platform.WHATSAPP, problem)
    own = message.extra.get(Platform.WHATSAPP)
    contents = _contents(message, text, own)
    keys = _keys_of_calls(callback_key(idempotency_key), len(contents))
    return [
        _call_for(content, _frame(target, key), target, number)
        for content, key in zip(contents, keys, strict=True)
    ]


def _keys_of_calls(key: str, count: int) -> list[str]:
    """Return the keys of the calls of one message: a report on the last one tells that all were made."""
    return [*(f"{key[: LONGEST_KEY - 4]}#{number}" for number in range(1, count)), key]


@dataclass(frozen=True, slots=True)
class _Upload:
    """A file that is uploaded before it is sent."""

    kind: str
    member: Mapping[str, Any]
    file: FileToSend


def _contents(
    message: OutboundMessage, text: str, own: Mapping[str, Any] | None
) -> list[dict[str, Any] | _Upload]:
    """Return what stands in the calls of a message: a text, files, a question with buttons."""
    if own is not None and own.get("type", "text") != "text":  # a template or another kind of its own
        return [dict(own), *_files(message.attachments, "")]
    attachments = message.attachments
    captioned = len(attachments) == 1 and not message.buttons and _takes_caption(attachments[0], text)
    contents = _files(attachments, text if captioned else "")
    if text.strip() and not captioned:
        contents[:0] = _texts(text, message.buttons)
    elif message.buttons:
        contents += _texts("", message.buttons)
    if own and contents and isinstance(contents[0], dict):
        contents[0] = {**contents[0], **own}
    return contents


def _texts(text: str, buttons: Sequence[Button]) -> list[dict[str, Any] | _Upload]:
    if not buttons:
        return [_text(text)]
    links = [one for one in buttons if one.url is not None]
    offered = [one for one in buttons if one.url is None][:MOST_ROWS]
    # What no button can show is told in words: links beside choices, and choices beyond those of a list.
    untold = [one for one in buttons if one not in offered and not (len(links) == 1 and not offered)]
    lines = [f"- {one.label}: {one.url}" if one.url else f"- {one.label}" for one in untold]
    text = "\n".join(filter(None, [text, *lines]))
    before: list[dict[str, Any] | _Upload] = []
    if LengthUnit.UTF16.length(text) > LONGEST_QUESTION:
        before, text = [_text(text)], CONTINUED
    if offered:
        return [*before, _question(text or CONTINUED, offered)]
    if len(links) == 1:
        return [*before, _link(text or CONTINUED, links[0])]
    return before or [_text(text)]


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": {"body": text, "preview_url": False}}


def _question(text: str, buttons: Sequence[Button]) -> dict[str, Any]:
    """Return a text with buttons, or with a list where there are more of them or their labels are long."""
    short = len(buttons) <= MOST_BUTTONS and all(len(one.label) <= LONGEST_LABEL for one in buttons)
    if short:
        replies = [{"type": "reply", "reply": {"id": _choice_id(one), "title": one.label}} for one in buttons]
        return _interactive("button", text, {"buttons": replies})
    sections = [{"rows": [_row(one) for one in buttons]}]
    return _interactive("list", text, {"button": MENU_LABEL, "sections": sections})


def _link(text: str, button: Button) -> dict[str, Any]:
    parameters = {"display_text": _cut(button.label, LONGEST_LABEL), "url": button.url}
    return _interactive("cta_url", text, {"name": "cta_url", "parameters": parameters})


def _interactive(kind: str, text: str, action: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "interactive", "interactive": {"type": kind, "body": {"text": text}, "action": action}}


def _row(button: Button) -> dict[str, str]:
    row = {"id": _choice_id(button), "title": _cut(button.label, LONGEST_ROW)}
    if len(button.label) > LONGEST_ROW:
        row["description"] = _cut(button.label, LONGEST_ROW_DETAIL)
    return row


def _choice_id(button: Button) -> str:
    if len(button.action) > 200:  # noqa: PLR2004 -- WhatsApp's limit for the id of a row
        problem = "the value of a button may have 200 characters"
        raise DeliveryRefusedError(Platform.WHATSAPP, problem)
    return button.action


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


# Files


def _takes_caption(attachment: Attachment, text: str) -> bool:
    fits = LengthUnit.UTF16.length(text) <= LONGEST_CAPTION
    return fits and _MEDIA.get(attachment.kind) in _CAPTIONED


def _files(attachments: Sequence[Attachment], caption: str) -> list[dict[str, Any] | _Upload]:
    return [
        _place(one) if one.kind is AttachmentKind.LOCATION else _file(one, caption) for one in attachments
    ]


def _file(attachment: Attachment, caption: str) -> dict[str, Any] | _Upload:
    kind, url = _MEDIA[attachment.kind], attachment.url
    member: dict[str, Any] = {"caption": caption} if caption else {}
    if kind == "document" and attachment.name:
        member["filename"] = attachment.name
    if url.startswith(MEDIA):
        return {"type": kind, kind: {"id": url.removeprefix(MEDIA), **member}}
    if url.startswith(("http://", "https://")):
        return {"type": kind, kind: {"link": url, **member}}
    if url.startswith("data:"):
        return _Upload(kind, member, file_of_data_url(attachment, Platform.WHATSAPP))
    problem = f"{attachment.name or 'an attachment'} has no address that WhatsApp can read: http(s) or data"
    raise DeliveryRefusedError(Platform.WHATSAPP, problem)


def _place(attachment: Attachment) -> dict[str, Any]:
    found = _GEO.match(attachment.url)
    if found is None:
        problem = f"{attachment.url[:40]!r} is no place of the form geo:latitude,longitude"
        raise DeliveryRefusedError(Platform.WHATSAPP, problem)
    name = {"name": attachment.name} if attachment.name else {}
    return {"type": "location", "location": {"latitude": found[1], "longitude": found[2], **name}}


def _call_for(
    content: dict[str, Any] | _Upload, frame: Mapping[str, Any], target: ReplyTarget, number: SendingNumber
) -> ApiCall:
    if isinstance(content, _Upload):
        return _upload(content, frame, target, number)
    told = {**frame, **content}
    return ApiCall.of_json(number.messages_url, told, name=str(content["type"]), chat=target.chat_id)


def _upload(upload: _Upload, frame: Mapping[str, Any], target: ReplyTarget, number: SendingNumber) -> ApiCall:
    def show(answer: PlatformAnswer) -> ApiCall:
        member = {"id": answer.member("id"), **upload.member}
        content = {**frame, "type": upload.kind, upload.kind: member}
        return ApiCall.of_json(number.messages_url, content, name=upload.kind, chat=target.chat_id)

    fields = {"messaging_product": "whatsapp", "type": upload.file.media_type}
    call = ApiCall.of_upload(
        number.media_url, fields, {"file": upload.file}, name="media", chat=target.chat_id
    )
    return replace(call, then=show)


# Where to


def _frame(target: ReplyTarget, key: str) -> dict[str, Any]:
    """Return what every message has: for whom it is, what it answers, and the key that comes back."""
    frame: dict[str, Any] = {"messaging_product": "whatsapp", **recipient_of(target)}
    if target.reply_to is not None:
        frame["context"] = {"message_id": target.reply_to}
    frame["biz_opaque_callback_data"] = key
    return frame


def recipient_of(target: ReplyTarget) -> dict[str, str]:
    """Return the members that say for whom a message is: a person by number and id, or a group."""
    chat, person = target.chat_id, target.user_id or ""
    if chat and not (_USER_ID.fullmatch(chat) or _is_number(chat)):
        return {"recipient_type": "group", "to": chat}
    ids = [one for one in (chat, person) if one]
    known: dict[str, str] = {"recipient_type": "individual"}
    if (number := next(filter(_is_number, ids), None)) is not None:
        known["to"] = number.removeprefix("+")
    if (user := next(filter(_USER_ID.fullmatch, ids), None)) is not None:
        known["recipient"] = user
    if len(known) == 1:
        problem = "the target has neither a number nor an id of WhatsApp"
        raise DeliveryRefusedError(Platform.WHATSAPP, problem)
    return known


def _is_number(text: str) -> bool:
    return text.removeprefix("+").isdigit() and text.isascii()
