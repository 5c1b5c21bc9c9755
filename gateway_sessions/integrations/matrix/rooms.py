"""What the adapter knows of a room: its members and its name, and what was said there last."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, cast

import msgspec

from gateway_sessions.integrations.matrix.objects import RoomEvent

MEMBER: Final = "m.room.member"
ENCRYPTION: Final = "m.room.encryption"
TOMBSTONE: Final = "m.room.tombstone"
MOST_SEEN: Final = 300
"""So many messages of a room are remembered: people answer and edit what they see on their screens."""


class SeenMessage(NamedTuple):
    """A message that was said before, for those that answer it or change it."""

    sender: str
    thread_id: str | None
    text: str


class RoomInvite(NamedTuple):
    """An invitation of the account to a room."""

    room_id: str
    inviter: str
    room_name: str | None


@dataclass(slots=True)
class KnownRoom:
    """A room of which the account is a member."""

    id: str
    name: str | None = None
    alias: str | None = None
    is_encrypted: bool | None = None
    """Whether people encrypt there; None: nobody has asked yet."""
    members: dict[str, str] | None = None
    """The names of the members by their ids; None: nobody has asked yet."""
    seen: OrderedDict[str, SeenMessage] = field(default_factory=OrderedDict[str, SeenMessage])
    """The last messages by their ids."""

    @property
    def is_private(self) -> bool:
        """Whether one person at most is there beside the account."""
        return self.members is not None and len(self.members) <= 2  # noqa: PLR2004 -- the two of them

    def name_of(self, user_id: str) -> str | None:
        """Return how people see a member; None if nobody knows."""
        return (self.members or {}).get(user_id)

    def apply(self, event: RoomEvent) -> None:
        """Learn from an event that changes the state of the room."""
        match event.type:
            case "m.room.name":
                self.name = _text_in(event.content, "name")
            case "m.room.canonical_alias":
                self.alias = _text_in(event.content, "alias")
            case kind if kind == ENCRYPTION:
                self.is_encrypted = True  # nobody can turn that off again
            case "m.room.member" if self.members is not None and event.state_key is not None:
                if event.content.get("membership") == "join":
                    self.members[event.state_key] = _text_in(event.content, "displayname") or event.state_key
                else:
                    self.members.pop(event.state_key, None)
            case _:
                pass

    def remember(self, event_id: str, message: SeenMessage) -> None:
        """Remember a message, and forget the oldest one if there are too many."""
        self.seen[event_id] = message
        while len(self.seen) > MOST_SEEN:
            self.seen.popitem(last=False)


def room_event(raw: object) -> RoomEvent | None:
    """Return an event; None if it cannot be read."""
    try:
        return msgspec.convert(raw, RoomEvent)
    except msgspec.ValidationError:
        return None


def own_entry(events: Sequence[object], user_id: str) -> int | None:
    """Return the place of the event by which an account was asked in, or came by itself; None: of none.

    What was said before is not for the account.
    """
    found: int | None = None
    for number, raw in enumerate(events):
        event = room_event(raw)
        if event is not None and event.type == MEMBER and event.state_key == user_id:
            membership, before = event.content.get("membership"), _membership_before(event)
            came = membership == "join" and before is None and "replaces_state" not in event.unsigned
            came = came or (membership == "join" and before in ("leave", "ban", "knock"))
            if membership == "invite" or came:
                found = number
    return found


def came_invited(events: Sequence[object], user_id: str) -> bool:
    """Return whether an account has followed an invitation among these events."""
    read = (room_event(raw) for raw in events)
    return any(
        event is not None
        and (event.type, event.state_key, event.content.get("membership")) == (MEMBER, user_id, "join")
        and _membership_before(event) == "invite"
        for event in read
    )


def invite_of(room_id: str, state: Sequence[object], user_id: str) -> RoomInvite:
    """Return an invitation from what is shown of a room to those who are invited."""
    inviter, name = "", None
    for one in state:
        event: Mapping[str, Any] = cast("dict[str, Any]", one) if isinstance(one, dict) else {}
        content = event.get("content")
        if event.get("type") == MEMBER and event.get("state_key") == user_id:
            inviter = str(event.get("sender", ""))
        elif event.get("type") == "m.room.name" and isinstance(content, dict):
            name = _text_in(cast("dict[str, Any]", content), "name")
    return RoomInvite(room_id, inviter, name)


def _membership_before(event: RoomEvent) -> object:
    before = event.unsigned.get("prev_content")
    return cast("dict[str, Any]", before).get("membership") if isinstance(before, dict) else None


def _text_in(content: Mapping[str, Any], name: str) -> str | None:
    value = content.get(name)
    return value if isinstance(value, str) and value else None
