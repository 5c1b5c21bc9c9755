"""`MatrixAdapter`: the door for bots that are made with matrix-nio.

The client's own callbacks see everything that a sync brings, after the gateway has it. Do not call
`AsyncClient.sync_forever` as well: it goes on to the next sync whatever became of the last one.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote, urlencode

from gateway_sessions.adapters.group_talk import Groups, GroupTalk
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.integrations.matrix.adapter import EDIT_INTERVAL, PATIENCE_SECONDS, HomeserverAdapter
from gateway_sessions.integrations.matrix.client_api import (
    MEDIA_UPLOAD,
    HomeserverNotReachedError,
    MatrixApiError,
    result_of,
)
from gateway_sessions.integrations.matrix.events import RawEvent
from gateway_sessions.integrations.matrix.rooms import RoomInvite
from gateway_sessions.storage.files.private_files import make_private_directory, make_private_file

try:
    from aiohttp import ClientConnectorError, ClientError, ClientResponse, ConnectionTimeoutError
    from nio import AsyncClient, AsyncClientConfig, SyncResponse  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]
    from nio.crypto import ENCRYPTION_ENABLED  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]
except ModuleNotFoundError as _error:
    if _error.name not in ("nio", "aiohttp"):
        raise
    _problem = "MatrixAdapter needs matrix-nio: pip install 'gateway-sessions[matrix]'"
    raise InvalidInputError(_problem) from _error

if TYPE_CHECKING:
    from gateway_sessions.integrations.matrix_nio_encryption import NioEncryption

logger: Final = logging.getLogger(__name__)

CHUNK: Final = 64 << 10


class MatrixAdapter(HomeserverAdapter):
    """An adapter for a client of matrix-nio that is logged in."""

    def __init__(
        self,
        client: AsyncClient,
        *,
        name: str = "",
        groups: Groups[RawEvent] = GroupTalk.MENTION,
        taken: Callable[[RawEvent], bool] | None = None,
        join_invites: bool | Callable[[RoomInvite], bool] = False,
        edit_interval: timedelta = EDIT_INTERVAL,
        unreadable: str | Path | None = None,
        ignore_unverified_devices: bool = True,
    ) -> None:
        """The callbacks of the *client* are called as always; events that are *taken* are theirs alone.

        In encrypted rooms, all devices of the members can read what the bot writes; nothing is written where
        one of them is not verified, if those are not to be ignored.
        """
        super().__init__(
            NioApi(client, ignore_unverified_devices=ignore_unverified_devices),
            name=name,
            groups=groups,
            taken=taken,
            join_invites=join_invites,
            edit_interval=edit_interval,
            unreadable=unreadable,
        )


class DeviceStore(NamedTuple):
    """Where the keys of a device for encrypted rooms are kept."""

    folder: Path
    device: str
    """The device to which the token belongs."""
    passphrase: str
    """The keys are encrypted with it on the disk."""


def logged_in_client(
    homeserver: str, user: str, token: str, *, device: str | None = None, store: DeviceStore | None = None
) -> AsyncClient:
    """Return a client for an account that has a token already; with a *store*, it reads encrypted rooms."""
    if store is None:
        client = AsyncClient(homeserver)
        client.restore_login(user, device or "gateway-sessions", token)
        return client
    if not ENCRYPTION_ENABLED:
        problem = "encryption needs more: pip install 'gateway-sessions[matrix-encrypted]'"
        raise InvalidInputError(problem)
    file = store.folder / f"{quote(user, safe='@')}_{quote(store.device, safe='')}.db"
    make_private_directory(store.folder)
    make_private_file(file)
    from nio.store import SqliteStore  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]  # noqa: PLC0415

    config = AsyncClientConfig(store=SqliteStore, store_name=file.name, pickle_key=store.passphrase)
    client = AsyncClient(homeserver, store_path=str(store.folder), config=config)
    try:
        client.restore_login(user, store.device, token)
    except Exception as error:
        problem = f"the keys in {file} cannot be opened; they need the passphrase that they were made with"
        raise InvalidInputError(problem) from error
    return client


class NioApi:
    """The client-server API through a client of matrix-nio, with its session, its proxy and its token.

    The client's own calls try again for ever; here, each is made once.
    """

    def __init__(self, client: AsyncClient, *, ignore_unverified_devices: bool = True) -> None:
        self._client = client
        self._ignore_unverified_devices = ignore_unverified_devices
        self._encryption: NioEncryption | None = None

    @property
    def encryption(self) -> NioEncryption | None:
        """The encryption with the client's keys; None if it has none: no store, or not the libraries."""
        if self._encryption is None and self._client.olm is not None:
            # Imported here because it needs the libraries of another extra.
            from gateway_sessions.integrations.matrix_nio_encryption import NioEncryption  # noqa: PLC0415

            self._encryption = NioEncryption(
                self._client, self, ignore_unverified_devices=self._ignore_unverified_devices
            )
        return self._encryption

    async def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        content: Mapping[str, Any] | None = None,
        patience: float = PATIENCE_SECONDS,
    ) -> Any:
        """Call an endpoint, and return its answer as JSON has it."""
        where = f"{path}?{urlencode(query)}" if query else path
        body = None if content is None else json.dumps(content, ensure_ascii=False).encode("utf-8", "replace")
        response = await self._request(method, where, body, "application/json", patience)
        try:
            return result_of(response.status, response.headers, await response.read())
        except ClientError as error:
            raise ConnectionError(str(error)) from error

    async def upload(self, content: bytes, *, media_type: str, name: str) -> str:
        """Keep a file on the homeserver, and return its address."""
        where = f"{MEDIA_UPLOAD}?{urlencode({'filename': name})}"
        response = await self._request("POST", where, content, media_type, PATIENCE_SECONDS)
        try:
            answer = result_of(response.status, response.headers, await response.read())
        except ClientError as error:
            raise ConnectionError(str(error)) from error
        return str(answer["content_uri"])

    async def download(self, path: str, *, most: int) -> bytes:
        """Return the content of a file."""
        response = await self._request("GET", path, None, "application/json", PATIENCE_SECONDS)
        content = bytearray()
        try:
            async for chunk in response.content.iter_chunked(CHUNK):
                content += chunk
                if len(content) > most:
                    problem = f"the file has more than {most} bytes"
                    raise InvalidInputError(problem)
        except ClientError as error:
            raise ConnectionError(str(error)) from error
        finally:
            response.close()
        if response.status != 200:  # noqa: PLR2004 -- everything else is a refusal
            result_of(response.status, response.headers, bytes(content))
        return bytes(content)

    async def hand_on(self, answer: Mapping[str, Any]) -> None:
        """Let the client know its rooms, and call its callbacks."""
        try:
            read = SyncResponse.from_dict(dict(answer))
            if isinstance(read, SyncResponse):
                if self.encryption is not None:
                    read.to_device_events = self.encryption.messages_for_callbacks(read.to_device_events)
                await self._client.receive_response(read)
            await self._client.run_response_callbacks([read])
            self._client.synced.set()
            self._client.synced.clear()
        except Exception:  # a broken callback must not stop everybody
            facts = {"action": "handler_failed", "platform": "matrix"}
            logger.exception("a callback of the client failed", extra=facts)

    async def _request(
        self, method: str, where: str, body: bytes | None, media_type: str, patience: float
    ) -> ClientResponse:
        client = self._client
        if not client.access_token:
            raise MatrixApiError(401, "M_MISSING_TOKEN", "the client is not logged in")
        headers = {"Authorization": f"Bearer {client.access_token}", "Content-Type": media_type}
        headers |= client.config.custom_headers or {}
        try:
            response: ClientResponse = await client.send(method, where, body, headers, timeout=patience)
        except (ClientConnectorError, ConnectionTimeoutError) as error:
            raise HomeserverNotReachedError(str(error)) from error
        except ClientError as error:
            raise ConnectionError(str(error)) from error
        return response
