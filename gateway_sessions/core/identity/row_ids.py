"""Row ids: 63-bit integers in the process, text in JSON, because JSON readers round large numbers.

A JSON number is a double to browsers, to jq and to many languages: they keep the first 53 bits of an id,
which then names another row, or none. So ids are written as text, and read as text or as numbers.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final, Union, cast, get_args, get_origin, get_type_hints

import msgspec

from gateway_sessions.core.checks import is_whole_number
from gateway_sessions.errors import InvalidInputError

NAMES: Final = frozenset(
    {
        "id",
        "at_message_id",
        "before",
        "change_id",
        "entry_id",
        "item_id",
        "message_id",
        "new_head_id",
        "reply_id",
        "target_message_id",
        "transcript_id",
    }
)
"""The names of the fields that hold a row id; only a field of whole numbers counts."""
LARGEST: Final = (1 << 63) - 1
"""The largest row id that every database holds."""
SAFE: Final = (1 << 53) - 1
"""The largest whole number that every JSON reader keeps exactly."""


def parse_row_id(name: str, value: object) -> int:
    """Return the id given as a number or as text, or raise `InvalidInputError`."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= len(str(LARGEST)):
        value = int(value)
    if not is_whole_number(value, 0, LARGEST):
        problem = f"{name} must be an id: a whole number up to {LARGEST}, or the same as text"
        raise InvalidInputError(problem)
    return int(value)


def ids_to_text(value: Any, *, outside: bool = False) -> Any:
    """Return the value with all ids in its records as text, to be encoded as JSON.

    With *outside*, where no program makes records of it again, so is every number above `SAFE`.
    """
    kind: Any = type(value)  # pyright: ignore[reportUnknownVariableType]  # whatever was given
    if isinstance(value, int):
        return str(value) if outside and abs(value) > SAFE else value
    if isinstance(value, Mapping):
        members: Mapping[Any, Any] = value  # pyright: ignore[reportUnknownVariableType]  # whatever was given
        return {key: ids_to_text(one, outside=outside) for key, one in members.items()}
    if (names := _tuple_fields(kind)) is not None:
        return [_member_to_text(name, one, outside=outside) for name, one in zip(names, value, strict=True)]
    if isinstance(value, list | tuple | set | frozenset):
        return [ids_to_text(one, outside=outside) for one in cast("Iterable[Any]", value)]
    if has_id_fields(kind):
        return {
            name: _member_to_text(name, getattr(value, name), outside=outside)
            for name in _record_fields(kind)
        }
    return value


def ids_to_numbers(value: Any, kind: Any) -> Any:
    """Return decoded JSON with the ids as numbers, wherever a record of that kind has a number."""
    if value is None or not has_id_fields(kind):
        return value
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        for one in arguments:
            value = ids_to_numbers(value, one)
        return value
    if isinstance(value, list):
        items: list[Any] = value  # pyright: ignore[reportUnknownVariableType]  # whatever was given
        return _list_ids_to_numbers(items, kind, arguments)
    if not isinstance(value, dict):
        return value
    members: dict[str, Any] = value  # pyright: ignore[reportUnknownVariableType]  # whatever was given
    if origin is not None:
        return {key: ids_to_numbers(one, arguments[-1]) for key, one in members.items()}
    hints = get_type_hints(kind)
    return {key: _member_to_number(key, one, hints.get(key)) for key, one in members.items()}


def _list_ids_to_numbers(value: list[Any], kind: Any, arguments: tuple[Any, ...]) -> list[Any]:
    if (names := _tuple_fields(kind)) is not None:
        hints = get_type_hints(kind)
        return [_member_to_number(name, one, hints[name]) for name, one in zip(names, value, strict=False)]
    return [ids_to_numbers(one, arguments[0]) for one in value] if arguments else value


def _member_to_number(name: str, value: Any, hint: Any) -> Any:
    if _is_id_field(name, hint):
        return parse_row_id(name, value) if isinstance(value, str) else value
    return ids_to_numbers(value, hint)


def _member_to_text(name: str, value: Any, *, outside: bool) -> Any:
    if name in NAMES and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return ids_to_text(value, outside=outside)


def _is_id_field(name: str, hint: Any) -> bool:
    kinds = {hint, *get_args(hint)}
    return name in NAMES and int in kinds and str not in kinds


def _tuple_fields(kind: Any) -> tuple[str, ...] | None:
    is_tuple = isinstance(kind, type) and issubclass(kind, tuple)
    return getattr(cast("Any", kind), "_fields", None) if is_tuple else None


def _record_fields(kind: type[Any]) -> tuple[str, ...]:
    if issubclass(kind, msgspec.Struct):
        return kind.__struct_fields__
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    return _tuple_fields(kind) or ()


@cache
def has_id_fields(kind: Any) -> bool:
    """Return whether a value of that type may hold an id."""
    return _type_has_id_fields(kind, set())


def _type_has_id_fields(kind: Any, seen: set[Any]) -> bool:
    if kind in seen:
        return False
    seen.add(kind)
    if arguments := get_args(kind):
        return any(_type_has_id_fields(one, seen) for one in arguments)
    names = _record_fields(kind) if isinstance(kind, type) else ()
    hints = get_type_hints(kind) if names else {}
    return any(_is_id_field(name, hints[name]) or _type_has_id_fields(hints[name], seen) for name in names)
