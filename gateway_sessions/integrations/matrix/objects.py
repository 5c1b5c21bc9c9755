"""The objects of the client-server API, as far as they are read; the rest is passed over."""

from __future__ import annotations

from typing import Any

import msgspec


class RoomEvent(msgspec.Struct, frozen=True):
    """Something that happened in a room."""

    type: str
    sender: str
    event_id: str
    origin_server_ts: int
    content: dict[str, Any]
    state_key: str | None = None
    redacts: str | None = None
    """The event that this one takes back, in older rooms; in newer ones the content names it."""
    unsigned: dict[str, Any] = {}


class MessageContent(msgspec.Struct, frozen=True):
    """What a message says."""

    msgtype: str = ""
    body: str = ""


class EventList(msgspec.Struct, frozen=True):
    """Events in their order; each is read for itself, so that a broken one breaks nothing else."""

    events: list[Any] = []


class Timeline(msgspec.Struct, frozen=True):
    """The last events of a room since a sync."""

    events: list[Any] = []
    limited: bool = False
    """Whether there are more events than these."""
    prev_batch: str | None = None
    """The place before the first of the events."""


class JoinedRoom(msgspec.Struct, frozen=True):
    """What happened in a room of which the account is a member."""

    timeline: Timeline = Timeline()
    state: EventList = EventList()


class InvitedRoom(msgspec.Struct, frozen=True):
    """What somebody who is invited may know of a room."""

    invite_state: EventList = EventList()


class SyncedRooms(msgspec.Struct, frozen=True):
    """What happened in all rooms, by their ids; each room is read for itself."""

    join: dict[str, Any] = {}
    invite: dict[str, Any] = {}
    leave: dict[str, Any] = {}


class SyncAnswer(msgspec.Struct, frozen=True):
    """What happened since a sync."""

    next_batch: str
    rooms: SyncedRooms = SyncedRooms()

    @property
    def brings_news(self) -> bool:
        """Whether something happened that must not be told a second time, beside people who type or read."""
        rooms = self.rooms
        return bool(rooms.invite or rooms.leave) or any(map(_has_events, rooms.join.values()))


class MessagesPage(msgspec.Struct, frozen=True):
    """One page of the events of a room."""

    chunk: list[Any]
    end: str | None = None
    """Where the next page begins; None: this is the last one."""


class WhoAmI(msgspec.Struct, frozen=True):
    """The account that a token belongs to."""

    user_id: str
    device_id: str = ""


def _has_events(joined: object) -> bool:
    """Return whether a room has events in its timeline; one that cannot be read may have some."""
    try:
        return bool(msgspec.convert(joined, JoinedRoom).timeline.events)
    except msgspec.ValidationError:
        return True


class Profile(msgspec.Struct, frozen=True):
    """What people see of an account."""

    displayname: str | None = None
