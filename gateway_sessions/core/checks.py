"""Checks of the types and ranges of values that callers and configurations give.

Values of derived classes as the built-in values that a database, JSON and a platform know.

Programs hand over what their libraries return: a `str` with methods of its own, a read-only mapping, a number
that prints in colour. Such a class may join, compare or print in its own way, so nothing of it is kept.

Whether what untyped callers hand over is what it should be: found at once, and told by its name.

What the values of a configuration may be: each check says what is wrong with one key, or nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from types import NoneType
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import force_setattr

from gateway_sessions.core.instants import LONGEST
from gateway_sessions.errors import ConfigError, ConfigProblem, InvalidInputError


def plain_text(value: str) -> str:
    """Return the characters of a text as a `str`, whatever a derived class makes of them."""
    return value if type(value) is str else str.__str__(value)


def plain_value(value: object) -> object:
    """Return what JSON has for a value of a derived class; `InvalidInputError` if JSON has nothing for it.

    It is the hook of every encoder that meets values of callers.
    """
    match value:
        case str():
            return str.__str__(value)
        case int():
            return int.__int__(value)
        case float():
            return float.__float__(value)
        case Mapping():
            return dict(value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  # whatever a caller gave
        case _:
            problem = f"a value of type {type(value).__name__} cannot be stored: JSON has nothing for it"
            raise InvalidInputError(problem)


def check_types(what: str, record: object, types: Mapping[str, tuple[type, ...]]) -> None:
    """Look at the fields of a record; `InvalidInputError` names the first that holds something else.

    A text or a number of a derived class is replaced by what it is without that, because the class may add or
    compare oddly.
    """
    for name, allowed in types.items():
        value = getattr(record, name)
        if type(value) in allowed:
            continue
        if isinstance(value, str) and str in allowed:
            _replace(record, name, plain_text(value))
        elif not _is_one_of(value, allowed):
            problem = f"{name} of {what} must be {_named(allowed)}, not {_type_of(value)}"
            raise InvalidInputError(problem)
        elif isinstance(value, int):  # a number of a derived class, which no encoder takes
            _replace(record, name, int.__int__(value))


def check_value(name: str, value: object, *allowed: type) -> None:
    """Look at one value that a caller gives; `InvalidInputError` names it if it is of another type."""
    if not _is_one_of(value, allowed):
        problem = f"{name} must be {_named(allowed)}, not {_type_of(value)}"
        raise InvalidInputError(problem)


def check_each(name: str, values: tuple[object, ...], allowed: type) -> None:
    """Look at what a field holds several of."""
    for value in values:
        if not isinstance(value, allowed):
            problem = f"each of {name} must be {allowed.__name__}, not {_type_of(value)}"
            raise InvalidInputError(problem)


def _replace(record: object, name: str, value: object) -> None:
    """Change a field of a record that is being made, and that nobody has seen."""
    if isinstance(record, msgspec.Struct):
        force_setattr(record, name, value)
    else:
        object.__setattr__(record, name, value)


def _is_one_of(value: object, allowed: tuple[type, ...]) -> bool:
    # True is a number to Python, and to no database.
    return isinstance(value, allowed) and (not isinstance(value, bool) or bool in allowed)


def _named(allowed: tuple[type, ...]) -> str:
    return " or ".join("None" if one is NoneType else one.__name__ for one in allowed)


def _type_of(value: object) -> str:
    return "None" if value is None else type(value).__name__


MOST: Final = 1_000_000
"""More of anything is a mistake."""

Finding: TypeAlias = tuple[str, str] | None
"""A key and what is wrong with it."""


def check_section(section: str, *findings: Finding) -> None:
    """Raise `ConfigError` with all that was found wrong in a section."""
    problems = [ConfigProblem(f"{section}.{key}", message) for key, message in filter(None, findings)]
    if problems:
        raise ConfigError(section, problems)


def choice(key: str, value: str, choices: type[StrEnum]) -> Finding:
    """Say what is wrong with a word."""
    return None if value in set(choices) else (key, f"must be one of {', '.join(choices)}")


def count(key: str, value: int, *, most: int = MOST) -> Finding:
    """Say what is wrong with a number of things."""
    return None if 1 <= value <= most else (key, f"must be from 1 to {most}")


def time(key: str, value: timedelta, *, zero: bool = False) -> Finding:
    """Say what is wrong with a duration."""
    if value < timedelta(0) or (not value and not zero):
        return key, f"must be {'0 or more' if zero else 'more than 0'}"
    return None if value <= LONGEST else (key, "must be a century at most")


def off_or_time(key: str, value: timedelta | None) -> Finding:
    """Say what is wrong with a duration that can be off."""
    if value is None or timedelta(0) < value <= LONGEST:
        return None
    return key, "must be 0 (off) or more, and a century at most"
