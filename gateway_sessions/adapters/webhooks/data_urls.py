"""The content of attachments whose address holds it: `data:image/png;base64,…`."""

from __future__ import annotations

import base64
import binascii
from urllib.parse import unquote_to_bytes

from gateway_sessions.adapters.webhooks.api_calls import FileToSend
from gateway_sessions.core.queue.inbound import Attachment
from gateway_sessions.errors import DeliveryRefusedError


def file_of_data_url(attachment: Attachment, platform: str) -> FileToSend:
    """Return the content of an attachment whose address begins with `data:`; refuse one that is damaged."""
    head, _, data = attachment.url.partition(",")
    media_type, *options = head.removeprefix("data:").split(";")
    try:
        content = base64.b64decode(data, validate=True) if "base64" in options else unquote_to_bytes(data)
    except (binascii.Error, ValueError) as error:
        problem = f"the content of an attachment cannot be read ({error})"
        raise DeliveryRefusedError(platform, problem) from error
    kind = attachment.media_type or media_type or "application/octet-stream"
    return FileToSend(attachment.name or "file", content, kind)
