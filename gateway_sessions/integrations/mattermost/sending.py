"""The posts that show a message to people, and the markup of Mattermost."""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Any, Final, NamedTuple
from urllib.parse import unquote_to_bytes

from gateway_sessions.adapters.webhooks.api_calls import FileToSend
from gateway_sessions.core.delivery.adapter_capabilities import describe_attachment
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.core.identity.source import Platform
from gateway_sessions.core.markdown.dialects import MATTERMOST
from gateway_sessions.core.queue.inbound import Attachment
from gateway_sessions.errors import DeliveryRefusedError
from gateway_sessions.integrations.mattermost.posts import FILE

MOST_FILES: Final = 10
"""The most files of one post."""
SENT_AS: Final = "gateway_sessions_sent_as"
"""The property of a post by which a message is found again: servers forget pending ids after 30 seconds."""
KEY_DIGITS: Final = 32
"""The digits of a key's hash: 128 bits tell all messages apart."""


class PostDraft(NamedTuple):
    """A post that is to be made: its body, and the files that must be uploaded before."""

    body: dict[str, Any]
    files: tuple[FileToSend | str, ...]
    """Contents, or ids of files that are on the server, of which a copy is made."""


def key_hash(idempotency_key: str) -> str:
    """Return a key in the form that posts hold."""
    return hashlib.sha256(idempotency_key.encode("utf-8", "surrogatepass")).hexdigest()[:KEY_DIGITS]


def post_that_shows(target: ReplyTarget, message: OutboundMessage, idempotency_key: str) -> PostDraft:
    """Return the post that shows a message with all its files; refuse what Mattermost would."""
    files: list[FileToSend | str] = []
    lines = [text_of(message)]
    for attachment in message.attachments:
        file = _file_of(attachment)
        if file is None:
            lines.append(f"[{attachment.kind}: {describe_attachment(attachment)}]")
        else:
            files.append(file)
    if len(files) > MOST_FILES:
        problem = f"a post may have {MOST_FILES} files, this one has {len(files)}"
        raise DeliveryRefusedError(Platform.MATTERMOST, problem)
    key = key_hash(idempotency_key)
    extra = message.extra.get(Platform.MATTERMOST, {})
    props = {**extra.get("props", {}), SENT_AS: key}
    body = {**extra, "channel_id": target.chat_id, "message": "\n".join(filter(None, lines)), "props": props}
    if target.thread_id is not None:
        body["root_id"] = target.thread_id
    # The ids of all accounts of a server share one space.
    return PostDraft({**body, "pending_post_id": key}, tuple(files))


def text_of(message: OutboundMessage) -> str:
    """Return the text of a post; refuse one that is too long."""
    text = message.text if message.markup is None else message.markup
    if len(text) > MATTERMOST.limit:
        problem = f"a post may have {MATTERMOST.limit} characters, this one has {len(text)}"
        raise DeliveryRefusedError(Platform.MATTERMOST, problem)
    return text


def _file_of(attachment: Attachment) -> FileToSend | str | None:
    """Return the file of an attachment; None: it is an address, and shown as one."""
    url, name = attachment.url, attachment.name or "file"
    if url.startswith(FILE):
        return url.removeprefix(FILE)
    if url.startswith("data:"):
        return FileToSend(name, _content_of(url), attachment.media_type or "application/octet-stream")
    if url.startswith(("http://", "https://", "geo:")):
        return None
    problem = f"{attachment.name or 'an attachment'} has no address that Mattermost can show: https or data"
    raise DeliveryRefusedError(Platform.MATTERMOST, problem)


def _content_of(url: str) -> bytes:
    head, _, data = url.partition(",")
    try:
        return base64.b64decode(data, validate=True) if head.endswith(";base64") else unquote_to_bytes(data)
    except (binascii.Error, ValueError) as error:
        problem = f"the content of an attachment cannot be read ({error})"
        raise DeliveryRefusedError(Platform.MATTERMOST, problem) from error
