"""Values of derived classes as the built-in values that a database, JSON and a platform know.

Programs hand over what their libraries return: a `str` with methods of its own, a read-only mapping, a number
that prints in colour. Such a class may join, compare or print in its own way, so nothing of it is kept.
"""

from __future__ import annotations

from collections.abc import Mapping

from gateway_sessions.errors import InvalidInputError


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
