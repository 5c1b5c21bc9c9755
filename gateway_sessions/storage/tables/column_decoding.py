"""Decoding of column values with errors that name the damaged row, and escaping of text for patterns.

A value that no version of this program writes raises an error that names its row, and the row is left as it
is: the program never guesses at damaged data.
"""

from __future__ import annotations

import logging
from enum import StrEnum
from typing import Final, NoReturn, TypeVar, cast

import msgspec

from gateway_sessions.core.transcript.messages import Content
from gateway_sessions.errors import StorageCorruptError

logger: Final = logging.getLogger(__name__)

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

DAMAGE: Final = (
    AttributeError,
    KeyError,
    TypeError,
    ValueError,
    OverflowError,
    RecursionError,
    StorageCorruptError,
    msgspec.MsgspecError,
)
"""The errors that damaged values raise while they are decoded; caught around the decoding alone."""


def raise_damaged(what: str, error: Exception, part: str = "it") -> NoReturn:
    """Raise the error that a *part* of a row cannot be read."""
    found = error.problem if isinstance(error, StorageCorruptError) else f"{type(error).__name__}: {error}"
    problem = f"{part} is damaged ({found}); it was left as it is"
    raise StorageCorruptError(what, problem) from error


def log_skipped_row(what: str, **facts: str) -> None:
    """Log that a damaged row is left aside, while all other rows are used."""
    told = {"action": "left_aside", "what": what, **facts}
    logger.warning("%s is damaged and left aside; 'sessiondb repair' mends it", what, extra=told)


def decode_json(what: str, text: str | bytes | None, kind: type[T]) -> T:
    """Decode the JSON of a column; no text is `null`."""
    try:
        return msgspec.json.decode("null" if text is None else text, type=kind)
    except DAMAGE as error:
        raise_damaged(what, error)


def decode_content_parts(what: str, parts: str) -> Content:
    """Decode the content of a message that consists of several parts."""
    return cast("Content", decode_json(what, parts, object))


def enum_member(what: str, kind: type[E], value: str) -> E:
    """Return the member of an enum that a column names."""
    try:
        return kind(value)
    except ValueError as error:
        raise_damaged(what, error)


def escape_like_pattern(text: str) -> str:
    """Return the text as a part of a `LIKE` pattern in which every character stands for itself."""
    return text.replace("~", "~~").replace("%", "~%").replace("_", "~_")
