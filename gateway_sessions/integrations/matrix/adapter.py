"""`HomeserverAdapter`: one account on a homeserver, whose place in the sync moves when messages are safe.

The adapter syncs by itself: the loops of client libraries go on to the next sync although a callback failed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar
from uuid import uuid4

import msgspec

from gateway_sessions._process.background import in_background
from gateway_sessions._process.clock import SystemClock
from gateway_sessions.adapters.file_sizes import check_size
from gateway_sessions.adapters.group_talk import Groups, GroupTalk, as_group_rules
from gateway_sessions.adapters.memory import ProcessMemory
from gateway_sessions.adapters.protocol import AdapterMemory, Submit
from gateway_sessions.core.delivery.adapter_capabilities import AdapterCapabilities, ReceiveClass
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.core.identity.source import Platform
from gateway_sessions.core.markdown.dialects import MATRIX
from gateway_sessions.core.queue.inbound import Attachment
from gateway_sessions.core.text_length import LengthUnit
from gateway_sessions.errors import (
    AdapterUnavailableError,
    DeliveryRefusedError,
    InvalidInputError,
    RateLimitedError,
    StorageError,
)
from gateway_sessions.integrations.matrix.client_api import (
    HomeserverNotReachedError,
    MatrixApi,
    MatrixApiError,
    api_path,
    download_path,
)
from gateway_sessions.integrations.matrix.directory import RoomDirectory
from gateway_sessions.integrations.matrix.encryption import key_in
from gateway_sessions.integrations.matrix.events import MatrixIdentity, RawEvent, RoomRules
from gateway_sessions.integrations.matrix.objects import MessagesPage, Profile, SyncAnswer, WhoAmI
from gateway_sessions.integrations.matrix.receiving import PAGE, ReceivingOptions, SyncReceiver
from gateway_sessions.integrations.matrix.rooms import RoomInvite, room_event
from gateway_sessions.integrations.matrix.sending import (
    LONGEST_TEXT,
    SENT_AS,
    MatrixSend,
    content_that_edits,
    events_that_show,
    key_hash,
)
from gateway_sessions.integrations.matrix.writing import RoomWriter
from gateway_sessions.ports import Clock

logger: Final = logging.getLogger(__name__)
T = TypeVar("T")

SYNC_SECONDS: Final = 30
"""The time that a homeserver keeps a sync open; each costs one request."""
PATIENCE_SECONDS: Final = 60.0
"""The longest wait for an answer: an upload of some megabytes, or the state of many rooms."""
FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 30.0
"""The pauses after a sync that failed. Messages wait for ever; people wait for an answer."""
TYPING_MILLISECONDS: Final = 5000
"""The gateway shows it again every four seconds."""
NEEDED_RIGHT: Final = "invite the bot into the room, and give it the power to write there"
"""What to do when a homeserver forbids something."""
MOST_BYTES: Final = 50 << 20
"""The largest file that homeservers take, unless they are set up otherwise."""
TRANSACTIONS_LIVE: Final = timedelta(minutes=30)
"""The specification sets no time. Dendrite forgets transactions after half an hour, Synapse after a day."""
EDIT_INTERVAL: Final = timedelta(seconds=5)
"""Synapse lets an account send an event each five seconds, and ten at once, unless it is set up otherwise."""
PAGES_TO_LOOK: Final = 20
"""So many pages of a room are looked through for a message of which nobody knows whether it was sent."""
TO_ENCRYPT: Final = (
    "pip install 'gateway-sessions[matrix-encrypted]', and give the account a folder for its keys "
    "(encryption_store in a configuration, store_path of matrix-nio)"
)
_FILTER: Final = '{"room":{"state":{"lazy_load_members":true},"timeline":{"limit":50}}}'
"""Lists of members are asked for where they are needed: some rooms have ten thousands."""
_LOST_PLACE: Final = frozenset({"M_INVALID_PARAM", "M_UNKNOWN_POS"})


class HomeserverAdapter:
    """An adapter for one account on a homeserver of Matrix."""

    def __init__(
        self,
        api: MatrixApi,
        *,
        name: str = "",
        groups: Groups[RawEvent] = GroupTalk.MENTION,
        taken: Callable[[RawEvent], bool] | None = None,
        join_invites: bool | Callable[[RoomInvite], bool] = False,
        edit_interval: timedelta = EDIT_INTERVAL,
        unreadable: str | Path | None = None,
        clock: Clock | None = None,
    ) -> None:
        """*taken* tells which events the program's own callbacks answer; *join_invites* which rooms to join.

        What cannot be read is kept in the folder *unreadable*, or else only logged.
        """
        self.name = name
        self.platform: str = Platform.MATRIX
        self.capabilities: AdapterCapabilities = AdapterCapabilities(
            receives=ReceiveClass.CURSOR,
            edit=True,
            typing=True,
            idempotent_for=TRANSACTIONS_LIVE,
            finds=True,
            dialect=MATRIX,
            max_length=LONGEST_TEXT,
            length_unit=LengthUnit.BYTES,
            min_edit_interval=edit_interval,
        )
        self.bot: MatrixIdentity | None = None
        """The account, once the homeserver has told who it is."""
        self._api = api
        self._groups = as_group_rules(groups)
        self._taken = taken
        self._join_invites = join_invites
        self._unreadable = unreadable
        self._clock = clock or SystemClock()
        self._memory: AdapterMemory = ProcessMemory()
        self._directory = RoomDirectory(api)
        self._writer = RoomWriter(api, self._directory)
        self._told_rooms = 0

    def remember_in(self, memory: AdapterMemory) -> None:
        """Keep the place in the sync in this memory, so that a restart goes on where the last run ended."""
        self._memory = memory

    @asynccontextmanager
    async def connect(self, submit: Submit) -> AsyncGenerator[None]:
        """Sync within the block; `AdapterUnavailableError` if the homeserver does not know the account.

        Without a place from an earlier run, the first sync only finds the place from which on messages are
        handed over.
        """
        async with self._api.encryption.opened() if self._api.encryption else nullcontext():
            receiver, place, since = await self._found_place()
            async with in_background(partial(self._sync_forever, submit, receiver, place, since)):
                yield

    async def _found_place(self) -> tuple[SyncReceiver, str, str]:
        """Return what takes messages in, the name of the place in the sync, and that place."""
        try:
            bot = await self._introduce()
            if self._api.encryption is not None:
                await self._api.encryption.catch_up()
            receiver = SyncReceiver(self, self._api, self._directory, self._memory, self._options(bot))
            await receiver.recall()
            await self._directory.recall(self._memory)
            place = f"next_batch:{bot.user_id}"
            since = await self._memory.get(place) or await self._begin(receiver, place)
        except (MatrixApiError, HomeserverNotReachedError, OSError, ValueError) as error:
            raise self._unavailable(error) from error
        return receiver, place, since

    async def _introduce(self) -> MatrixIdentity:
        me = msgspec.convert(await self._api.call("GET", api_path("account", "whoami")), WhoAmI)
        try:
            told = await self._api.call("GET", api_path("profile", me.user_id))
            profile = msgspec.convert(told, Profile)
        except (MatrixApiError, msgspec.ValidationError):  # an account without a profile has no other name
            profile = Profile()
        self._check_device(me.device_id)
        self.bot = MatrixIdentity(me.user_id, profile.displayname or "")
        return self.bot

    def _check_device(self, device_id: str) -> None:
        encryption = self._api.encryption
        if encryption is not None and device_id not in ("", encryption.device_id):
            problem = (
                f"the token belongs to the device {device_id}, and the keys to {encryption.device_id}: "
                "use the token and the keys of one device"
            )
            raise AdapterUnavailableError(self.platform, problem)

    def _options(self, bot: MatrixIdentity) -> ReceivingOptions:
        rules = RoomRules(bot, self.name, self._groups, self._taken)
        return ReceivingOptions(rules=rules, join_invites=self._join_invites, unreadable=self._unreadable)

    def _unavailable(self, error: Exception) -> AdapterUnavailableError:
        problem = f"cannot be reached ({error})"
        if isinstance(error, MatrixApiError) and error.status == 401:  # noqa: PLR2004 -- the status for this
            again = "log in again with the same device id" if error.soft_logout else "log in again"
            problem = f"does not know this access token any more: {again}"
        return AdapterUnavailableError(self.platform, problem)

    # In

    async def _sync(self, since: str | None, *, full_state: bool, wait: int) -> Mapping[str, Any]:
        query = {"timeout": str(wait * 1000), "filter": _FILTER}
        if since is not None:
            query |= {"since": since, "full_state": "true" if full_state else "false"}
        answer: Mapping[str, Any] = await self._api.call(
            "GET", api_path("sync"), query=query, patience=wait + PATIENCE_SECONDS
        )
        return answer

    async def _begin(self, receiver: SyncReceiver, place: str) -> str:
        """Find the place from which on messages are handed over: what was said before is not answered."""
        raw = await self._sync(None, full_state=False, wait=0)
        answer = msgspec.convert(raw, SyncAnswer)
        self._take_keys(raw)
        await receiver.take(None, answer, None)
        self._tell_of_encrypted_rooms()
        await self._api.hand_on(raw)
        await self._memory.put(place, answer.next_batch)
        return answer.next_batch

    async def _sync_forever(self, submit: Submit, receiver: SyncReceiver, place: str, since: str) -> None:
        """Take in what happens, and move on when it is safe."""
        pause, is_first = FIRST_PAUSE, True
        while True:
            try:
                # The first sync also tells what the rooms are; it does not wait.
                raw = await self._sync(since, full_state=is_first, wait=SYNC_SECONDS)
                since = await self._take(submit, receiver, place, raw, since)
                if self._api.encryption is not None:
                    await self._api.encryption.catch_up()
                pause, is_first = FIRST_PAUSE, False
            except Exception as error:  # noqa: BLE001 -- whatever a library raises: the messages are still there
                if isinstance(error, MatrixApiError) and error.errcode in _LOST_PLACE:
                    since = await self._begin_again(receiver, place, since)
                wait = error.retry_after if isinstance(error, MatrixApiError) else None
                self._log_failed_sync(error)
                await self._clock.sleep(wait or pause)
                pause = min(2 * pause, LONGEST_PAUSE)

    async def _take(
        self, submit: Submit, receiver: SyncReceiver, place: str, raw: Mapping[str, Any], since: str
    ) -> str:
        answer = msgspec.convert(raw, SyncAnswer)
        self._take_keys(raw)
        await receiver.take(submit, answer, since)
        self._tell_of_encrypted_rooms()
        await self._api.hand_on(raw)
        # Whoever types moves the place as well; after a restart, it does no harm to be told that again.
        if answer.brings_news:
            await self._memory.put(place, answer.next_batch)
        return answer.next_batch

    def _take_keys(self, raw: Mapping[str, Any]) -> None:
        """Take the keys in first: the homeserver forgets them when the place moves, if it was not kept."""
        if self._api.encryption is not None:
            self._api.encryption.take_keys(raw)

    def _tell_of_encrypted_rooms(self) -> None:
        rooms = self._directory.encrypted_rooms
        if rooms > self._told_rooms and (advice := self.advice()) is not None:
            self._told_rooms = rooms
            facts = {"action": "room_encrypted", "platform": self.platform, "account": self.name}
            logger.warning("%s", advice, extra=facts)

    def advice(self) -> str | None:
        """Return what should be set up so that the bot hears everything; None: it does."""
        rooms = self._directory.encrypted_rooms
        if not rooms or self._api.encryption is not None:
            return None
        return f"messages in {rooms} encrypted room{'s' * (rooms > 1)} cannot be read: {TO_ENCRYPT}"

    async def _begin_again(self, receiver: SyncReceiver, place: str, since: str) -> str:
        """Find a new place for one that the homeserver has lost, as after a restore from a backup."""
        facts = {"action": "place_lost", "platform": self.platform, "account": self.name}
        logger.error("the homeserver has lost the place in the sync; messages may be missing", extra=facts)
        try:
            return await self._begin(receiver, place)
        except (MatrixApiError, HomeserverNotReachedError, OSError, ValueError, StorageError):
            return since  # it is tried again with the next sync

    def _log_failed_sync(self, error: Exception) -> None:
        facts = {"platform": self.platform, "account": self.name}
        if isinstance(error, StorageError):
            facts["action"] = "update_not_stored"
            logger.error("messages could not be stored and are fetched again", exc_info=error, extra=facts)
        else:
            facts["action"] = "poll_failed"
            logger.warning("messages could not be fetched: %s", self._unavailable(error), extra=facts)

    # Out

    async def send(
        self, target: ReplyTarget, message: OutboundMessage, *, idempotency_key: str
    ) -> str | None:
        """Send a message and return its id: that of its text, if it takes several events."""
        room_id = self._directory.room_of(target.chat_id)
        ids = [await self._show(room_id, one) for one in events_that_show(target, message, idempotency_key)]
        return ids[0] if ids else None

    async def edit(self, target: ReplyTarget, message_id: str, message: OutboundMessage) -> None:
        """Let a message say something else; refuse if people have taken it back."""
        if self._directory.is_taken_back(message_id):
            raise DeliveryRefusedError(self.platform, "the message that would be edited was deleted")
        content = content_that_edits(message_id, message)
        room_id = self._directory.room_of(target.chat_id)
        await self._told(self._writer.write(room_id, uuid4().hex, content))

    async def typing(self, target: ReplyTarget) -> None:
        """Show for five seconds that an answer is being made."""
        if self.bot is not None:
            path = api_path("rooms", self._directory.room_of(target.chat_id), "typing", self.bot.user_id)
            await self._call("PUT", path, content={"typing": True, "timeout": TYPING_MILLISECONDS})

    async def find(self, target: ReplyTarget, *, idempotency_key: str) -> str | None:
        """Look in the room for the message that was sent with that key; None: it was not sent as a whole."""
        key, first = key_hash(idempotency_key), None
        path, token = api_path("rooms", self._directory.room_of(target.chat_id), "messages"), ""
        for _ in range(PAGES_TO_LOOK):
            query = {"dir": "b", "limit": str(PAGE), **({"from": token} if token else {})}
            page = msgspec.convert(await self._call("GET", path, query=query), MessagesPage)
            for event in filter(None, map(room_event, page.chunk)):
                if (part := _part_of(event.content, key)) is not None:
                    number, of = part
                    first = event.event_id if number == of or first is not None else None
                    if number == 1:
                        return first
                if event.event_id == target.reply_to:  # an answer stands behind what it answers
                    return None
            if page.end is None or not page.chunk:
                return None
            token = page.end
        raise DeliveryRefusedError(self.platform, "the message is too far back to be looked for")

    async def fetch(self, attachment: Attachment, *, most: int = MOST_BYTES) -> bytes:
        """Return the content of an attachment that somebody sent; `InvalidInputError` if it is too large."""
        path = download_path(attachment.url)
        check_size(attachment, most)
        content = await self._told(self._api.download(path, most=most))
        if (key := key_in(attachment.url)) is None:
            return content
        if self._api.encryption is None:
            problem = "the file is encrypted, and this account has no keys"
            raise InvalidInputError(problem)
        return await asyncio.to_thread(self._api.encryption.file_in_clear, content, key)

    async def _show(self, room_id: str, one: MatrixSend) -> str:
        content = one.content
        if one.file is not None:
            content = {**content, **await self._told(self._writer.upload(room_id, one.file))}
        return await self._told(self._writer.write(room_id, one.transaction, content))

    async def _call(self, method: str, path: str, **given: Any) -> Any:
        return await self._told(self._api.call(method, path, **given))

    async def _told(self, work: Awaitable[T]) -> T:
        """Wait for calls, and raise what their failure means."""
        try:
            return await work
        except (MatrixApiError, HomeserverNotReachedError) as error:
            raise self._failure(error) from error

    def _failure(self, error: MatrixApiError | HomeserverNotReachedError) -> Exception:
        if isinstance(error, HomeserverNotReachedError):
            return self._unavailable(error)
        match error.status:
            case 429:
                return RateLimitedError(self.platform, error.retry_after)
            case 401:
                return self._unavailable(error)
            case status if status >= 500:  # noqa: PLR2004 -- the server's own failures begin there
                return ConnectionError(str(error))
            case _ if not error.errcode:  # something in front of the homeserver refuses for now
                return self._unavailable(error)
            case status:
                to_do = f": {NEEDED_RIGHT}" if status == 403 else ""  # noqa: PLR2004 -- the status for this
                return DeliveryRefusedError(self.platform, f"{error}{to_do}")


def _part_of(content: Mapping[str, Any], key: str) -> tuple[int, int] | None:
    """Return which part of how many an event is, of the message with that key; None: it is another one."""
    told = content.get(SENT_AS)
    match told:
        case {"key": found, "part": int(part), "of": int(of)} if found == key:
            return part, of
        case _:
            return None
