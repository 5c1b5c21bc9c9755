"""Rooms, people and events of a fake homeserver, in the one order in which everything happened."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from gateway_sessions.ports import Clock
from gateway_sessions.testing.fakes.matrix.refusals import MatrixRefusalError, not_allowed, not_found

MOST_EVENT_BYTES: Final = 65_535
"""The specification's limit for an event, with all that a server adds to it."""
MEMBER: Final = "m.room.member"
MESSAGE: Final = "m.room.message"
TOMBSTONE: Final = "m.room.tombstone"
ENCRYPTION: Final = "m.room.encryption"


@dataclass(frozen=True, slots=True)
class HomeserverUser:
    """A person, or the bot."""

    user_id: str
    display_name: str


@dataclass(slots=True)
class StoredMatrixEvent:
    """An event with its place in the order of the whole server."""

    position: int
    json: dict[str, Any]
    transaction: tuple[str, str] = ("", "")
    """The device that sent it, and its id of the transaction."""
    is_repeat: bool = False
    """Whether the same event stands in the room already."""

    @property
    def event_id(self) -> str:
        """The id of the event; a garbled one may have none."""
        return str(self.json.get("event_id", ""))


@dataclass(slots=True)
class StoredMatrixRoom:
    """A room: its events in order, and who types there."""

    id: str
    events: list[StoredMatrixEvent] = field(default_factory=list[StoredMatrixEvent])
    typing: set[str] = field(default_factory=set[str])
    typing_changed_at: int = 0
    read_up_to: dict[str, str] = field(default_factory=dict[str, str])
    """The event that each person has read last."""
    is_read_only: bool = False

    def state(self, up_to: int | None = None) -> dict[tuple[str, str], StoredMatrixEvent]:
        """Return the state as it was after a position; None: as it is."""
        found: dict[tuple[str, str], StoredMatrixEvent] = {}
        for event in self.events:
            if "state_key" in event.json and (up_to is None or event.position <= up_to):
                found[event.json["type"], event.json["state_key"]] = event
        return found

    def membership(self, user_id: str, up_to: int | None = None) -> str:
        """Return what somebody is to the room: join, invite, leave, ban."""
        event = self.state(up_to).get((MEMBER, user_id))
        return "leave" if event is None else str(event.json["content"].get("membership"))

    def members(self, membership: str = "join") -> list[str]:
        """Return the ids of those who are members in that way."""
        return [
            key
            for (kind, key), event in self.state().items()
            if kind == MEMBER and event.json["content"].get("membership") == membership
        ]

    def event(self, event_id: str) -> StoredMatrixEvent:
        """Return an event, or refuse as a homeserver does."""
        for event in self.events:
            if event.event_id == event_id:
                return event
        raise not_found("Event not found.")


