"""Members of an object in a file that anybody may have written: each is used as what it is, or refused."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, cast

from gateway_sessions.core.export.members import FORMAT, MICROS
from gateway_sessions.core.instants import EPOCH, instant_of
from gateway_sessions.core.session import check_tokens
from gateway_sessions.core.storable import check_word
from gateway_sessions.errors import InvalidInputError

MAX_WORD: Final = 256


@dataclass(frozen=True, slots=True)
class Given:
    """One object. What we wrote is exact; other programs have numbers for flags, and JSON in text."""

    members: Mapping[str, Any]
    exact: bool

    @classmethod
    def session(cls, value: object) -> Given:
        """An exported session, which says itself whether it is exact."""
        given = cls.part(value, exact=True)
        return cls(given.members, exact=given.members.get("format") == FORMAT)

    @classmethod
    def part(cls, value: object, *, exact: bool) -> Given:
        """An object within another one."""
        if not isinstance(value, Mapping):
            raise unusable("value", f"must be an object, not {type(value).__name__}")
        return cls(cast("Mapping[str, Any]", value), exact=exact)

    def time(self, name: str) -> datetime | None:
        """An instant, to the microsecond."""
        micros = self.members.get(name + MICROS)
        if type(micros) is int:
            try:
                return EPOCH + timedelta(microseconds=micros)
            except OverflowError as error:
                raise unusable(name, "is out of range") from error
        return instant_of(name, self.members.get(name))

    def text(self, name: str) -> str | None:
        """Text of any length."""
        value = self.members.get(name)
        if value is not None and not isinstance(value, str):
            raise unusable(name, f"must be text, not {type(value).__name__}")
        return value

    def word(self, name: str, limit: int = MAX_WORD) -> str | None:
        """A name on one line; none if it is empty."""
        value = self.members.get(name)
        if type(value) is int and not self.exact:
            value = str(value)
        return check_word(name, value, limit) if value not in (None, "") else None

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Yes or no, also as a number."""
        value = self.members.get(name)
        if value is None:
            return default
        if value not in (0, 1):
            raise unusable(name, "is neither true nor false")
        return bool(value)

    def count(self, name: str) -> int:
        """A whole number, 0 if nothing is said."""
        value = self.members.get(name)
        return 0 if value is None else check_tokens(name, value)

    def mapping(self, name: str) -> Mapping[str, Any]:
        """An object, also as JSON in text; what is none is kept under its name."""
        value: object = self.members.get(name)
        decoded = unpacked(value) if not self.exact else value
        if isinstance(decoded, dict):
            return cast("dict[str, Any]", decoded)
        if value in (None, ""):
            return {}
        if self.exact:
            raise unusable(name, "must be an object")
        return {name: value}

    def all_of(self, name: str) -> list[Any]:
        """A list; none is an empty one."""
        value: object = self.members.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise unusable(name, "must be a list")
        return value  # pyright: ignore[reportUnknownVariableType]  # each item is looked at by itself

    def unknown(self, known: Collection[str]) -> dict[str, Any]:
        """What nobody here knows, together with what an earlier import did not know."""
        extra: object = self.members.get("extra")
        if extra is not None and not isinstance(extra, Mapping):
            raise unusable("extra", "must be an object")
        found = dict(cast("Mapping[str, Any]", extra or {}))
        return found | {
            name: value
            for name, value in self.members.items()
            if value is not None and name.removesuffix(MICROS) not in known
        }


def unpacked(value: object) -> Any:
    """What JSON in a text says, or the text where there is none."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def unusable(what: str, problem: str) -> InvalidInputError:
    """The error for something in a file that cannot be used."""
    return InvalidInputError(f"{what} {problem}")
