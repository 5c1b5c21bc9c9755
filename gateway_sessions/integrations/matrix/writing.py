"""`RoomWriter`: writes events and files into rooms, encrypted where people encrypt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway_sessions.core.identity.source import Platform
from gateway_sessions.errors import DeliveryRefusedError
from gateway_sessions.integrations.matrix.client_api import MatrixApi, api_path
from gateway_sessions.integrations.matrix.directory import RoomDirectory
from gateway_sessions.integrations.matrix.encryption import RoomEncryption
from gateway_sessions.integrations.matrix.events import ENCRYPTED, MESSAGE
from gateway_sessions.integrations.matrix.sending import MatrixFile


class RoomWriter:
    """Writes into rooms; what people would not expect in plain text is not written in plain text."""

    def __init__(self, api: MatrixApi, directory: RoomDirectory) -> None:
        self._api = api
        self._directory = directory

    async def write(self, room_id: str, transaction: str, content: Mapping[str, Any]) -> str:
        """Write a message, and return the id of its event."""
        if (encryption := await self._encryption(room_id)) is None:
            return await self.write_plainly(room_id, transaction, content)
        room = self._directory.room(room_id)
        await self._directory.ask_members(room)
        if room.members is None:
            problem = "the homeserver does not tell who is in the encrypted room"
            raise DeliveryRefusedError(Platform.MATRIX, problem)
        encrypted = await encryption.encrypted(room_id, [*room.members], content)
        return await self._put(room_id, ENCRYPTED, transaction, encrypted)

    async def write_plainly(self, room_id: str, transaction: str, content: Mapping[str, Any]) -> str:
        """Write a message for everybody, also in an encrypted room; return the id of its event."""
        return await self._put(room_id, MESSAGE, transaction, content)

    async def upload(self, room_id: str, file: MatrixFile) -> dict[str, Any]:
        """Keep a file on the homeserver, and return what an event in that room says of its place."""
        if (encryption := await self._encryption(room_id)) is None:
            url = await self._api.upload(file.content, media_type=file.media_type, name=file.name)
            return {"url": url}
        content, key = encryption.encrypted_file(file.content)
        url = await self._api.upload(content, media_type="application/octet-stream", name="")
        return {"file": {**key, "url": url}}

    async def _encryption(self, room_id: str) -> RoomEncryption | None:
        """Return the encryption for a room; None: people write in plain text there."""
        if not await self._directory.is_encrypted(room_id):
            return None
        if (encryption := self._api.encryption) is None:
            problem = "the room is encrypted, and this account cannot encrypt"
            raise DeliveryRefusedError(Platform.MATRIX, problem)
        return encryption

    async def _put(self, room_id: str, kind: str, transaction: str, content: Mapping[str, Any]) -> str:
        path = api_path("rooms", room_id, "send", kind, transaction)
        sent = await self._api.call("PUT", path, content=content)
        return str(sent["event_id"])