class HomeserverRooms:
    """All rooms of one homeserver; tests and the server's thread may change them at a time."""

    def __init__(self, server_name: str, clock: Clock) -> None:
        self.server_name = server_name
        self.people: dict[str, HomeserverUser] = {}
        self.rooms: dict[str, StoredMatrixRoom] = {}
        self.position: int = 0
        self._clock = clock
        self._lock = threading.RLock()
        self._ids = itertools.count(1)

    # Who and where

    def person(self, name: str) -> HomeserverUser:
        """Return the person of that name, who appears when they are first named."""
        if name not in self.people:
            self.people[name] = HomeserverUser(f"@{name}:{self.server_name}", name.capitalize())
        return self.people[name]

    def display_name(self, user_id: str) -> str:
        """Return how people see a user."""
        return next((one.display_name for one in self.people.values() if one.user_id == user_id), user_id)

    def create(self, creator: HomeserverUser, content: dict[str, Any] | None = None) -> StoredMatrixRoom:
        """Return a new room with one member."""
        with self._lock:
            room = StoredMatrixRoom(f"!room{next(self._ids)}:{self.server_name}")
            self.rooms[room.id] = room
            self.add(
                room, "m.room.create", creator.user_id, {"room_version": "11", **(content or {})}, key=""
            )
            self.change_member(room, creator.user_id, "join", by=creator.user_id)
        return room

    def room_for(self, user_id: str, room_id: str, *, writes: bool = False) -> StoredMatrixRoom:
        """Return the room of a member, or refuse as a homeserver does."""
        room = self.rooms.get(room_id)
        if room is None or room.membership(user_id) != "join":
            raise not_allowed(f"User {user_id} not in room {room_id}")
        if writes and (room.is_read_only or (TOMBSTONE, "") in room.state()):
            raise not_allowed(
                "You don't have permission to post that to the room. user_level (0) < send_level (50)"
            )
        return room

    # What happens

    def add(
        self,
        room: StoredMatrixRoom,
        kind: str,
        sender: str,
        content: dict[str, Any],
        *,
        key: str | None = None,
        transaction: tuple[str, str] = ("", ""),
        **more: Any,
    ) -> StoredMatrixEvent:
        """Let an event happen; refuse one that is too large."""
        with self._lock:
            event: dict[str, Any] = {
                "type": kind,
                "sender": sender,
                "content": content,
                "event_id": f"$event{next(self._ids)}",
                "origin_server_ts": int(self._clock.now().timestamp() * 1000),
                "unsigned": {},
                **more,
            }
            if key is not None:
                event["state_key"] = key
                if (before := room.state().get((kind, key))) is not None:
                    event["unsigned"] = {"prev_content": before.json["content"], "prev_sender": sender}
            if size_of({**event, "room_id": room.id}) > MOST_EVENT_BYTES:
                raise MatrixRefusalError(413, "M_TOO_LARGE", "event too large")
            return self.add_raw(room, event, transaction=transaction)

    def add_raw(
        self,
        room: StoredMatrixRoom,
        event: dict[str, Any],
        *,
        transaction: tuple[str, str] = ("", ""),
        is_repeat: bool = False,
    ) -> StoredMatrixEvent:
        """Let an event happen, whatever it is: garbled, or one that happened before."""
        with self._lock:
            stored = StoredMatrixEvent(self.position + 1, event, transaction, is_repeat)
            room.events.append(stored)
            self.position += 1  # last: whoever looks for news finds the event in its place
        return stored

    def change_member(
        self, room: StoredMatrixRoom, user_id: str, membership: str, *, by: str, is_direct: bool = False
    ) -> StoredMatrixEvent:
        """Let somebody join, leave, or be invited."""
        content: dict[str, Any] = {"membership": membership, "displayname": self.display_name(user_id)}
        if is_direct:
            content["is_direct"] = True
        return self.add(room, MEMBER, by, content, key=user_id)

    def redact(
        self, room: StoredMatrixRoom, sender: str, event_id: str, *, transaction: tuple[str, str] = ("", "")
    ) -> StoredMatrixEvent:
        """Take back what was said: the content is gone, for everybody and at once."""
        with self._lock:
            taken_back = room.event(event_id)
            redaction = self.add(
                room,
                "m.room.redaction",
                sender,
                {"redacts": event_id},
                transaction=transaction,
                redacts=event_id,
            )
            because = {"redacted_because": redaction.json}
            taken_back.json = {**taken_back.json, "content": {}, "unsigned": because}
        return redaction

    def show_typing(self, room: StoredMatrixRoom, user_id: str, *, typing: bool) -> None:
        """Show that somebody types, or no longer does."""
        with self._lock:
            (room.typing.add if typing else room.typing.discard)(user_id)
            room.typing_changed_at = self.next_position()

    def next_position(self) -> int:
        """Return the position of something that happens now, in no room or beside the events of one."""
        with self._lock:
            self.position += 1
            return self.position

    def new_id(self) -> int:
        """Return a number that nothing else has."""
        return next(self._ids)


def size_of(event: dict[str, Any]) -> int:
    """Return the bytes of an event in canonical JSON."""
    return len(json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))


def relation_of(event: dict[str, Any], kind: str) -> str | None:
    """Return the id of the event to which one is related in that way."""
    relation: dict[str, Any] = event["content"].get("m.relates_to") or {}
    return str(relation["event_id"]) if relation.get("rel_type") == kind else None


def displayed(events: Iterable[StoredMatrixEvent]) -> list[dict[str, Any]]:
    """Return the messages that people see: as edited by their authors, without those that were taken back."""
    shown: dict[str, dict[str, Any]] = {}
    for event in events:
        content = event.json.get("content")
        if event.is_repeat or event.json.get("type") != MESSAGE or not content:
            continue
        replaced = shown.get(relation_of(event.json, "m.replace") or "")
        if replaced is not None and replaced["sender"] == event.json["sender"]:
            replaced["content"] = {
                **content["m.new_content"],
                **{name: value for name, value in replaced["content"].items() if name == "m.relates_to"},
            }
        elif relation_of(event.json, "m.replace") is None:
            shown[event.event_id] = dict(event.json)
    return list(shown.values())
