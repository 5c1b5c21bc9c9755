"""A JSON parser for files that may be damaged: it splits an object into members before it reads them.

The members of the outermost object are found without reading their values, so that a member that is damaged
or nested endlessly spoils no other one. Where the outermost object itself is broken, the rest is split at
lines that begin like the first member's line: files of ours and of Hermes begin a line with each member.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, NoReturn, TypeAlias

from gateway_sessions.errors import InvalidInputError

# Deeper than any real entry or message, and far from the depth at which a JSON reader overflows its stack.
MAX_DEPTH: Final = 64

Member: TypeAlias = tuple[bytes | None, bytes]
"""The name and the value of a member as they stand in the file; the name None: damage, and no member."""

_STRING = rb'"[^"\\\x00-\x1f]*+(?:\\.[^"\\\x00-\x1f]*+)*+"'
_OPENING = re.compile(rb"[ \t\r\n]*+\{")
_NAME = re.compile(rb"[ \t\r\n]*+(" + _STRING + rb")[ \t\r\n]*+:[ \t\r\n]*+")
_SCALAR = re.compile(_STRING + rb'|[^\s,:"{}\[\]]++')
_NEXT_BRACKET = re.compile(rb'[^"{}\[\]]*+(?:' + _STRING + rb'[^"{}\[\]]*+)*+([{}\[\]])')
_SEPARATOR = re.compile(rb"[ \t\r\n]*+([,}])")
_INDENTATION = re.compile(rb'[ \t\r\n]*+\{[ \t\r]*+(\n[ \t]*+)"')
_LEFT_OVER: Final = b" \t\r\n,}"


def split_members(raw: bytes) -> Iterator[Member] | None:
    """Return the members of the object in *raw*, in order; None if *raw* does not begin as an object."""
    opening = _OPENING.match(raw)
    return None if opening is None else _split_object(raw, opening.end())


def decode_json_text(raw: bytes) -> Any:
    """Return the JSON value, or raise `InvalidInputError` for bad JSON, deep nesting or duplicate members."""
    if raw.count(b"{") + raw.count(b"[") > MAX_DEPTH and nesting_depth(raw) > MAX_DEPTH:
        raise unusable_part("value", f"is nested more than {MAX_DEPTH} deep")
    try:
        return _DECODER.decode(raw.decode())
    except InvalidInputError:
        raise
    except ValueError as error:
        raise unusable_part("value", f"is not readable: {error}") from error


def unusable_part(what: str, problem: str) -> InvalidInputError:
    """Return the error for a part of a file that cannot be used."""
    return InvalidInputError(f"{what} {problem}")


def _split_object(raw: bytes, at: int) -> Iterator[Member]:
    separator = _SEPARATOR.match(raw, at)
    while separator is None or separator[1] == b",":
        name = _NAME.match(raw, at)
        end = _end_of_value(raw, name.end()) if name else None
        separator = _SEPARATOR.match(raw, end) if end is not None else None
        if name is None or separator is None:
            yield from _salvage_members(raw, at)
            return
        yield name[1], raw[name.end() : end]
        at = separator.end()
    rest = raw[separator.end() :].strip()
    if rest:
        yield None, rest


def _salvage_members(raw: bytes, at: int) -> Iterator[Member]:
    """Yield the members readable after the object broke off, and at least one piece of damage."""
    line_start = _INDENTATION.match(raw)
    pieces = re.split(re.escape(line_start[1]) + b'(?=")', raw[at:]) if line_start else [raw[at:]]
    damaged = False
    for piece in pieces:
        name = _NAME.match(piece)
        end = _end_of_value(piece, name.end()) if name else None
        if name and end is not None and not piece[end:].strip(_LEFT_OVER):
            yield name[1], piece[name.end() : end]
        elif piece.strip(_LEFT_OVER):
            damaged = True
            yield None, piece.strip()
    if not damaged:
        yield None, b""


def _end_of_value(raw: bytes, at: int) -> int | None:
    """Return the end of the value that begins there; None if the value does not end."""
    if scalar := _SCALAR.match(raw, at):
        return scalar.end()
    depth = 0
    while bracket := _NEXT_BRACKET.match(raw, at):
        at = bracket.end()
        depth += 1 if bracket[1] in b"{[" else -1
        if depth <= 0:
            return at if depth == 0 else None
    return None


def nesting_depth(raw: bytes) -> int:
    """Return the depth to which arrays and objects are nested."""
    depth = deepest = at = 0
    while bracket := _NEXT_BRACKET.match(raw, at):
        at = bracket.end()
        depth += 1 if bracket[1] in b"{[" else -1
        deepest = max(deepest, depth)
    return deepest


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise unusable_part("value", "has two members of the same name")
    return members


def _refuse_constant(name: str) -> NoReturn:
    raise unusable_part("value", f"holds {name}, which JSON does not know")


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_refuse_duplicates, parse_constant=_refuse_constant)
