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
from typing import Any, Final
from urllib.parse import urlencode

from gateway_sessions.errors import InvalidInputError
from gateway_sessions.integrations.matrix.adapter import EDIT_INTERVAL, PATIENCE_SECONDS, HomeserverAdapter
from gateway_sessions.integrations.matrix.client_api import (
    MEDIA_UPLOAD,
    HomeserverNotReachedError,
    MatrixApiError,
    result_of,
)
from gateway_sessions.integrations.matrix.events import RawEvent, RoomTalk
from gateway_sessions.integrations.matrix.rooms import RoomInvite

try:
    from aiohttp import ClientConnectorError, ClientError, ClientResponse, ConnectionTimeoutError
    from nio import AsyncClient, SyncResponse  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]
except ModuleNotFoundError as _error:
    if _error.name not in ("nio", "aiohttp"):
        raise
    _problem = "MatrixAdapter needs matrix-nio: pip install 'gateway-sessions[matrix]'"
    raise InvalidInputError(_problem) from _error

logger: Final = logging.getLogger(__name__)

CHUNK: Final = 64 << 10


class MatrixAdapter(HomeserverAdapter):
    """An adapter for a client of matrix-nio that is logged in."""

    def __init__(
        self,
        client: AsyncClient,
        *,
        name: str = "",
        groups: RoomTalk | str | Callable[[RawEvent], bool] = RoomTalk.MENTION,
        taken: Callable[[RawEvent], bool] | None = None,
        join_invites: bool | Callable[[RoomInvite], bool] = False,
        edit_interval: timedelta = EDIT_INTERVAL,
        unreadable: str | Path | None = None,
    ) -> None:
        """The callbacks of the *client* are called as always; events that are *taken* are theirs alone."""
        super().__init__(
            NioApi(client),
            name=name,
            groups=groups,
            taken=taken,
            join_invites=join_invites,
            edit_interval=edit_interval,
            unreadable=unreadable,
        )


def logged_in_client(homeserver: str, user: str, token: str, *, device: str | None = None) -> AsyncClient:
    """Return a client for an account that has a token already; a *device* has a name for encryption only."""
    client = AsyncClient(homeserver)
    client.restore_login(user, device or "gateway-sessions", token)
    return client


class NioApi:
    """The client-server API through a client of matrix-nio, with its session, its proxy and its token.

    The client's own calls try again for ever; here, each is made once.
    """

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

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
