"""The messages of a session that is taken in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from gateway_sessions.core.export.given import Given, unpacked, unusable
from gateway_sessions.core.export.members import IN_MESSAGE, OTHER_NAMES, Version
from gateway_sessions.core.instants import EPOCH
from gateway_sessions.core.messages import Hidden, Message
from gateway_sessions.core.storable import check_word
from gateway_sessions.errors import InvalidInputError

MAX_MESSAGES: Final = 1_000_000
MAX_ROLE: Final = 64
MAX_KEY: Final = 2560
JSON_MARK: Final = "\x00json:"
"""Before content that is JSON, in the text columns of Hermes."""

_PACKED: Final = ("tool_calls", "reasoning_details", "codex_reasoning_items", "codex_message_items")
_WHOSE: Final = frozenset({"author", "from_lane", "people"})
"""Members whose meaning is certain only in what we wrote."""
MESSAGE_MEMBERS: Final = frozenset(
    {"id", "session_id", "timestamp", "active", "compacted", "hidden_by", "versions", *IN_MESSAGE}
)


@dataclass(frozen=True, slots=True)
class Incoming:
    """A message, which act hid it, and what it said before."""

    message: Message
    hidden_by: int | None = None
    versions: tuple[Version, ...] = ()


def messages_of(session: Given) -> tuple[Incoming, ...]:
    """All messages in their order; places that are no rising numbers are given anew."""
    given = session.all_of("messages")
    if len(given) > MAX_MESSAGES:
        raise unusable("messages", f"are more than {MAX_MESSAGES}")
    found: list[Incoming] = []
    for number, one in enumerate(given, 1):
        try:
            found.append(_message(Given.part(one, exact=session.exact)))
        except InvalidInputError as error:
            what = f"message {number}:"
            raise unusable(what, str(error)) from error
    if not session.exact:
        found = list(_with_acts(found))
    places = [one.message.seq for one in found]
    if all(before < after for before, after in zip([0, *places], places, strict=False)):
        return tuple(found)
    return tuple(replace(one, message=one.message.altered(seq=seq)) for seq, one in enumerate(found, 1))


def _with_acts(messages: Iterable[Incoming]) -> Iterator[Incoming]:
    """Messages taken back one behind the other were taken back together, as far as anybody can tell."""
    act, before = 0, None
    for one in messages:
        hidden = one.message.hidden_because
        act += hidden is Hidden.REWOUND and before is not Hidden.REWOUND
        before = hidden
        yield replace(one, hidden_by=act) if hidden is Hidden.REWOUND else one


def _message(given: Given) -> Incoming:
    members = given.members
    apart = _WHOSE | {"extra"}
    known = {
        name: members[name] for name in IN_MESSAGE if members.get(name) is not None and name not in apart
    }
    if not given.exact:
        known |= _unpacked(known)
    else:
        known |= _whose(given)
    hidden = _hidden(given)
    known |= {
        "role": check_word("role", members.get("role") or "unknown", MAX_ROLE),
        "seq": given.count("seq"),
        "sent_at": given.time(OTHER_NAMES["sent_at"]) or given.time("sent_at"),
        "edited_at": given.time("edited_at"),
        "observed": given.flag("observed"),
        "hidden_because": hidden,
        "extra": given.unknown(MESSAGE_MEMBERS if given.exact else MESSAGE_MEMBERS - _WHOSE),
    }
    earlier = [Given.part(one, exact=given.exact) for one in given.all_of("versions")]
    versions = tuple((one.members.get("content"), one.time("replaced_at") or EPOCH) for one in earlier)
    hidden_by = given.count("hidden_by") or None
    return Incoming(Message(**known), hidden_by if hidden else None, versions)


def _whose(given: Given) -> dict[str, Any]:
    """Who said it, and where."""
    people = given.members.get("people")
    if people is not None and not (isinstance(people, list) and all(isinstance(one, str) for one in people)):  # pyright: ignore[reportUnknownVariableType]  # a file
        raise unusable("people", "must be a list of names")
    return {
        "author": given.word("author", MAX_KEY),
        "from_lane": given.word("from_lane", MAX_KEY),
        "people": None if people is None else tuple(people),  # pyright: ignore[reportUnknownArgumentType]  # checked
    }


def _hidden(given: Given) -> Hidden | None:
    because = given.members.get("hidden_because")
    if because is not None:
        if because not in list(Hidden):
            raise unusable("hidden_because", f"must be one of {', '.join(Hidden)}")
        return Hidden(because)
    if given.flag("active", default=True):
        return None
    return Hidden.COMPACTED if given.flag("compacted") else Hidden.REWOUND


def _unpacked(known: Mapping[str, Any]) -> dict[str, Any]:
    """What another program keeps as JSON in text."""
    found: dict[str, Any] = {name: unpacked(known[name]) for name in _PACKED if name in known}
    calls = found.get("tool_calls")
    if calls is not None and not isinstance(calls, list | dict):
        found["tool_calls"] = [calls]
    content = known.get("content")
    if isinstance(content, str) and content.startswith(JSON_MARK):
        decoded = unpacked(content.removeprefix(JSON_MARK))
        found["content"] = decoded if isinstance(decoded, list | dict) else content
    elif isinstance(content, int | float):
        found["content"] = str(content)
    return found
