"""`CallCollector`: the calls of tools in an answer, which come in pieces or as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

import msgspec

MAX_CALLS: Final = 128
"""The most calls of one answer; further ones are dropped."""


@dataclass(slots=True)
class ToolCall:
    """The wish of a model to use a tool."""

    id: str = ""
    """The name that the model gives the call; some endpoints give none."""
    name: str = ""
    """The name of the tool."""
    arguments: str = ""
    """The arguments as JSON, exactly as the model wrote them."""

    @property
    def row_member(self) -> dict[str, Any]:
        """The call as a member of a row in the transcript.

        A model gets its own calls again, and some endpoints then refuse arguments that are no JSON object.
        """
        function = {"name": self.name, "arguments": _as_object(self.arguments)}
        return {"id": self.id, "type": "function", "function": function}


class CallCollector:
    """Puts the calls of an answer together."""

    __slots__ = ("_at_index", "_calls")

    def __init__(self) -> None:
        self._calls: list[ToolCall] = []
        self._at_index: dict[int, ToolCall] = {}

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls so far, in their order."""
        return tuple(self._calls)

    def add(self, given: object) -> int:
        """Add the pieces in an event; return the number of their characters."""
        pieces = cast("list[object]", given) if isinstance(given, list) else []
        return sum(self._add_piece(cast("Mapping[str, Any]", one)) for one in pieces if isinstance(one, dict))

    def _add_piece(self, piece: Mapping[str, Any]) -> int:
        call_id = _as_text(piece.get("id"))
        call = self._find_or_begin(piece.get("index"), call_id)
        if call is None:
            return 0
        told = piece.get("function")
        function: Mapping[str, Any] = cast("Mapping[str, Any]", told) if isinstance(told, dict) else {}
        name, arguments = _as_text(function.get("name")), _as_json(function.get("arguments"))
        call.id = call.id or call_id
        call.name = call.name or name
        call.arguments += arguments
        return len(call_id) + len(name) + len(arguments)

    def _find_or_begin(self, index: object, call_id: str) -> ToolCall | None:
        """Return the call that a piece belongs to; some endpoints give no index, or the same to all calls."""
        known = self._at_index.get(index) if isinstance(index, int) else None
        if known is not None and (not call_id or call_id == known.id):
            return known
        if len(self._calls) >= MAX_CALLS:
            return None
        call = ToolCall()
        self._calls.append(call)
        if isinstance(index, int):
            self._at_index[index] = call
        return call


def _as_object(arguments: str) -> str:
    """Return arguments as they are if they are a JSON object, else an object that quotes them."""
    try:
        msgspec.json.decode(arguments, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return msgspec.json.encode({"unreadable": arguments} if arguments.strip() else {}).decode()
    return arguments


def _as_text(given: object) -> str:
    return given if isinstance(given, str) else ""


def _as_json(given: object) -> str:
    """Return arguments as JSON; some endpoints send them as an object."""
    return msgspec.json.encode(given).decode() if isinstance(given, dict) else _as_text(given)
