"""`RoomDirectory`: the rooms of an account, and which conversations they are."""

from __future__ import annotations

import json
from collections import Counter, OrderedDict
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from gateway_sessions.adapters.protocol import AdapterMemory
from gateway_sessions.integrations.matrix.client_api import (
    MatrixApi,
    MatrixApiError,
    api_path,
)
from gateway_sessions.integrations.matrix.encryption import UnreadableEventError
from gateway_sessions.integrations.matrix.events import ENCRYPTED, related_id, seen_message
from gateway_sessions.integrations.matrix.objects import RoomEvent
from gateway_sessions.integrations.matrix.rooms import ENCRYPTION, KnownRoom, SeenMessage

UPGRADES: Final = "upgrades"
"""The name under which it is remembered which room is the upgrade of which conversation."""
MOST_TRIES: Final = 5
"""So often a question is asked while the homeserver itself fails at it; then it has no answer."""
MOST_TAKEN_BACK: Final = 1000
"""So many messages are remembered to be gone: a reply that grows is edited for minutes, not for days."""


class RoomDirectory:
    """Knows the rooms; what it does not know, it asks for once."""

    def __init__(self, api: MatrixApi) -> None:
        self._api = api
        self._rooms: dict[str, KnownRoom] = {}
        self._chats: dict[str, str] = {}
        """The conversations of rooms that are upgrades of others, by the rooms' ids."""
        self._taken_back: OrderedDict[str, None] = OrderedDict()
        self._failures: Counter[str] = Counter()
        """How often the homeserver failed at a question, as long as that goes on."""

    def room(self, room_id: str) -> KnownRoom:
        """Return a room."""
        return self._rooms.setdefault(room_id, KnownRoom(room_id))

    def forget(self, room_id: str) -> None:
        """Forget a room that the account has left."""
        self._rooms.pop(room_id, None)

    # Conversations

    async def recall(self, memory: AdapterMemory) -> None:
        """Recall from the memory which rooms are upgrades of others."""
        self._chats = json.loads(await memory.get(UPGRADES) or "{}")

    def chat_of(self, room_id: str) -> str:
        """Return the id of the conversation in a room: that of the room with which it began."""
        return self._chats.get(room_id, room_id)

    def room_of(self, chat_id: str) -> str:
        """Return the id of the room in which a conversation goes on."""
        return next((room for room, chat in reversed(self._chats.items()) if chat == chat_id), chat_id)

    def is_upgrade(self, room_id: str) -> bool:
        """Return whether a room takes the place of another one."""
        return room_id in self._chats

    async def replace(self, old: str, new: str, memory: AdapterMemory) -> None:
        """Let a conversation go on in another room, also after a restart."""
        if new not in self._chats and new != old:
            self._chats[new] = self.chat_of(old)
            await memory.put(UPGRADES, json.dumps(self._chats))

    # Members and messages

    async def ask_members(self, room: KnownRoom) -> None:
        """Learn who is in a room, unless that is known; if the homeserver refuses to tell, it is a group.

        Not to know it for now is no reason to pass a message over: the same sync is asked for again.
        """
        if room.members is not None:
            return
        try:
            answer = await self._api.call("GET", api_path("rooms", room.id, "joined_members"))
            joined = msgspec.convert(answer["joined"], dict[str, dict[str, Any]])
        except (MatrixApiError, msgspec.ValidationError, KeyError, TypeError) as error:
            self._raise_what_passes(error, room.id)
            return
        self._failures.pop(room.id, None)
        room.members = {one: str(told.get("display_name") or one) for one, told in joined.items()}

    async def related(self, room: KnownRoom, event: RoomEvent) -> SeenMessage | None:
        """Return the message that an event changes, takes back or answers; None if there is none to know."""
        if (event_id := related_id(event)) is None:
            return None
        if event_id not in room.seen:
            try:
                raw = await self._api.call("GET", api_path("rooms", room.id, "event", event_id))
                event = msgspec.convert(raw, RoomEvent)
                message = seen_message(msgspec.convert(self.in_clear(room, event, raw), RoomEvent))
            except (MatrixApiError, msgspec.ValidationError, UnreadableEventError) as error:
                self._raise_what_passes(error, event_id)
                return None
            self._failures.pop(event_id, None)
            if message is not None:
                room.remember(event_id, message)
        return room.seen.get(event_id)

    def _raise_what_passes(self, error: Exception, question: str) -> None:
        """Raise the failures after which the same question may have an answer, a few times."""
        if not isinstance(error, MatrixApiError):
            return
        self._failures[question] += 1
        fails_itself = error.status >= 500 and self._failures[question] < MOST_TRIES  # noqa: PLR2004 -- its statuses
        if error.status in (401, 429) or fails_itself:
            raise error

    # Encryption

    async def is_encrypted(self, room_id: str) -> bool:
        """Return whether people encrypt in a room; what no sync has told yet is asked for."""
        room = self.room(room_id)
        if room.is_encrypted is None:
            try:
                await self._api.call("GET", api_path("rooms", room_id, "state", ENCRYPTION, ""))
                room.is_encrypted = True
            except MatrixApiError as error:
                if error.status != 404:  # noqa: PLR2004 -- the room has no such state
                    raise
                room.is_encrypted = False
        return room.is_encrypted

    @property
    def encrypted_rooms(self) -> int:
        """The number of rooms in which people encrypt, as far as that was seen."""
        return sum(room.is_encrypted is True for room in self._rooms.values())

    def in_clear(self, room: KnownRoom, event: RoomEvent, raw: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return an event as it was written; `UnreadableEventError` if this account cannot read it."""
        if event.type != ENCRYPTED or not event.content:  # nothing is left of what was taken back
            return raw
        room.is_encrypted = True
        if (encryption := self._api.encryption) is None:
            problem = "it is encrypted, and this account has no keys"
            raise UnreadableEventError(problem)
        return encryption.in_clear(room.id, raw)

    # What is gone

    def take_back(self, event_id: str) -> None:
        """Remember that a message is gone."""
        self._taken_back[event_id] = None
        while len(self._taken_back) > MOST_TAKEN_BACK:
            self._taken_back.popitem(last=False)

    def is_taken_back(self, event_id: str) -> bool:
        """Return whether a message is gone, as far as that was seen."""
        return event_id in self._taken_back
