"""The requests that show a message to people on Discord."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, TypeVar
from urllib.parse import unquote_to_bytes

from gateway_sessions.core.delivery.adapter_capabilities import AdapterCapabilities, ReceiveClass
from gateway_sessions.core.delivery.outbound_messages import Button, OutboundMessage
from gateway_sessions.core.identity.source import Platform
from gateway_sessions.core.markdown.dialects import DISCORD
from gateway_sessions.core.queue.inbound import Attachment, AttachmentKind
from gateway_sessions.core.text_length import LengthUnit
from gateway_sessions.errors import DeliveryRefusedError
from gateway_sessions.integrations.discord.api import DiscordRequest, DiscordUpload

LONGEST_TEXT: Final = 2000
LONGEST_NONCE: Final = 25
LONGEST_LABEL: Final = 80
LONGEST_CUSTOM_ID: Final = 100
BUTTONS_IN_ROW: Final = 5
MOST_BUTTONS: Final = 25
MOST_FILES: Final = 10
"""So many files, and so many embeds, one message may have."""
SILENT: Final = 1 << 12
"""The flag of a message that makes no sound on anybody's phone."""
UNIQUE_FOR: Final = timedelta(minutes=2)
"""How long a nonce is certainly unique. Discord promises "the past few minutes", which is more than two; a
repeat that begins within two minutes arrives before they are over."""
OWN_VALUE: Final = "gs:"
"""The beginning of the name of a button of ours; behind it stands the value."""
OWN_DIGEST: Final = "gs#"
"""The same for a value that is too long: behind it stands a digest, under which the value is remembered."""

DISCORD_CAPABILITIES: Final = AdapterCapabilities(
    receives=ReceiveClass.BACKFILLED,
    edit=True,
    typing=True,
    idempotent_for=UNIQUE_FOR,
    dialect=DISCORD,
    max_length=LONGEST_TEXT,
    length_unit=LengthUnit.UTF16,
    # Five changes in five seconds in a channel: this leaves room for other messages.
    min_edit_interval=timedelta(seconds=1.5),
    attachments=frozenset(
        {
            AttachmentKind.PHOTO,
            AttachmentKind.VIDEO,
            AttachmentKind.AUDIO,
            AttachmentKind.VOICE,
            AttachmentKind.DOCUMENT,
        }
    ),
    buttons=True,
)

T = TypeVar("T")
_NO_MENTIONS: Final[Mapping[str, Any]] = {"allowed_mentions": {"parse": []}}
"""Whatever an agent writes wakes nobody; `OutboundMessage.extra` may say otherwise."""
_ENDINGS: Final = {"text/plain": "txt", "audio/mpeg": "mp3", "image/jpeg": "jpg", "video/quicktime": "mov"}
"""The endings of names that differ from the media type: Discord shows a file by its name."""
_MESSAGES: Final = "/channels/{channel_id}/messages"
_WORD: Final = re.compile(r"\S+")


def requests_that_show(
    channel_id: str, message: OutboundMessage, *, idempotency_key: str, reply_to: str | None = None
) -> list[DiscordRequest]:
    """Return the requests that show a message, the text first; refuse what Discord would."""
    payloads = _payloads(message)
    if reply_to is not None:
        # Somebody may have deleted the question meanwhile.
        payloads[0]["message_reference"] = {"message_id": reply_to, "fail_if_not_exists": False}
    if message.is_notice:
        for payload in payloads:
            payload["flags"] = SILENT
    payloads[0] |= message.extra.get(Platform.DISCORD, {})
    uploads = _chunks(_uploads_of(message), MOST_FILES)
    ids = {"channel_id": channel_id}
    requests: list[DiscordRequest] = []
    for number, payload in enumerate([*payloads, *({} for _ in uploads[len(payloads) :])]):
        files = uploads[number] if number < len(uploads) else ()
        json = {**_NO_MENTIONS, **payload, **_nonce(idempotency_key, number)}
        requests.append(DiscordRequest(method="POST", path=_MESSAGES, ids=ids, json=json, files=files))
    return requests


def request_that_edits(channel_id: str, message_id: str, message: OutboundMessage) -> DiscordRequest:
    """Return the request that lets a message say something else; refuse what one message cannot hold."""
    first, *more = _payloads(message)
    if more or any(one.url.startswith("data:") for one in message.attachments):
        problem = "a message with files does not take the place of one without"
        raise DeliveryRefusedError(Platform.DISCORD, problem)
    json = {**_NO_MENTIONS, **first, **message.extra.get(Platform.DISCORD, {})}
    ids = {"channel_id": channel_id, "message_id": message_id}
    return DiscordRequest(method="PATCH", path=_MESSAGES + "/{message_id}", ids=ids, json=json)


def request_for_typing(channel_id: str) -> DiscordRequest:
    """Return the request that shows for ten seconds that somebody writes."""
    return DiscordRequest(method="POST", path="/channels/{channel_id}/typing", ids={"channel_id": channel_id})


def request_for_private_channel(user_id: str) -> DiscordRequest:
    """Return the request that opens the private channel with a person, or finds the one there is."""
    return DiscordRequest(method="POST", path="/users/@me/channels", json={"recipient_id": user_id})


