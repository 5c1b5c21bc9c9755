"""The test whether a warm agent may answer a turn: same session, transcript version and settings.

An agent that was made for other settings, or that has not seen a later message of the transcript, must not
answer.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from collections.abc import Set as AnySet
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from gateway_sessions.errors import InvalidInputError

# 64 bits of the digest: enough to tell the settings of one gateway apart, and short in a log.
HASH_CHARACTERS: Final = 16
# Deeper than any real configuration; a circle in the settings ends here instead of at the stack's limit.
MAX_DEPTH: Final = 32

_Plain: TypeAlias = str | int | float | bool | list[Any] | dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class AgentValidity:
    """The facts that an agent was made for; the agent may answer a turn for which they are equal."""

    session_id: str
    transcript_version: tuple[int, ...]
    """The version of the transcript, which every write to the transcript changes."""
    config_hash: str


def agent_config_hash(
    settings: Mapping[str, Any] | None = None, *, secrets: Mapping[str, str | None] | None = None
) -> str:
    """Return 16 hexadecimal digits that differ whenever these settings would make another agent.

    A setting that is None counts as absent. The order of members does not count, nor that of a set; that of a
    list does. *secrets* (keys of providers, for example) enter as hashes of their own: neither the result nor
    an error shows them. Settings that are not plain data raise `InvalidInputError`.
    """
    facts = {
        "settings": _plain_json(settings or {}, "settings", MAX_DEPTH),
        "secrets": {name: _digest(one) for name, one in (secrets or {}).items() if one is not None},
    }
    return _digest(_canonical(facts))[:HASH_CHARACTERS]


def _plain_json(value: object, where: str, depth: int) -> _Plain:
    """Return the value in the one form that JSON has for it."""
    if not depth:
        problem = f"{where} is nested too deeply"
        raise InvalidInputError(problem)
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Mapping():
            members = cast("Mapping[object, object]", value)
            return {
                _checked_name(name, where): _plain_json(one, f"{where}.{name}", depth - 1)
                for name, one in members.items()
                if one is not None
            }
        case AnySet():
            unordered = cast("AnySet[object]", value)
            return sorted((_plain_json(one, where, depth - 1) for one in unordered), key=_canonical)
        case Sequence() if not isinstance(value, bytes | bytearray | memoryview):
            return [_plain_json(one, where, depth - 1) for one in cast("Sequence[object]", value)]
        case _:
            problem = f"{where} holds a value of {type(value).__name__}: give plain data"
            raise InvalidInputError(problem)


def _checked_name(name: object, where: str) -> str:
    if isinstance(name, str):
        return name
    problem = f"{where} has a member whose name is of {type(name).__name__}, not str"
    raise InvalidInputError(problem)


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
