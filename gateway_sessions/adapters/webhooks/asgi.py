"""`WebhookApp`: an ASGI application for webhooks, to be mounted in what you have, or served by itself.

It needs no library: any ASGI server runs it, and FastAPI, Starlette and Django mount it under any path.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, TypeAlias

import anyio

from gateway_sessions.adapters._http import (
    ARRIVAL_SECONDS,
    LARGE_BODIES,
    LARGE_BODY,
    MAX_CONNECTIONS,
    Request,
    Response,
)
from gateway_sessions.adapters.webhooks.endpoints import EndpointTable, WebhookEndpoint
from gateway_sessions.adapters.webhooks.engine import not_listening

AsgiScope: TypeAlias = MutableMapping[str, Any]
AsgiMessage: TypeAlias = MutableMapping[str, Any]
AsgiReceive: TypeAlias = Callable[[], Awaitable[AsgiMessage]]
AsgiSend: TypeAlias = Callable[[AsgiMessage], Awaitable[None]]

_REQUEST: Final = "http.request"


class _RefusedBodyError(Exception):
    """A body is too large, or does not arrive."""

    def __init__(self, status: HTTPStatus) -> None:
        self.status = status
        super().__init__(status.phrase)


class WebhookApp:
    """An ASGI application in which each webhook answers at its path."""

    def __init__(self, *endpoints: WebhookEndpoint, arrival_seconds: float = ARRIVAL_SECONDS) -> None:
        """*endpoints* are adapters; *arrival_seconds* is the time in which a body must arrive."""
        self._endpoints = EndpointTable(endpoints)
        self._arrival_seconds = arrival_seconds
        # Each request may hold a body in memory. Whoever comes when there is no room is asked to come again.
        self._room = MAX_CONNECTIONS
        self._large_bodies = asyncio.Semaphore(LARGE_BODIES)

    async def __call__(self, scope: AsgiScope, receive: AsgiReceive, send: AsgiSend) -> None:
        """Answer a request, or take part in the start and the end of a server."""
        match scope["type"]:
            case "http":
                await self._answer(scope, receive, send)
            case "lifespan":
                await _follow_lifespan(receive, send)
            case "websocket":
                await send({"type": "websocket.close", "code": 1000})
            case other:
                problem = f"this application does not know the ASGI scope {other!r}"
                raise NotImplementedError(problem)

    async def _answer(self, scope: AsgiScope, receive: AsgiReceive, send: AsgiSend) -> None:
        try:
            response = await self._response(scope, receive)
        except EOFError:
            return  # the client has left: there is nobody to answer
        body = b"" if scope["method"] == "HEAD" else response.body
        headers = {**response.headers, "content-length": str(len(response.body))}
        raw = [(name.lower().encode("ascii"), value.encode("latin-1")) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": int(response.status), "headers": raw})
        await send({"type": "http.response.body", "body": body})

    async def _response(self, scope: AsgiScope, receive: AsgiReceive) -> Response:
        path = _path_below_mount(scope)
        endpoint = self._endpoints.find(path)
        if endpoint is None:
            return Response(HTTPStatus.NOT_FOUND)
        if self._room <= 0:
            return not_listening()
        self._room -= 1
        try:
            async with AsyncExitStack() as held:
                body = _ArrivingBody(receive, endpoint.max_body, self._large_bodies, held)
                with anyio.fail_after(self._arrival_seconds):
                    request = await _request_of(scope, path, body)
                return await endpoint.answer(request)
        except _RefusedBodyError as refused:
            return Response(refused.status)
        except TimeoutError:
            return Response(HTTPStatus.REQUEST_TIMEOUT)
        finally:
            self._room += 1


def _path_below_mount(scope: AsgiScope) -> str:
    """Return the path without that of the mount: servers and frameworks leave it in the path, or do not."""
    path, root = str(scope["path"]), str(scope.get("root_path", "")).rstrip("/")
    if root and (path == root or path.startswith(f"{root}/")):
        path = path[len(root) :]
    return path or "/"


async def _request_of(scope: AsgiScope, path: str, body: _ArrivingBody) -> Request:
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    told = headers.get("content-length", "0")
    if told.isdigit() and len(told) < 20 and int(told) > body.most:  # noqa: PLR2004 -- more digits are no length
        raise _RefusedBodyError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    query = scope.get("query_string", b"").decode("latin-1")
    return Request(scope["method"], f"{path}?{query}".removesuffix("?"), headers, await body.read())


@dataclass(frozen=True, slots=True)
class _ArrivingBody:
    """A body that arrives; a large one holds a place for large bodies until its request is answered."""

    receive: AsgiReceive
    most: int
    large_bodies: asyncio.Semaphore
    held: AsyncExitStack

    async def read(self) -> bytes:
        """Return the body, and read no further once it is too large."""
        body, is_held = bytearray(), False
        while True:
            message = await self.receive()
            if message["type"] != _REQUEST:
                problem = "the client has left"
                raise EOFError(problem)
            body += message.get("body", b"")
            if len(body) > self.most:
                raise _RefusedBodyError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            if len(body) > LARGE_BODY and not is_held:
                await self.held.enter_async_context(self.large_bodies)
                is_held = True
            if not message.get("more_body", False):
                return bytes(body)


async def _follow_lifespan(receive: AsgiReceive, send: AsgiSend) -> None:
    while True:
        match (await receive())["type"]:
            case "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            case "lifespan.shutdown":
                await send({"type": "lifespan.shutdown.complete"})
                return
            case _:
                await asyncio.sleep(0)
