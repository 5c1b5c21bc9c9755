"""Fetching of the files that people send, through the adapter of their account."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from gateway_sessions.adapters.protocol import Adapter, FetchingAdapter
from gateway_sessions.core.queue.inbound import Attachment
from gateway_sessions.errors import InvalidInputError

FetchFile: TypeAlias = Callable[[Attachment, int], Awaitable[bytes]]
"""Returns the content of an attachment of up to so many bytes."""


def fetching_from(adapter: Adapter) -> FetchFile | None:
    """Return the function that fetches an attachment of up to so many bytes; None if the adapter cannot."""
    if not isinstance(adapter, FetchingAdapter):
        return None
    fetching: FetchingAdapter = adapter

    async def fetch(attachment: Attachment, most: int) -> bytes:
        content = await fetching.fetch(attachment, most=most)
        if len(content) <= most:
            return content
        problem = f"{attachment.name or 'the file'} has {len(content)} bytes, at most {most} are fetched"
        raise InvalidInputError(problem)

    return fetch
