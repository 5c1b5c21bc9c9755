"""The events that show a message to people, and those that change one."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast
from urllib.parse import unquote_to_bytes

from gateway_sessions.core.delivery.adapter_capabilities import describe_attachment
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.core.identity.source import Platform
from gateway_sessions.core.queue.inbound import Attachment, AttachmentKind
from gateway_sessions.core.text_length import LengthUnit
from gateway_sessions.errors import DeliveryRefusedError
from gateway_sessions.integrations.matrix.client_api import MXC
from gateway_sessions.integrations.matrix.encryption import file_content, key_in

LONGEST_TEXT: Final = 20_000
"""In bytes: an event of 64 KiB holds a text twice, plain and with markup, and what a server adds."""
MOST_CONTENT_BYTES: Final = 60_000
"""The rest of the 65 535 bytes of an event is for what a server adds: ids, hashes and signatures."""
MOST_MARKED_BYTES: Final = 44_000
"""Encryption makes a content larger by a third, and markup is shown in all rooms alike."""
LONGEST_PREVIEW: Final = 200
"""The characters of an edit that clients show that do not know edits."""
SENT_AS: Final = "gateway_sessions.sent_as"
"""The member of an event by which a message is found again: servers forget ids of transactions."""
KEY_DIGITS: Final = 32
"""The digits of a key's hash: 128 bits tell all messages apart."""

_MSGTYPES: Final = {
    AttachmentKind.PHOTO: "m.image",
    AttachmentKind.VIDEO: "m.video",
    AttachmentKind.AUDIO: "m.audio",
    AttachmentKind.VOICE: "m.audio",
    AttachmentKind.DOCUMENT: "m.file",
    AttachmentKind.STICKER: "m.image",
}
_MEDIA_TYPES: Final = {"m.image": "image/png", "m.video": "video/mp4", "m.audio": "audio/ogg"}


class MatrixFile(NamedTuple):
    """A file that must be on the homeserver before an event can show it."""

    content: bytes
    media_type: str
    name: str


class MatrixSend(NamedTuple):
    """An event to send: its content, the id of its transaction, and a file whose address is still missing."""

    transaction: str
    content: dict[str, Any]
    file: MatrixFile | None = None


def key_hash(idempotency_key: str) -> str:
    """Return a key in the form that paths and events hold."""
    return hashlib.sha256(idempotency_key.encode("utf-8", "surrogatepass")).hexdigest()[:KEY_DIGITS]


def events_that_show(target: ReplyTarget, message: OutboundMessage, idempotency_key: str) -> list[MatrixSend]:
    """Return the events that show a message, the text first; refuse what no event can hold."""
    contents: list[tuple[dict[str, Any], MatrixFile | None]] = []
    if message.text.strip():
        contents.append((text_content(message), None))
    contents += [_attachment_content(one) for one in message.attachments]
    key, relation = key_hash(idempotency_key), _relation_to(target)
    sends: list[MatrixSend] = []
    for number, (content, file) in enumerate(contents, start=1):
        sent_as = {SENT_AS: {"key": key, "part": number, "of": len(contents)}}
        whole = {**content, **relation, **sent_as}
        sends.append(MatrixSend(f"{key}.{number}", _checked(whole), file))
    return sends


def content_that_edits(message_id: str, message: OutboundMessage) -> dict[str, Any]:
    """Return the content of the event that lets a message say something else."""
    new = text_content(message)
    preview = message.text[:LONGEST_PREVIEW] + ("…" if len(message.text) > LONGEST_PREVIEW else "")
    return _checked(
        {
            "msgtype": new["msgtype"],
            "body": f"* {preview}",
            "m.mentions": {},
            "m.new_content": new,
            "m.relates_to": {"rel_type": "m.replace", "event_id": message_id},
        }
    )


def text_content(message: OutboundMessage) -> dict[str, Any]:
    """Return the content of an event that shows a text, with its markup unless that makes it too large."""
    if (length := LengthUnit.BYTES.length(message.text)) > LONGEST_TEXT:
        problem = f"a message may have {LONGEST_TEXT} bytes, this one has {length}"
        raise DeliveryRefusedError(Platform.MATRIX, problem)
    plain: dict[str, Any] = {
        "msgtype": "m.notice" if message.is_notice else "m.text",
        "body": message.text,
        "m.mentions": {},  # a name in an answer rings nobody's bell
        **_extra(message),
    }
    if message.markup is None:
        return plain
    marked = {**plain, "format": "org.matrix.custom.html", "formatted_body": message.markup}
    return marked if size_of(marked) <= MOST_MARKED_BYTES else plain


