"""Whether what untyped callers hand over is what it should be: found at once, and told by its name."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType

import msgspec
from msgspec.structs import force_setattr

from gateway_sessions.core.plain_values import plain_text
from gateway_sessions.errors import InvalidInputError


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
