"""Storable text: characters that no database takes are replaced, and values that would change are refused.

Halves of surrogate pairs and NUL become U+FFFD.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, TypeVar

import msgspec

from gateway_sessions.core.checks import UNSAFE_CHARACTERS, plain_text, plain_value
from gateway_sessions.core.damaged_json import MAX_DEPTH, nesting_depth
from gateway_sessions.errors import InvalidInputError

Choice = TypeVar("Choice", bound=StrEnum)

# 16 MiB: far larger than any real message.
MAX_TEXT_BYTES: Final = 16 << 20
# Longer than any real name of a model, a tool or a reason.
MAX_WORD: Final = 256

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
REPLACEMENT: Final = "\ufffd"


class StorableEncoder:
    """Prepares values for storage, and counts their bytes."""

    __slots__ = ("replaced", "size")

    def __init__(self) -> None:
        self.size: int = 0
        """The number of bytes prepared so far."""
        self.replaced: bool = False
        """Whether a character had to be replaced."""

    def text(self, name: str, value: object) -> str | None:
        """Return the text in storable form, or raise `InvalidInputError` for no text or a long one."""
        if value is None:
            return None
        if not isinstance(value, str):
            raise _invalid_value(name, f"must be text, not {type(value).__name__}")
        text = plain_text(value)
        if "\x00" in text:
            text = self._replace_unstorable(text)
        if text.isascii():
            return self._count_bytes(name, text, len(text))
        try:
            return self._count_bytes(name, text, len(text.encode()))
        except UnicodeEncodeError:
            text = self._replace_unstorable(text)
            return self._count_bytes(name, text, len(text.encode()))

    def json(self, name: str, value: object) -> str | None:
        """Return the value as JSON, or raise `InvalidInputError` if JSON cannot hold it or it is deep."""
        if value is None:
            return None
        text = self.text(name, _dump_json(name, value))
        assert text is not None  # noqa: S101 -- JSON is text
        if text.count("{") + text.count("[") > MAX_DEPTH and nesting_depth(text.encode()) > MAX_DEPTH:
            raise _invalid_value(name, f"is nested more than {MAX_DEPTH} deep")
        if "\\u0000" in text and (clean := _without_nul(value)) != value:
            self.replaced = True
            text = self.text(name, _dump_json(name, clean))
        return text

    def _replace_unstorable(self, text: str) -> str:
        self.replaced = True
        return _UNSTORABLE.sub(REPLACEMENT, text)

    def _count_bytes(self, name: str, text: str, size: int) -> str:
        if size > MAX_TEXT_BYTES:
            raise _invalid_value(name, f"has {size} bytes; {MAX_TEXT_BYTES} are allowed")
        self.size += size
        return text


_ENCODER: Final = msgspec.json.Encoder(enc_hook=plain_value)


def record_as_json(name: str, record: msgspec.Struct, given: Mapping[str, Any]) -> str:
    """Return a record as JSON that every database can hold; *given* are its members from a caller."""
    intake = StorableEncoder()
    if not given:
        try:
            text = _ENCODER.encode(record).decode()
        except UnicodeEncodeError:
            pass
        else:
            if "\\u0000" not in text:
                return intake.text(name, text) or ""
    intake.json(name, dict(given))  # a value that passes here cannot fail below
    return StorableEncoder().json(name, msgspec.to_builtins(record, enc_hook=plain_value)) or ""


def storable_text(text: str) -> str:
    """Return the text as every database and platform can hold it: the sent one equals the stored one."""
    text = plain_text(text)
    if "\x00" not in text:
        try:
            text.encode()  # takes a tenth of the time of a search
        except UnicodeEncodeError:
            pass
        else:
            return text
    return _UNSTORABLE.sub(REPLACEMENT, text)


def truncated_text(text: str, limit: int) -> str:
    """Return the beginning of a text that a program made, as every database can hold it."""
    return _UNSTORABLE.sub(REPLACEMENT, text[:limit])


def check_word(name: str, value: object, limit: int = MAX_WORD) -> str:
    """Return a name from a program, or raise `InvalidInputError` unless it is one short line."""
    if not isinstance(value, str) or not 0 < len(value) <= limit or UNSAFE_CHARACTERS.search(value):
        raise _invalid_value(name, f"must be one line of 1 to {limit} characters")
    return plain_text(value)


def check_choice(name: str, value: str, choices: type[Choice]) -> Choice:
    """Return one of a closed set of words, or raise `InvalidInputError` if there is no such word."""
    try:
        return choices(value)
    except ValueError:
        raise _invalid_value(name, f"must be one of {', '.join(choices)}") from None


def _dump_json(name: str, value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except RecursionError:
        raise _invalid_value(name, f"is nested more than {MAX_DEPTH} deep") from None
    except (TypeError, ValueError) as error:
        raise _invalid_value(name, f"cannot be said in JSON: {error}") from error


def _without_nul(value: Any) -> Any:
    match value:
        case str():
            return value.replace("\x00", REPLACEMENT)
        case dict():
            return {_without_nul(key): _without_nul(one) for key, one in value.items()}  # pyright: ignore[reportUnknownVariableType]  # whatever a caller gave
        case list() | tuple():
            return [_without_nul(one) for one in value]  # pyright: ignore[reportUnknownVariableType]  # the same
        case _:
            return value


def _invalid_value(name: str, problem: str) -> InvalidInputError:
    return InvalidInputError(f"{name} {problem}")
