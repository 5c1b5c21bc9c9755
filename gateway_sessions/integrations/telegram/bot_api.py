"""The port to Telegram's Bot API: what a client library has to do for the adapter, and how calls fail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from gateway_sessions.integrations.telegram.objects import ApiAnswer


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that a call carries."""

    name: str
    content: bytes


class BotApi(Protocol):
    """A client of the Bot API with the token of one bot."""

    async def call(self, method: str, parameters: Mapping[str, Any]) -> Any:
        """Call a method, and return the `result` of the answer as JSON has it.

        Raise `BotApiError` for an answer that refuses, `NotSentError` if nothing was sent, and any other
        error if nobody knows.
        """
        ...

    async def download(self, file_path: str, *, most: int) -> bytes:
        """Return a file of up to *most* bytes; raise `BotApiError` or `ValueError` if that cannot be."""
        ...


class BotApiError(Exception):
    """The Bot API refuses a call."""

    def __init__(
        self, code: int, description: str, *, retry_after: float | None = None, migrated_to: int | None = None
    ) -> None:
        self.code = code
        self.description = description
        self.retry_after = retry_after
        self.migrated_to = migrated_to
        """The id that a group has now, if it became a supergroup."""
        super().__init__(f"{description} ({code})")


class NotSentError(Exception):
    """There was no connection, so the call was not made."""


def result_of(answer: object) -> Any:
    """Return the result in an answer, or raise its refusal; `ValueError` if it is no answer."""
    read = msgspec.convert(answer, ApiAnswer)
    if read.ok:
        return read.result
    raise BotApiError(
        read.error_code,
        read.description,
        retry_after=read.parameters.retry_after,
        migrated_to=read.parameters.migrate_to_chat_id,
    )
