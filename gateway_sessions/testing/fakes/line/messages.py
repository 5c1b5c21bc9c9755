"""The rules of LINE for the messages that an account sends."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, Final

from gateway_sessions.testing.fakes.http_server import FakeResponse

MOST_MESSAGES: Final = 5
LONGEST_TEXT: Final = 5000
MOST_ITEMS: Final = 13
LONGEST_LABEL: Final = 20
KINDS: Final = {"text", "image", "sticker", "location", "flex", "template", "video", "audio"}


class LineRefusalError(Exception):
    """LINE refuses a call."""

    def __init__(self, status: int, message: str, **more: Any) -> None:
        self.response: FakeResponse = FakeResponse.of_json({"message": message, **more}, status=status)
        super().__init__(message)


def check_messages(given: object) -> list[dict[str, Any]]:
    """Return the messages of a call; refuse what LINE refuses."""
    if not isinstance(given, list) or not 1 <= len(given) <= MOST_MESSAGES:  # pyright: ignore[reportUnknownArgumentType]  # JSON
        raise LineRefusalError(400, "Size must be between 1 and 5")
    messages: list[dict[str, Any]] = given  # pyright: ignore[reportUnknownVariableType]  # JSON
    for message in messages:
        _check_message(message)
    return messages


def _check_message(message: Mapping[str, Any]) -> None:
    kind = message.get("type")
    if kind not in KINDS:
        raise LineRefusalError(400, "A message (messages[0]) in the request body is invalid")
    if kind == "text":
        text = str(message.get("text", ""))
        if not text.strip():
            raise LineRefusalError(400, "May not be empty")
        if len(text.encode("utf-16-le")) // 2 > LONGEST_TEXT:
            raise LineRefusalError(400, "Length must be between 0 and 5000")
    for name in ("originalContentUrl", "previewImageUrl") if kind == "image" else ():
        if not str(message.get(name, "")).startswith("https://"):
            raise LineRefusalError(400, f"{name}: must be https")
    _check_buttons(message)


def _check_buttons(message: Mapping[str, Any]) -> None:
    items: list[dict[str, Any]] = message.get("quickReply", {}).get("items", [])
    if len(items) > MOST_ITEMS:
        raise LineRefusalError(400, "Size must be between 1 and 13")
    for item in items:
        if not 1 <= len(item["action"]["label"]) <= LONGEST_LABEL:
            raise LineRefusalError(400, "Length must be between 1 and 20")


def check_retry_key(key: str) -> str:
    """Return a retry key; refuse what is no UUID."""
    try:
        return str(uuid.UUID(key)) if key else ""
    except ValueError:
        raise LineRefusalError(400, "Invalid retry key") from None


def shown_words(message: Mapping[str, Any]) -> str:
    """Return all that people see of a message."""
    words = [str(message.get("text", "")), str(message.get("originalContentUrl", ""))]
    items: list[dict[str, Any]] = message.get("quickReply", {}).get("items", [])
    words += [f"[{item['action']['label']}]" for item in items]
    return "\n".join(filter(None, words))
