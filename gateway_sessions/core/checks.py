"""Checks of the types and ranges of values that callers and configurations give.

Programs pass the values that their libraries return: a `str` with methods of its own, a read-only mapping, a
number that prints in colour. Such a class may join, compare or print in its own way, so each value becomes
the built-in one that a database, JSON and a platform know.

A wrong type is found at the call that passes it, and the error names the field. The checks of a configuration
return what is wrong with one key, or None.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, Final, TypeAlias, TypeGuard, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec.structs import force_setattr

from gateway_sessions.core.instants import LONGEST
from gateway_sessions.errors import ConfigError, ConfigProblem, InvalidInputError

UNSAFE_CHARACTERS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Characters that break a line of a log or that no database holds: controls, line ends, half characters."""


def plain_text(value: str) -> str:
    """Return the characters of a text as a `str`, without the methods of a derived class."""
    return value if type(value) is str else str.__str__(value)


def plain_value(value: object) -> object:
    """Return the built-in value for one of a derived class, or raise `InvalidInputError` without one in JSON.

    It is the hook of every encoder of callers' values.
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


class FieldTypes:
    """The types that the fields of a record may have, in the order in which the fields are read."""

    __slots__ = ("_names", "_read", "_types")

    def __init__(self, types: Mapping[str, tuple[type, ...]]) -> None:
        self._names = tuple(types)
        self._types = tuple(types.values())
        self._read = attrgetter(*types)

    def check(self, what: str, record: object) -> None:
        """Check the fields of a record; `InvalidInputError` names the first field of a wrong type.

        A text or a number of a derived class is replaced by the built-in one, because the class may add or
        compare oddly.
        """
        for name, value, allowed in zip(self._names, self._read(record), self._types, strict=True):
            if type(value) in allowed:
                continue
            if isinstance(value, str) and str in allowed:
                _replace_field(record, name, plain_text(value))
            elif not _has_type(value, allowed):
                problem = f"{name} of {what} must be {_type_names(allowed)}, not {_type_name(value)}"
                raise InvalidInputError(problem)
            elif isinstance(value, int):  # a number of a derived class, which no encoder takes
                _replace_field(record, name, int.__int__(value))


def field_types(record: type, *names: str, **others: tuple[type, ...]) -> FieldTypes:
    """Return the types that the annotations of these fields allow; without names, of all fields.

    *others* are types that an annotation does not tell. There must be two fields at least.
    """
    hints = get_type_hints(record)
    return FieldTypes({name: _types_of_hint(hints[name]) for name in names or hints} | others)


def _types_of_hint(hint: Any) -> tuple[type, ...]:
    options = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return tuple(get_origin(one) or one for one in options)


def check_value(name: str, value: object, *allowed: type) -> None:
    """Check one value of a caller; `InvalidInputError` names it if its type is wrong."""
    if not _has_type(value, allowed):
        problem = f"{name} must be {_type_names(allowed)}, not {_type_name(value)}"
        raise InvalidInputError(problem)


def is_whole_number(number: object, smallest: int, largest: int) -> TypeGuard[int]:
    """Return whether a value is a whole number in a range; True and False are no numbers."""
    return isinstance(number, int) and not isinstance(number, bool) and smallest <= number <= largest


def check_items(name: str, values: tuple[object, ...], allowed: type) -> None:
    """Check each of the values that a field holds."""
    for value in values:
        if not isinstance(value, allowed):
            problem = f"each of {name} must be {allowed.__name__}, not {_type_name(value)}"
            raise InvalidInputError(problem)


def _replace_field(record: object, name: str, value: object) -> None:
    """Change a field of a record that is being made, and that no other code has seen."""
    if isinstance(record, msgspec.Struct):
        force_setattr(record, name, value)
    else:
        object.__setattr__(record, name, value)


def _has_type(value: object, allowed: tuple[type, ...]) -> bool:
    # True is a number to Python, and to no database.
    return isinstance(value, allowed) and (not isinstance(value, bool) or bool in allowed)


def _type_names(allowed: tuple[type, ...]) -> str:
    return " or ".join("None" if one is NoneType else one.__name__ for one in allowed)


def _type_name(value: object) -> str:
    return "None" if value is None else type(value).__name__


MAX_CONFIGURED_COUNT: Final = 1_000_000
"""The largest count in a configuration: a larger one is a mistake."""

KeyProblem: TypeAlias = tuple[str, str] | None
"""A key and its problem; None: the key is right."""


def check_section(section: str, *findings: KeyProblem) -> None:
    """Raise `ConfigError` with all problems that were found in a section."""
    problems = [ConfigProblem(f"{section}.{key}", message) for key, message in filter(None, findings)]
    if problems:
        raise ConfigError(section, problems)


def choice_problem(key: str, value: str, choices: type[StrEnum]) -> KeyProblem:
    """Return the problem of a word from a closed set."""
    return None if value in set(choices) else (key, f"must be one of {', '.join(choices)}")


def count_problem(key: str, value: int, *, most: int = MAX_CONFIGURED_COUNT) -> KeyProblem:
    """Return the problem of a count."""
    return None if 1 <= value <= most else (key, f"must be from 1 to {most}")


def duration_problem(key: str, value: timedelta, *, zero: bool = False) -> KeyProblem:
    """Return the problem of a duration."""
    if value < timedelta(0) or (not value and not zero):
        return key, f"must be {'0 or more' if zero else 'more than 0'}"
    return None if value <= LONGEST else (key, "must be a century at most")
