"""The calls of the Bot API that show a message to people."""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import unquote_to_bytes

import msgspec

from gateway_sessions.core.delivery.outbound_messages import Button, OutboundMessage, ReplyTarget
from gateway_sessions.core.display_text import shorten_text
from gateway_sessions.core.identity.source import Platform
from gateway_sessions.core.notices.command_replies import CommandHelp
from gateway_sessions.core.queue.inbound import Attachment, AttachmentKind
from gateway_sessions.core.text_length import LengthUnit
from gateway_sessions.errors import DeliveryRefusedError
from gateway_sessions.integrations.telegram.bot_api import Upload
from gateway_sessions.integrations.telegram.updates import FILE

LONGEST_TEXT: Final = 4096
LONGEST_CAPTION: Final = 1024
LONGEST_ACTION: Final = 64
"""The most bytes that a button may tell."""
BUTTONS_OF_ROW: Final = 4
MOST_COMMANDS: Final = 100
LONGEST_SUMMARY: Final = 256
LABELS_OF_ROW: Final = 32
"""The most buttons of a row, and characters on them all together, that a phone shows without cutting them."""
UTF16: Final = LengthUnit.UTF16

_METHODS: Final = {
    AttachmentKind.PHOTO: ("sendPhoto", "photo"),
    AttachmentKind.VIDEO: ("sendVideo", "video"),
    AttachmentKind.AUDIO: ("sendAudio", "audio"),
    AttachmentKind.VOICE: ("sendVoice", "voice"),
    AttachmentKind.DOCUMENT: ("sendDocument", "document"),
}
_COMMAND_NAME: Final = re.compile(r"[a-z0-9_]{1,32}")
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
    more = {**_buttons_of(message), **_extra_of(message)}
    if message.text.strip() and not caption_fits:
        text = _with_text("sendMessage", {**place, **more}, message, "text")
        return [text, *(BotCall(*_file_call(place, one)) for one in message.attachments)]
    if not message.attachments:
        return [BotCall("sendMessage", {**place, **more})]
    *calls, (method, last) = (_file_call(place, one) for one in message.attachments)
    last |= more
    shown = _with_text(method, last, message, "caption") if message.text.strip() else BotCall(method, last)
    return [*(BotCall(*call) for call in calls), shown]


def _file_call(place: dict[str, Any], attachment: Attachment) -> tuple[str, dict[str, Any]]:
    method, name = _METHODS[attachment.kind]
    return method, {**place, name: _file_of(attachment)}


def call_that_edits(target: ReplyTarget, message_id: str, message: OutboundMessage) -> BotCall:
    """Return the call that lets a message say something else; refuse what one message cannot hold."""
    place = {"chat_id": _chat_of(target), "message_id": int(message_id)}
    more = {**_buttons_of(message), **_extra_of(message)}
    return _with_text("editMessageText", {**place, **more}, message, "text")


def call_that_drafts(target: ReplyTarget, message: OutboundMessage, key: str) -> BotCall:
    """Return the call that shows how far a reply has come."""
    place = _place_of(msgspec.structs.replace(target, reply_to=None))
    # Telegram wants a number that is not zero, and animates drafts of one number.
    number = {"draft_id": zlib.crc32(key.encode()) or 1}
    return _with_text("sendMessageDraft", {**place, **number}, message, "text")


def menu_of(commands: Iterable[CommandHelp]) -> list[dict[str, str]]:
    """Return the menu of commands as Telegram takes it: names in its alphabet, and a sentence each."""
    menu: list[dict[str, str]] = []
    for command in commands:
        name = command.name.replace("-", "_").lower()
        if _COMMAND_NAME.fullmatch(name) and len(menu) < MOST_COMMANDS:
            summary = shorten_text(command.summary, LONGEST_SUMMARY)
            menu.append({"command": name, "description": summary or f"/{name}"})
    return menu


def _with_text(method: str, parameters: dict[str, Any], message: OutboundMessage, name: str) -> BotCall:
    """Return a call with the text of a message; refuse a text that is too long for it."""
    if (length := UTF16.length(message.text)) > LONGEST_TEXT:
        problem = f"a message may have {LONGEST_TEXT} UTF-16 units, this one has {length}"
        raise DeliveryRefusedError(Platform.TELEGRAM, problem)
    plain = {**parameters, name: message.text}
    if message.markup is None:
        return BotCall(method, plain)
    return BotCall(method, {**plain, name: message.markup, "parse_mode": "HTML"}, plain)


def _buttons_of(message: OutboundMessage) -> dict[str, Any]:
    """Return the buttons of a message as Telegram takes them; refuse a value that it does not."""
    if not message.buttons:
        return {}
    for button in message.buttons:
        if button.url is None and (size := len(button.action.encode())) > LONGEST_ACTION:
            problem = f"a button's value may have {LONGEST_ACTION} bytes, that of {button.label!r} has {size}"
            raise DeliveryRefusedError(Platform.TELEGRAM, problem)
    keyboard = [[_button(one) for one in row] for row in _rows(message.buttons)]
    return {"reply_markup": {"inline_keyboard": keyboard}}


def _button(button: Button) -> dict[str, str]:
    if button.url is not None:
        return {"text": button.label, "url": button.url}
    return {"text": button.label, "callback_data": button.action}


def _rows(buttons: Sequence[Button]) -> Sequence[Sequence[Button]]:
    """Return the rows of a keyboard: one, if all labels can be read beside each other on a phone."""
    if sum(len(one.label) for one in buttons) <= LABELS_OF_ROW and len(buttons) <= BUTTONS_OF_ROW:
        return [buttons]
    return [[one] for one in buttons]


def _extra_of(message: OutboundMessage) -> dict[str, Any]:
    return dict(message.extra.get(Platform.TELEGRAM, {}))


def _place_of(target: ReplyTarget) -> dict[str, Any]:
    place: dict[str, Any] = {"chat_id": _chat_of(target)}
    if target.thread_id is not None:
        place["message_thread_id"] = int(target.thread_id)
    if target.reply_to is not None and target.reply_to.isdigit():
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
