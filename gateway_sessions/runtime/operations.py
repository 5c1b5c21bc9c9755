"""What can be asked of the owner of a store through its control socket: a closed table of methods.

To offer one more, write its name here. The annotations of the method say what its parameters may be and what
the client gets, so nothing reaches a method that was not checked against them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from types import MappingProxyType
from typing import Any, Final, get_args, get_origin, get_type_hints

import msgspec

from gateway_sessions.core.control_frames import decode
from gateway_sessions.errors import InvalidInputError

OFFERED: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "control": ("status", "drain"),
        "store": (
            "get_session",
            "explain",
            "list_sessions",
            "lookup_by_session_id",
            "update_session",
            "reset_session",
            "undo_reset",
            "switch_session",
            "suspend_session",
            "mark_resume_pending",
            "clear_resume_pending",
            "suspend_recently_active",
            "prune_old_entries",
            "set_model_override",
            "set_reset_policy",
            "set_busy_mode",
            "set_zone",
            "queue_depth",
            "list_queued",
            "cancel_queued",
            "clear_queue",
            "move_queued",
            "stop_turn",
            "dead_letters",
            "requeue",
            "dead_replies",
            "retry_reply",
            "erase",
            "was_erased",
            "flush",
        ),
        "db": (
            "end_session",
            "reopen_session",
            "set_session_pinned",
            "set_session_archived",
            "set_session_title",
            "rewind_session",
            "restore_rewound",
            "clear_messages",
            "delete_session",
            "prune_sessions",
            "vacuum",
            "optimise",
            "rebuild_search_index",
        ),
    }
)
"""The names, by the part of an open store whose methods they are."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One method that can be asked for."""

    name: str
    parameters: type[Any]
    """A structure with a field for each parameter."""
    returns: Any

    def checked(self, given: bytes | msgspec.Raw) -> dict[str, Any]:
        """The arguments that a JSON object holds; `InvalidInputError` if the method does not take them."""
        try:
            return _arguments(decode(given, self.parameters))
        except InvalidInputError as error:
            problem = f"{self.name}: {error}"
            raise InvalidInputError(problem) from error


def part_that_offers(name: str) -> str:
    """Which part of a store carries out that operation; `InvalidInputError` if none does."""
    for part, names in OFFERED.items():
        if name in names:
            return part
    known = [one for names in OFFERED.values() for one in names]
    close = get_close_matches(name, known, 1)
    problem = f"there is no operation {name!r}" + (f"; did you mean {close[0]!r}?" if close else "")
    raise InvalidInputError(problem)


@cache
def operation(holder: Any, name: str) -> Operation:
    """The operation that a method of the class *holder* is."""
    method = getattr(holder, name)
    hints = get_type_hints(method)
    fields: list[Any] = []
    for parameter in list(inspect.signature(method).parameters.values())[1:]:
        if _is_function(hints[parameter.name]):
            continue
        field = (parameter.name, hints[parameter.name])
        fields.append(field if parameter.default is parameter.empty else (*field, parameter.default))
    parameters = msgspec.defstruct(name, fields, kw_only=True, forbid_unknown_fields=True)
    return Operation(name, parameters, hints["return"])


def _is_function(hint: Any) -> bool:
    """Whether a parameter is one to be called, which no message can carry."""
    return any(get_origin(one) is Callable for one in (hint, *get_args(hint)))


def _arguments(given: Any) -> dict[str, Any]:
    return {name: getattr(given, name) for name in given.__struct_fields__}
