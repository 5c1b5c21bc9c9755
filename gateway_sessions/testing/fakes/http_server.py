"""An HTTP server on loopback for fakes of platforms: it keeps connections open, and can cut them.

It is a server for tests and nothing else: requests are trusted, bodies are held in memory.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl, unquote

import anyio
import h11

CHUNK: Final = 64 << 10


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """A file in the form of a request."""

    name: str
    content: bytes
    media_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeRequest:
    """A client asks for something. Names of headers are in lower case."""

    method: str
    path: str
    """Decoded, without the query."""
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the query and of the body: JSON, or a form, maybe with files."""
        kind, _, rest = self.headers.get("content-type", "").partition(";")
        if kind == "application/json":
            return {**self.query, **json.loads(self.body or b"{}")}
        if kind == "application/x-www-form-urlencoded":
            return {**self.query, **dict(parse_qsl(self.body.decode(), keep_blank_values=True))}
        if kind == "multipart/form-data":
            return {**self.query, **_form(self.body, rest.partition("boundary=")[2].strip('"'))}
        return dict(self.query)


@dataclass(frozen=True, slots=True)
class FakeResponse:
    """What a client gets."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def of_json(
        cls, value: object, *, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> FakeResponse:
        """Return an answer in JSON."""
        kind = {"content-type": "application/json; charset=utf-8"}
        return cls(status, json.dumps(value).encode(), {**kind, **(headers or {})})


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradedConnection:
    """A handler returns this to speak another protocol from now on, until `speak` returns."""

    headers: Mapping[str, str]
    """The headers of the answer that switches the protocol."""
    speak: Callable[[asyncio.StreamReader, asyncio.StreamWriter, bytes], Awaitable[None]]
    """This function gets both directions of the connection, and what was read of the new protocol already."""


class ConnectionCutError(Exception):
    """A handler raises this to end the connection without an answer."""


RequestHandler: TypeAlias = Callable[[FakeRequest], Awaitable[FakeResponse | UpgradedConnection]]


class FakeHttpServer:
    """Answers on a port of its own, until its block ends."""

    def __init__(self, handle: RequestHandler) -> None:
        self._handle = handle
        self._connections: set[asyncio.Task[None]] = set()
        self._listener: socket.socket | None = None
        self.port: int = 0
        """The port; 0 before the start: any that is free."""
        self.url: str = ""
        """The address of the server, without a slash at its end."""

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[FakeHttpServer]:
        """Listen within the block."""
        await self.start()
        try:
            yield self
        finally:
            await self.stop()

    async def start(self) -> None:
        """Listen, on the same port as before if there was one."""
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self._listener.setblocking(False)  # noqa: FBT003 -- the only form there is
        self.port = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        # A server of asyncio leaks a connection that it is just accepting when it is closed.
        asyncio.get_running_loop().add_reader(self._listener, self._accept, self._listener)

    async def stop(self) -> None:
        """Listen no more, and cut every connection."""
        if self._listener is not None:
            asyncio.get_running_loop().remove_reader(self._listener)
            self._listener.close()
            self._listener = None
        self.cut_connections()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def cut_connections(self) -> None:
        """End every connection, in the middle of whatever it carries."""
        for task in self._connections:
            task.cancel()

    def _accept(self, listener: socket.socket) -> None:
        try:
            accepted, _ = listener.accept()
        except (BlockingIOError, ConnectionError):  # whoever knocked has gone
            return
        accepted.setblocking(False)  # noqa: FBT003 -- the only form there is
        # asyncio does this for its own sockets only; without it, an answer in two pieces takes 40 ms.
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        task = asyncio.get_running_loop().create_task(self._serve(accepted))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)
        task.add_done_callback(lambda _: accepted.close())  # a task that is cancelled first never runs

    async def _serve(self, accepted: socket.socket) -> None:
        with suppress(ConnectionError, h11.RemoteProtocolError, asyncio.CancelledError):
            reader, writer = await asyncio.open_connection(sock=accepted)
            try:
                await self._answer_requests(_Connection(reader, writer))
            finally:
                writer.transport.abort()

    async def _answer_requests(self, connection: _Connection) -> None:
        while (request := await connection.receive()) is not None:
            response = await self._response(connection, request)
            if isinstance(response, UpgradedConnection):
                await connection.upgrade(response)
                return
            if response is None or not await connection.send(response):
                return

    async def _response(
        self, connection: _Connection, request: FakeRequest
    ) -> FakeResponse | UpgradedConnection | None:
        """Return the answer to a request; None if the connection ends instead, here or at the client."""
        response: FakeResponse | UpgradedConnection | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(connection.cancel_when_closed, tasks.cancel_scope)
            with suppress(ConnectionCutError):
                response = await self._handle(request)
            tasks.cancel_scope.cancel()
        return response


class _Connection:
    """One connection of a client, which may carry many requests."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._protocol = h11.Connection(h11.SERVER)

    async def receive(self) -> FakeRequest | None:
        """Return the next request; None at the end of the connection."""
        head: h11.Request | None = None
        body = bytearray()
        while True:
            match self._protocol.next_event():
                case h11.Request() as head:
                    if self._protocol.they_are_waiting_for_100_continue:
                        self._write(h11.InformationalResponse(status_code=100, headers=[]))
                case h11.Data(data=data):
                    body += data
                case h11.EndOfMessage():
                    return _request(head, bytes(body)) if head is not None else None
                case h11.ConnectionClosed() | h11.PAUSED:
                    return None
                case _:
                    self._protocol.receive_data(await self._reader.read(CHUNK))

    async def cancel_when_closed(self, scope: anyio.CancelScope) -> None:
        """Cancel the handling of a request whose client has gone."""
        received = await self._reader.read(CHUNK)
        self._protocol.receive_data(received)
        if not received:
            scope.cancel()

    async def send(self, response: FakeResponse) -> bool:
        """Send an answer; return whether another request may follow."""
        headers = {"content-length": str(len(response.body)), **response.headers}
        self._write(
            h11.Response(
                status_code=response.status,
                reason=HTTPStatus(response.status).phrase.encode(),
                headers=[(name.encode(), value.encode()) for name, value in headers.items()],
            )
        )
        self._write(h11.Data(data=response.body))
        self._write(h11.EndOfMessage())
        await self._writer.drain()
        if self._protocol.our_state is not h11.DONE or self._protocol.their_state is not h11.DONE:
            return False
        self._protocol.start_next_cycle()
        return True

    async def upgrade(self, upgraded: UpgradedConnection) -> None:
        """Switch the protocol, and speak the other one to its end."""
        headers = [(name.encode(), value.encode()) for name, value in upgraded.headers.items()]
        self._write(
            h11.InformationalResponse(status_code=101, reason=b"Switching Protocols", headers=headers)
        )
        read_already, _ = self._protocol.trailing_data
        await upgraded.speak(self._reader, self._writer, read_already)

    def _write(self, event: h11.Event) -> None:
        self._writer.write(self._protocol.send(event) or b"")


def _request(head: h11.Request, body: bytes) -> FakeRequest:
    path, _, query = head.target.decode("ascii").partition("?")
    return FakeRequest(
        method=head.method.decode("ascii"),
        path=unquote(path),
        query=dict(parse_qsl(query, keep_blank_values=True)),
        headers={name.decode("ascii"): value.decode("latin-1") for name, value in head.headers},
        body=body,
    )


def _form(body: bytes, boundary: str) -> dict[str, Any]:
    """Return the fields and files of a form of several parts."""
    fields: dict[str, Any] = {}
    for part in body.split(b"--" + boundary.encode())[1:-1]:
        head, _, content = part.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        headers = _part_headers(head.decode("utf-8", "replace"))
        names = dict(parse_qsl(headers["content-disposition"].replace("; ", "&").replace('"', "")))
        content = content.removesuffix(b"\r\n")
        if "filename" in names:
            kind = headers.get("content-type", "application/octet-stream")
            fields[names["name"]] = UploadedFile(names["filename"], content, kind)
        else:
            fields[names["name"]] = content.decode()
    return fields


def _part_headers(text: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in text.split("\r\n"))
    return {name.strip().lower(): value.strip() for name, _, value in pairs}
