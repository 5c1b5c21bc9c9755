"""`SyncReceiver`: takes in what a sync brings, and fetches what it leaves out."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import anyio
import msgspec

from gateway_sessions.adapters.protocol import Adapter, AdapterMemory, Submit
from gateway_sessions.adapters.set_aside import put_aside
from gateway_sessions.errors import DeliveryRefusedError, InvalidInputError, StorageError
from gateway_sessions.integrations.matrix.client_api import (
    HomeserverNotReachedError,
    MatrixApi,
    MatrixApiError,
    api_path,
)
from gateway_sessions.integrations.matrix.directory import RoomDirectory
from gateway_sessions.integrations.matrix.encryption import MissingKeyError, UnreadableEventError
from gateway_sessions.integrations.matrix.events import (
    REDACTION,
    RoomRules,
    read_event,
    related_id,
    seen_message,
)
from gateway_sessions.integrations.matrix.objects import (
    InvitedRoom,
    JoinedRoom,
    MessagesPage,
    RoomEvent,
    SyncAnswer,
    Timeline,
)
from gateway_sessions.integrations.matrix.rooms import (
    TOMBSTONE,
    KnownRoom,
    RoomInvite,
    came_invited,
    invite_of,
    own_entry,
    room_event,
)
from gateway_sessions.integrations.matrix.sending import key_hash
from gateway_sessions.integrations.matrix.writing import RoomWriter

logger: Final = logging.getLogger(__name__)

PAGE: Final = 100
"""The events of one page; homeservers give out no more."""
MOST_PAGES: Final = 1000
"""A gap of more than 100 000 events in one room is given up: nobody waits for these answers."""
PAGES_TO_INVITE: Final = 10
"""So far back is looked for the invitation that a new room began with."""
MOST_TRIES: Final = 5
"""So often a gap is tried to be filled while the homeserver itself fails."""
JOIN_SECONDS: Final = 20.0
"""To join a room of another server may take minutes; meanwhile, other rooms wait."""
MOST_WAITING: Final = 100
"""So many events wait for their keys; of more, the oldest are given up."""
INVITES: Final = "invites"
WAITING: Final = "waiting_for_keys"
TOLD: Final = "told_of_encryption:"
TOLD_OF_KEY: Final = "told_of_missing_key:"
CANNOT_READ: Final = (
    "Messages in this room are encrypted, and I cannot read them. Please write to me in a room without "
    "encryption."
)
KEY_IS_MISSING: Final = (
    "I cannot read a message in this room, because your device did not give me its key. Please write it "
    "again. If that does not help, write /discardsession first, if your client knows that."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivingOptions:
    """The settings of an adapter for messages on their way in."""

    rules: RoomRules
    join_invites: bool | Callable[[RoomInvite], bool] = False
    unreadable: str | Path | None = None


class SyncReceiver:
    """Hands messages over, those of one room in their order."""

    def __init__(
        self,
        adapter: Adapter,
        api: MatrixApi,
        directory: RoomDirectory,
        memory: AdapterMemory,
        options: ReceivingOptions,
    ) -> None:
        self._adapter = adapter
        self._api = api
        self._directory = directory
        self._memory = memory
        self._options = options
        self._rules = options.rules
        self._tries: Counter[str] = Counter()
        self._writer = RoomWriter(api, directory)
        self._invited: dict[str, str] = {}
        """The rooms to join, each with a server that knows it; empty: the account's own does."""
        self._waiting: dict[str, str] = {}
        """The events that wait for their keys, each with its room and the session of the key."""

    async def recall(self) -> None:
        """Recall the invitations that are still to be followed, and the events whose keys are missing."""
        self._invited = json.loads(await self._memory.get(INVITES) or "{}")
        self._waiting = json.loads(await self._memory.get(WAITING) or "{}")

    async def take(self, submit: Submit | None, answer: SyncAnswer, since: str | None) -> None:
        """Take in all that a sync brought; without *submit*, learn only what the rooms are.

        If this fails, the same sync must be asked for again.
        """
        if submit is not None:
            await self._take_late(submit)
        failed: list[Exception] = []

        async def take_room(room_id: str, raw: object) -> None:
            try:
                await self._take_room(submit, room_id, raw, since)
            except (StorageError, MatrixApiError, HomeserverNotReachedError, OSError, ValueError) as error:
                failed.append(error)  # the other rooms go on

        async with anyio.create_task_group() as tasks:
            for room_id, raw in answer.rooms.join.items():
                tasks.start_soon(take_room, room_id, raw)
        if failed:
            raise failed[0]
        for room_id in answer.rooms.leave:
            self._directory.forget(room_id)
        await self._note_invites(answer.rooms.invite)
        await self._follow_invites()

    # Rooms

    async def _take_room(self, submit: Submit | None, room_id: str, raw: object, since: str | None) -> None:
        try:
            joined = msgspec.convert(raw, JoinedRoom)
        except msgspec.ValidationError as error:
            await self._set_aside(raw, error)
            return
        room = self._directory.room(room_id)
        for state in joined.state.events:
            if (event := room_event(state)) is not None:
                room.apply(event)
        for one in await self._events_of(room, joined.timeline, since):
            await self._take_event(submit, room, one)
        self._tries.pop(room_id, None)

    async def _events_of(self, room: KnownRoom, timeline: Timeline, since: str | None) -> Sequence[object]:
        """Return the events of a room since a sync, also those that a limited timeline leaves out."""
        events: list[object] = list(timeline.events)
        if timeline.limited and since is not None and timeline.prev_batch is not None:
            events = [*await self._left_out(room, timeline, since, timeline.prev_batch), *events]
        entry = own_entry(events, self._rules.bot.user_id)
        return events if entry is None else events[entry:]

    async def _left_out(
        self, room: KnownRoom, timeline: Timeline, since: str, prev_batch: str
    ) -> Sequence[object]:
        bot = self._rules.bot.user_id
        try:
            if own_entry(timeline.events, bot) is not None:
                return ()  # the account is new in the room, and what was said before is not for it
            if came_invited(timeline.events, bot):
                found = await self._pages(room, "b", prev_batch, None, most=PAGES_TO_INVITE)
                return list(reversed(found))
            return await self._pages(room, "f", since, prev_batch, most=MOST_PAGES)
        except MatrixApiError as error:
            self._tries[room.id] += 1
            gives_up = error.status < 500 or self._tries[room.id] >= MOST_TRIES  # noqa: PLR2004 -- its own failures begin there
            if error.status in (401, 429) or not gives_up:
                raise
            self.log_facts(
                "gap_not_filled", "messages of a room were left out and could not be fetched", error
            )
            return ()

    async def _pages(
        self, room: KnownRoom, direction: str, start: str, end: str | None, *, most: int
    ) -> list[object]:
        """Return the events from a place on: forwards to another, or backwards to the invitation."""
        found: list[object] = []
        token: str | None = start
        for _ in range(most):
            query = {"dir": direction, "from": token or "", "limit": str(PAGE)}
            if end is not None:
                query["to"] = end
            path = api_path("rooms", room.id, "messages")
            page = msgspec.convert(await self._api.call("GET", path, query=query), MessagesPage)
            found += page.chunk
            token = page.end
            is_there = direction == "b" and own_entry(page.chunk, self._rules.bot.user_id) is not None
            if token is None or not page.chunk or is_there or token == end:
                break
        return found

    # Events

    async def _take_event(self, submit: Submit | None, room: KnownRoom, raw: object) -> None:
        """Take one event in; what nobody can read must not stop what comes behind it."""
        if (event := room_event(raw)) is None:
            if submit is not None:
                await self._set_aside(raw, UnreadableEventError("it has not the form of an event of a room"))
            return
        if event.state_key is not None:
            await self._take_state(submit, room, event)
            return
        try:
            given = self._directory.in_clear(room, event, cast("dict[str, Any]", raw))
        except UnreadableEventError as error:
            if submit is not None and event.sender != self._rules.bot.user_id:
                await self._keep_encrypted(room, event, raw, error)
        else:
            await self._take_said(submit, room, given)

    async def _take_said(self, submit: Submit | None, room: KnownRoom, raw: Mapping[str, Any]) -> None:
        """Take in what somebody has said, as everybody in the room can read it."""
        event = msgspec.convert(raw, RoomEvent)
        if (message := seen_message(event)) is not None:
            room.remember(event.event_id, message)
        if event.type == REDACTION and (gone := related_id(event)) is not None:
            self._directory.take_back(gone)
        if submit is not None and event.sender != self._rules.bot.user_id:
            await self._hand_over(submit, room, event, raw)

    async def _take_state(self, submit: Submit | None, room: KnownRoom, event: RoomEvent) -> None:
        room.apply(event)
        replacement = event.content.get("replacement_room")
        # Only who may close a room can say where it goes on; any room can claim to be another's upgrade.
        if event.type == TOMBSTONE and submit is not None and isinstance(replacement, str) and replacement:
            await self._directory.replace(room.id, replacement, self._memory)
            await self._note_invite(replacement, event.sender.partition(":")[2])

    async def _hand_over(
        self, submit: Submit, room: KnownRoom, event: RoomEvent, raw: Mapping[str, Any]
    ) -> None:
        await self._directory.ask_members(room)
        related = await self._directory.related(room, event)
        try:
            chat_id = self._directory.chat_of(room.id)
            message = read_event(raw, room, self._rules, chat_id=chat_id, related=related)
            if message is not None:
                await submit(message)
        except InvalidInputError as error:
            await self._set_aside(raw, error)

    # What is encrypted

    async def _keep_encrypted(
        self, room: KnownRoom, event: RoomEvent, raw: object, error: UnreadableEventError
    ) -> None:
        """Keep what cannot be read, and say so, once in a room."""
        await self._set_aside(raw, error)
        if isinstance(error, MissingKeyError):
            self._waiting[event.event_id] = f"{room.id} {error.session_id}"
            for oldest in [*self._waiting][:-MOST_WAITING]:
                del self._waiting[oldest]
            await self._memory.put(WAITING, json.dumps(self._waiting))
        has_keys = self._api.encryption is not None
        told = (TOLD_OF_KEY if has_keys else TOLD) + room.id
        if await self._memory.get(told) is not None:
            return
        write = self._writer.write if has_keys else self._writer.write_plainly
        notice = {"msgtype": "m.notice", "body": KEY_IS_MISSING if has_keys else CANNOT_READ}
        try:
            await write(room.id, key_hash(told), notice)
        except (
            MatrixApiError, HomeserverNotReachedError, DeliveryRefusedError, OSError, ValueError,
        ) as problem:  # fmt: skip
            self.log_facts("notice_not_shown", "people were not told that a room is encrypted", problem)
        else:
            await self._memory.put(told, "1")

    async def _take_late(self, submit: Submit) -> None:
        """Take the events whose keys have come since."""
        encryption = self._api.encryption
        for event_id, place in [*self._waiting.items()]:
            room_id, _, session_id = place.partition(" ")
            if encryption is None or not encryption.knows(room_id, session_id):
                continue
            try:
                raw = await self._api.call("GET", api_path("rooms", room_id, "event", event_id))
                await self._take_event(submit, self._directory.room(room_id), raw)
            except MatrixApiError as error:
                if error.status in (401, 429) or error.status >= 500:  # noqa: PLR2004 -- these pass
                    raise
                self.log_facts("gap_not_filled", "a message whose key came late is gone", error)
            self._waiting.pop(event_id, None)
            await self._memory.put(WAITING, json.dumps(self._waiting))

    async def _set_aside(self, raw: object, error: Exception) -> None:
        if self._options.unreadable is not None:
            await put_aside(self._options.unreadable, raw, error, adapter=self._adapter)
        else:
            self.log_facts("update_unreadable", "an event could not be read and is passed over", error)

    # Invitations

    async def _note_invites(self, rooms: Mapping[str, Any]) -> None:
        for room_id, raw in rooms.items():
            try:
                state = msgspec.convert(raw, InvitedRoom).invite_state.events
            except msgspec.ValidationError as error:
                await self._set_aside(raw, error)
                continue
            if self._is_wanted(invite_of(room_id, state, self._rules.bot.user_id)):
                await self._note_invite(room_id)

    def _is_wanted(self, invite: RoomInvite) -> bool:
        wanted = self._options.join_invites
        if self._directory.is_upgrade(invite.room_id) or isinstance(wanted, bool):
            return wanted is True or self._directory.is_upgrade(invite.room_id)
        try:
            return wanted(invite)
        except Exception:  # the program's own function must not stop everybody
            facts = {
                "action": "handler_failed",
                "platform": self._adapter.platform,
                "account": self._adapter.name,
            }
            logger.exception("a function that decides on invitations failed", extra=facts)
            return False

    async def _note_invite(self, room_id: str, server: str = "") -> None:
        if room_id not in self._invited:
            self._invited[room_id] = server
            await self._memory.put(INVITES, json.dumps(self._invited))

    async def _follow_invites(self) -> None:
        """Join where somebody asked the account in; what fails for now is tried again after the next sync."""
        for room_id, server in [*self._invited.items()]:
            known_by = {"server_name": server, "via": server} if server else {}
            path = api_path("join", room_id)
            try:
                await self._api.call("POST", path, query=known_by, content={}, patience=JOIN_SECONDS)
            except MatrixApiError as error:
                if error.status in (401, 429) or error.status >= 500:  # noqa: PLR2004 -- the server's own failures
                    continue
                self.log_facts("invite_not_followed", "an invitation could not be followed", error)
            except (HomeserverNotReachedError, OSError, ValueError):
                continue
            del self._invited[room_id]
            await self._memory.put(INVITES, json.dumps(self._invited))

    def log_facts(self, action: str, told: str, error: Exception) -> None:
        """Log an error with the facts that every record of an adapter has."""
        facts = {"action": action, "platform": self._adapter.platform, "account": self._adapter.name}
        logger.error("%s: %s", told, error, extra=facts)