def nonce_of(idempotency_key: str, number: int = 0) -> str:
    """Return the nonce of one of the messages that a reply takes."""
    digest = hashlib.sha256(f"{idempotency_key}\n{number}".encode("utf-8", "surrogatepass")).digest()
    return base64.urlsafe_b64encode(digest).decode()[:LONGEST_NONCE]


def _nonce(idempotency_key: str, number: int) -> dict[str, Any]:
    return {"nonce": nonce_of(idempotency_key, number), "enforce_nonce": True}


# What is shown


def shown_text(message: OutboundMessage) -> str:
    """Return the text of a message in Discord's markup; refuse one that is too long."""
    plain = message.text
    if message.markup is not None:
        return message.markup
    if (length := LengthUnit.UTF16.length(plain)) > LONGEST_TEXT:
        problem = f"a message may have {LONGEST_TEXT} UTF-16 units, this one has {length}"
        raise DeliveryRefusedError(Platform.DISCORD, problem)
    escaped = escaped_text(plain)
    # A text that is too long only because of its escapes is better shown with accidental marks.
    return escaped if LengthUnit.UTF16.length(escaped) <= LONGEST_TEXT else plain


def escaped_text(text: str) -> str:
    """Return a text so that people see each of its characters, and no markup."""
    return "\n".join(_escaped_line(line) for line in text.split("\n"))


def _escaped_line(line: str) -> str:
    first = _WORD.search(line)
    begins = first.start() if first is not None else 0
    return _WORD.sub(lambda word: DISCORD.escape(word[0], word.start() == begins), line)


def _payloads(message: OutboundMessage) -> list[dict[str, Any]]:
    """Return the contents of the messages that show a text, its buttons and the addresses of files."""
    first: dict[str, Any] = {"content": shown_text(message)}
    addresses: list[str] = []
    embeds: list[dict[str, Any]] = []
    for attachment in message.attachments:
        if attachment.url.startswith("data:"):
            continue
        if not attachment.url.startswith(("http://", "https://")):
            name = attachment.name or "an attachment"
            problem = f"{name} has no address that Discord can read: http(s) or data"
            raise DeliveryRefusedError(Platform.DISCORD, problem)
        if attachment.kind is AttachmentKind.PHOTO and len(embeds) < MOST_FILES:
            embeds.append({"image": {"url": attachment.url}})
        else:
            addresses.append(attachment.url)
    if embeds:
        first["embeds"] = embeds
    if message.buttons:
        first["components"] = rows_of_buttons(message.buttons)
    # Discord shows a file or a page behind an address that stands alone.
    return [first, *({"content": address} for address in addresses)]


def rows_of_buttons(buttons: Sequence[Button]) -> list[dict[str, Any]]:
    """Return the components that show buttons; refuse more than a message can have."""
    if len(buttons) > MOST_BUTTONS:
        problem = f"a message may have {MOST_BUTTONS} buttons, this one has {len(buttons)}"
        raise DeliveryRefusedError(Platform.DISCORD, problem)
    return [{"type": 1, "components": [*map(_button, row)]} for row in _chunks(buttons, BUTTONS_IN_ROW)]


def _chunks(items: Sequence[T], size: int) -> list[tuple[T, ...]]:
    return [tuple(items[at : at + size]) for at in range(0, len(items), size)]


def _button(button: Button) -> dict[str, Any]:
    label = button.label if len(button.label) <= LONGEST_LABEL else f"{button.label[: LONGEST_LABEL - 1]}…"
    if button.url is not None:
        return {"type": 2, "style": 5, "label": label, "url": button.url}
    return {"type": 2, "style": 2, "label": label, "custom_id": custom_id_of(button)}


def custom_id_of(button: Button) -> str:
    """Return the name by which a press tells of a button."""
    whole = f"{OWN_VALUE}{button.action}"
    return whole if len(whole) <= LONGEST_CUSTOM_ID else f"{OWN_DIGEST}{_digest(button.action)}"


def values_to_remember(buttons: Sequence[Button]) -> Mapping[str, str]:
    """Return the values that are too long for the name of a button, by that name."""
    named = {custom_id_of(one): one.action for one in buttons if one.url is None}
    return {name: value for name, value in named.items() if name.startswith(OWN_DIGEST)}


def _digest(value: str) -> str:
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()


def _uploads_of(message: OutboundMessage) -> list[DiscordUpload]:
    return [_upload(one) for one in message.attachments if one.url.startswith("data:")]


def _upload(attachment: Attachment) -> DiscordUpload:
    head, _, data = attachment.url.removeprefix("data:").partition(",")
    media_type = attachment.media_type or head.partition(";")[0] or "application/octet-stream"
    name = attachment.name or f"{attachment.kind}.{_ENDINGS.get(media_type, media_type.partition('/')[2])}"
    try:
        content = (
            base64.b64decode(data, validate=True) if head.endswith(";base64") else unquote_to_bytes(data)
        )
    except (binascii.Error, ValueError) as error:
        problem = f"the content of {name} cannot be read ({error})"
        raise DeliveryRefusedError(Platform.DISCORD, problem) from error
    return DiscordUpload(name, content, media_type)