def size_of(content: Mapping[str, Any]) -> int:
    """Return the bytes of a content in canonical JSON."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return len(text.encode("utf-8", "surrogatepass"))


def _checked(content: dict[str, Any]) -> dict[str, Any]:
    if (size := size_of(content)) > MOST_CONTENT_BYTES:
        problem = f"an event may have 65535 bytes, and the content of this one alone has {size}"
        raise DeliveryRefusedError(Platform.MATRIX, problem)
    return content


def _extra(message: OutboundMessage) -> Mapping[str, Any]:
    extra: object = message.extra.get(Platform.MATRIX)
    return cast("Mapping[str, Any]", extra) if isinstance(extra, Mapping) else {}


def _relation_to(target: ReplyTarget) -> dict[str, Any]:
    """Return how a message belongs to others: an answer, or one more message of a thread."""
    if target.thread_id is not None:
        # The answered message is named for clients that know no threads; the others show no quotation.
        answered = {"event_id": target.reply_to or target.thread_id}
        relation = {"rel_type": "m.thread", "event_id": target.thread_id, "is_falling_back": True}
        return {"m.relates_to": {**relation, "m.in_reply_to": answered}}
    if target.reply_to is not None:
        return {"m.relates_to": {"m.in_reply_to": {"event_id": target.reply_to}}}
    return {}


def _attachment_content(attachment: Attachment) -> tuple[dict[str, Any], MatrixFile | None]:
    """Return the content of an event with a file, and the file if it must be uploaded.

    An address from outside of Matrix is shown as a link: clients do not load files from anywhere else.
    """
    url = attachment.url
    if url.startswith("geo:"):
        words = attachment.name or url
        return {"msgtype": "m.location", "body": words, "geo_uri": url}, None
    kind = _MSGTYPES.get(attachment.kind, "m.file")
    if url.startswith(MXC):
        return _file_content(kind, attachment, {}), None
    if url.startswith("data:"):
        file = _file_of(url, kind, attachment)
        info = {"mimetype": file.media_type, "size": len(file.content)}
        return _file_content(kind, attachment, info), file
    if url.startswith(("http://", "https://")):
        link = f"[{attachment.kind}: {describe_attachment(attachment)}]"
        return {"msgtype": "m.text", "body": link, "m.mentions": {}}, None
    problem = f"{attachment.name or 'an attachment'} has no address that Matrix can show: mxc, https or data"
    raise DeliveryRefusedError(Platform.MATRIX, problem)


def _file_content(kind: str, attachment: Attachment, info: Mapping[str, Any]) -> dict[str, Any]:
    name = attachment.name or "file"
    told = {"mimetype": attachment.media_type, "size": attachment.size, **info}
    content: dict[str, Any] = {
        "msgtype": kind,
        "body": name,
        "filename": name,
        **_place_of(attachment.url),
        "info": {member: value for member, value in told.items() if value is not None},
    }
    if attachment.kind is AttachmentKind.VOICE:
        content["org.matrix.msc3245.voice"] = {}
    return content


def _place_of(url: str) -> dict[str, Any]:
    """Return where a file is that is on the homeserver already."""
    if not url.startswith(MXC):
        return {}
    key = key_in(url)
    return {"url": url} if key is None else {"file": file_content(url, key)}


def _file_of(url: str, kind: str, attachment: Attachment) -> MatrixFile:
    head, _, data = url.partition(",")
    told = head.removeprefix("data:").removesuffix(";base64").partition(";")[0]
    media_type = attachment.media_type or told or _MEDIA_TYPES.get(kind, "application/octet-stream")
    try:
        encoded = head.endswith(";base64")
        content = base64.b64decode(data, validate=True) if encoded else unquote_to_bytes(data)
    except (binascii.Error, ValueError) as error:
        problem = f"the content of an attachment cannot be read ({error})"
        raise DeliveryRefusedError(Platform.MATRIX, problem) from error
    return MatrixFile(content, media_type, attachment.name or "file")
