"""Decoding of column values with errors that name the damaged row, and the names of the locks.

What no version of this program writes is told with what it belongs to, and left as it is: it is never guessed
at, and never an error that nobody expects.
"""

from __future__ import annotations

import logging
from enum import StrEnum
from typing import Final, NoReturn, TypeVar, cast

import msgspec

from gateway_sessions.core.transcript.messages import Content
from gateway_sessions.errors import StorageCorruptError

logger = logging.getLogger(__name__)

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
"""What goes wrong when values are read that nobody has written: caught around the reading alone."""


def tell_damage(what: str, error: Exception, part: str = "it") -> NoReturn:
    """Raise the error for a thing of which a *part* cannot be read."""
    found = error.problem if isinstance(error, StorageCorruptError) else f"{type(error).__name__}: {error}"
    problem = f"{part} is damaged ({found}); it was left as it is"
    raise StorageCorruptError(what, problem) from error


def leave_aside(what: str, **facts: str) -> None:
    """Name in the log a thing that is damaged, and without which all others go on."""
    told = {"action": "left_aside", "what": what, **facts}
    logger.warning("%s is damaged and left aside; 'sessiondb repair' mends it", what, extra=told)


def from_json(what: str, text: str | bytes | None, kind: type[T]) -> T:
    """What a column holds as JSON; nothing is null."""
    try:
        return msgspec.json.decode("null" if text is None else text, type=kind)
    except DAMAGE as error:
        tell_damage(what, error)


def content_of(what: str, parts: str) -> Content:
    """What a message says that speaks in parts."""
    return cast("Content", from_json(what, parts, object))


def member(what: str, kind: type[E], value: str) -> E:
    """The one that a column names."""
    try:
        return kind(value)
    except ValueError as error:
        tell_damage(what, error)


def escaped(text: str) -> str:
    """The text as a part of a pattern: nothing in it stands for anything but itself."""
    return text.replace("~", "~~").replace("%", "~%").replace("_", "~_")
