"""`check_size`: refuses a file that is known to be too large before anybody asks for its content."""

from __future__ import annotations

from gateway_sessions.core.queue.inbound import Attachment
from gateway_sessions.errors import InvalidInputError


def check_size(attachment: Attachment, most: int) -> None:
    """Raise `InvalidInputError` if the platform has told that a file has more than *most* bytes."""
    if (attachment.size or 0) > most:
        name = attachment.name or "the file"
        problem = f"{name} has {attachment.size} bytes, at most {most} are fetched"
        raise InvalidInputError(problem)
