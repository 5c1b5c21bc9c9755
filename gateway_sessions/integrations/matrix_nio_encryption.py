"""`NioEncryption`: encrypted rooms with the keys that a client of matrix-nio keeps.

The library's own calls try again for ever, and its sync takes the same message to a device in twice. So its
machine for keys is used here, and not its client. It writes its keys in the event loop, as it always does.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, cast
from uuid import uuid4

import anyio
from filelock import FileLock
from nio import AsyncClient  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]
from nio.crypto.attachments import (  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]
    decrypt_attachment,
    encrypt_attachment,
)
from nio.events import (  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]
    EncryptedToDeviceEvent,
    MegolmEvent,
    ToDeviceEvent,
)
from nio.exceptions import (  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]
    EncryptionError,
    OlmUnverifiedDeviceError,
)
from nio.responses import (  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]
    KeysClaimResponse,
    KeysQueryResponse,
    KeysUploadResponse,
    ToDeviceResponse,
)
from nio.store import SqliteMemoryStore  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]
from peewee import PeeweeException  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]

from gateway_sessions.core.identity.source import Platform
from gateway_sessions.errors import AdapterUnavailableError, DeliveryRefusedError, InvalidInputError
from gateway_sessions.integrations.matrix.client_api import MatrixApi, api_path
from gateway_sessions.integrations.matrix.encryption import (
    MEGOLM,
    FileKey,
    MissingKeyError,
    UnreadableEventError,
    session_of,
)
from gateway_sessions.integrations.matrix.events import ENCRYPTED, MESSAGE, REDACTION
from gateway_sessions.integrations.matrix.sending import SENT_AS

logger: Final = logging.getLogger(__name__)

ONE_TIME: Final = "signed_curve25519"
IN_CLEAR: Final = ("m.relates_to", SENT_AS)
"""The members of a content that stay readable: homeservers look at the first, and `find` at the second."""
_NOT_READ: Final = (LookupError, TypeError, ValueError, AttributeError)
"""The errors of the library at what a person may have written: it checks less than it reads."""


class NioEncryption:
    """The keys of the client's device."""

    def __init__(self, client: AsyncClient, api: MatrixApi, *, ignore_unverified_devices: bool) -> None:
        self._client = client
        self._api = api
        self._ignore_unverified_devices = ignore_unverified_devices
        self._asks = anyio.Lock()
        self._readers: dict[str, frozenset[tuple[str, str, bool]]] = {}
        """The devices in a room when its present key was made, and whether they could be given it."""
        self._taken: dict[str, Any] = {}
        """The messages to this device that the last sync brought, as far as they were for its keys."""

    @property
    def device_id(self) -> str:
        """The device to which the keys belong."""
        return str(self._olm.device_id)

    @property
    def _olm(self) -> Any:  # the library's own types leave much open
        return self._client.olm

    # Keys

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        """Use the keys within the block; two processes would undo each other's changes."""
        store = self._olm.store
        if isinstance(store, SqliteMemoryStore):
            yield
            return
        lock = FileLock(f"{store.database_path}.lock", mode=0o600, thread_local=False)
        try:
            await asyncio.to_thread(lock.acquire, blocking=False)
        except TimeoutError as error:
            problem = "another process uses the keys of this device: stop it, or log in as another device"
            raise AdapterUnavailableError(Platform.MATRIX, problem) from error
        try:
            self._load()
            yield
        finally:
            with anyio.CancelScope(shield=True):
                await asyncio.to_thread(lock.release)

    def _load(self) -> None:
        """Load the keys as they are on the disk: another process may have used them in between."""
        olm = self._olm
        olm.account = olm.store.load_account()
        olm.load()
        olm.outbound_group_sessions.clear()
        self._readers.clear()
        self._taken.clear()

    def take_keys(self, answer: Mapping[str, Any]) -> None:
        """Take the keys that a sync brings.

        A key and the step of the session that brought it are written together: a message to a device can be
        read once only.
        """
        messages = {_digest(raw): raw for raw in answer.get("to_device", {}).get("events", [])}
        if fresh := {digest: raw for digest, raw in messages.items() if digest not in self._taken}:
            try:
                with self._olm.store.database.atomic():
                    opened = {digest: self._opened_message(raw) for digest, raw in fresh.items()}
            except PeeweeException:
                self._load()  # what is in memory only would be lost with the process
                raise
            self._taken |= opened
        self._taken = {digest: event for digest, event in self._taken.items() if digest in messages}
        self._take_devices(answer)

    def _opened_message(self, raw: Any) -> Any:
        try:
            with self._olm.store.database.atomic():
                event = ToDeviceEvent.parse_event(raw)  # pyright: ignore[reportUnknownMemberType]
                if isinstance(event, EncryptedToDeviceEvent):
                    return self._olm.handle_to_device_event(event)
        except PeeweeException:
            raise
        except Exception:  # anybody can send anything to a device, and the next message may be a key
            facts = {"action": "update_unreadable", "platform": Platform.MATRIX}
            logger.exception("a message to the device could not be read and is passed over", extra=facts)
        return None

    def _take_devices(self, answer: Mapping[str, Any]) -> None:
        olm, lists = self._olm, answer.get("device_lists", {})
        olm.add_changed_users(olm.tracked_users & {*lists.get("changed", [])})
        olm.tracked_users -= {*lists.get("left", [])}
        if (counts := answer.get("device_one_time_keys_count")) is not None:
            olm.uploaded_key_count = counts.get(ONE_TIME, 0)

    def messages_for_callbacks(self, brought: Iterable[ToDeviceEvent]) -> list[ToDeviceEvent]:
        """Return the messages of the last sync: those that were encrypted as they were read."""
        rest = [one for one in brought if not isinstance(one, EncryptedToDeviceEvent)]
        return [*(one for one in self._taken.values() if one is not None), *rest]

    # Other devices

    async def catch_up(self) -> None:
        """Give the homeserver keys to hand out, and tell other devices what they have to know."""
        async with self._asks:
            if self._olm.should_upload_keys:
                await self._upload()
            if self._olm.users_for_key_query:
                await self._query(self._olm.users_for_key_query)
            if self._olm.wedged_devices or self._olm.key_request_devices_no_session:
                await self._claim(self._olm.get_users_for_key_claiming())
            for message in [*self._olm.outgoing_to_device_messages]:
                await self._send_to_devices(message.type, message.as_dict())
                self._olm.handle_response(ToDeviceResponse(message))

    async def _upload(self) -> None:
        content = self._olm.share_keys()
        self._olm.save_account()  # before anybody can use these keys
        answer = await self._api.call("POST", api_path("keys", "upload"), content=content)
        count = answer["one_time_key_counts"].get(ONE_TIME, 0)
        self._olm.handle_response(KeysUploadResponse(0, count))

    async def _query(self, users: Iterable[str]) -> None:
        content: dict[str, Any] = {"device_keys": {user: [] for user in users}}
        answer = await self._api.call("POST", api_path("keys", "query"), content=content)
        self._olm.handle_response(KeysQueryResponse(answer["device_keys"], answer.get("failures", {})))

    async def _claim(self, devices: Mapping[str, Iterable[str]]) -> None:
        asked = {user: dict.fromkeys(ids, ONE_TIME) for user, ids in devices.items()}
        answer = await self._api.call("POST", api_path("keys", "claim"), content={"one_time_keys": asked})
        self._olm.handle_response(KeysClaimResponse(answer["one_time_keys"], answer.get("failures", {})))

    async def _send_to_devices(self, kind: str, content: Mapping[str, Any]) -> None:
        await self._api.call("PUT", api_path("sendToDevice", kind, uuid4().hex), content=content)

    # In

    def knows(self, room_id: str, session_id: str) -> bool:
        """Return whether the device can read what was encrypted in that session of the room."""
        return self._sender_key(room_id, session_id) is not None

    def _sender_key(self, room_id: str, session_id: str) -> str | None:
        """Return the key of the device that began a session; newer clients do not name it in each event."""
        sessions = self._olm.inbound_group_store[room_id]
        return next((key for key, known in sessions.items() if session_id in known), None)

    def in_clear(self, room_id: str, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Return an encrypted event as it was written."""
        content = raw["content"]
        session_id = session_of(content)
        sender_key = self._sender_key(room_id, session_id)
        named = {"device_id": "", **content, "sender_key": sender_key or content.get("sender_key", "")}
        asked = {**raw, "room_id": room_id, "content": named}
        event = cast("object", MegolmEvent.from_dict(asked))  # pyright: ignore[reportUnknownMemberType]
        if not isinstance(event, MegolmEvent):
            problem = "it has not the form of an encrypted event"
            raise UnreadableEventError(problem)
        try:
            written = self._olm.decrypt_megolm_event(event, room_id).source
            kind, said = written["type"], written["content"]
        except EncryptionError as error:
            if sender_key is None:
                raise MissingKeyError(session_id) from error
            raise UnreadableEventError(str(error)) from error
        except _NOT_READ as error:
            problem = f"what was encrypted cannot be read ({type(error).__name__}: {error})"
            raise UnreadableEventError(problem) from error
        if kind in (REDACTION, ENCRYPTED):
            problem = f"nobody may encrypt a {kind}: the homeserver does not see who may do that"
            raise UnreadableEventError(problem)
        # Only these two are taken from what was encrypted: the state of a room, for one, never is.
        return {**raw, "type": kind, "content": said}

    # Out

    async def encrypted(
        self, room_id: str, members: Iterable[str], content: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the content of a message as only the devices of the members can read it."""
        async with self._asks:
            try:
                await self._share_key(room_id, sorted(members))
            except OlmUnverifiedDeviceError as error:
                raise DeliveryRefusedError(Platform.MATRIX, str(error)) from error
            session = self._olm.outbound_group_sessions[room_id]
            written = {"type": MESSAGE, "content": content, "room_id": room_id}
            text = json.dumps(written, ensure_ascii=False, separators=(",", ":"))
            return {
                "algorithm": MEGOLM,
                "sender_key": self._olm.account.identity_keys["curve25519"],
                "ciphertext": session.encrypt(text.encode("utf-8", "replace").decode()),
                "session_id": session.id,
                "device_id": self._olm.device_id,
                **{name: content[name] for name in IN_CLEAR if name in content},
            }

    async def _share_key(self, room_id: str, members: list[str]) -> None:
        """Give the key of a room to all devices there; make a new one if it is old, or others had it."""
        olm = self._olm
        if unknown := {one for one in members if one not in olm.tracked_users} | (
            olm.users_for_key_query & {*members}
        ):
            await self._query(unknown)
        if self._readers.get(room_id) != self._readers_among(members):
            olm.outbound_group_sessions.pop(room_id, None)
        if not olm.should_share_group_session(room_id):
            return
        if missing := olm.get_missing_sessions(members):
            await self._claim(missing)
        shares = olm.share_group_session_parallel(
            room_id, members, ignore_unverified_devices=self._ignore_unverified_devices
        )
        for _, messages in shares:
            await self._send_to_devices(ENCRYPTED, messages)
        olm.outbound_group_sessions[room_id].shared = True
        self._readers[room_id] = self._readers_among(members)

    def _readers_among(self, members: Iterable[str]) -> frozenset[tuple[str, str, bool]]:
        """Return the devices of some people, and whether there is a session to give them keys."""
        return frozenset(
            (user, device.id, self._olm.session_store.get(device.curve25519) is not None)
            for user in members
            for device in self._olm.device_store.active_user_devices(user)
        )

    # Files

    def encrypted_file(self, content: bytes) -> tuple[bytes, dict[str, Any]]:
        """Return a file as nobody can read it, and what is needed to read it."""
        encrypted, key = encrypt_attachment(content)
        return encrypted, key

    def file_in_clear(self, content: bytes, key: FileKey) -> bytes:
        """Return a file as it was."""
        try:
            return bytes(decrypt_attachment(content, key.key, key.sha256, key.iv))
        except (EncryptionError, ValueError) as error:
            problem = f"the file cannot be decrypted ({error})"
            raise InvalidInputError(problem) from error


def _digest(raw: object) -> str:
    return hashlib.sha256(json.dumps(raw, sort_keys=True).encode()).hexdigest()
