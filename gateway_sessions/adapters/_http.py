"""As much of HTTP/1.1 as a webhook needs: one request on a connection, one answer, and strict limits.

Whatever is unusual is refused and not guessed at: no request without a length, no folded headers, no second
request. A proxy in front speaks everything else.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, TypeAlias
from urllib.parse import urlsplit

import anyio
from anyio.abc import TaskGroup

from gateway_sessions.errors import InvalidInputError
from gateway_sessions.streams import accept, closing

MAX_HEAD: Final = 16 << 10
"""The first line and the headers; also the longest line that tells the length of a chunk."""

_END_OF_HEAD: Final = b"\r\n\r\n"
_REQUEST_LINE: Final = re.compile(r"([A-Z]{1,16}) ([!-~]{1,4096}) HTTP/1\.[01]")
_STATUS_LINE: Final = re.compile(r"HTTP/1\.[01] ([1-5][0-9]{2})(?: [\t -~\x80-\xff]*)?")
_HEADER: Final = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t -~\x80-\xff]*?)[ \t]*")
_LENGTH: Final = re.compile(r"[0-9]{1,12}")
_CHUNK: Final = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]*)?\r\n")


class HttpError(Exception):
    """What was received is no HTTP, or more of it than is taken; `status` is the answer to a request."""

    def __init__(self, status: HTTPStatus, problem: str) -> None:
        self.status = status
        self.problem = problem
        super().__init__(problem)


@dataclass(frozen=True, slots=True)
class Request:
    """What a client wants. Names of headers are in lower case."""

    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""

    @property
    def path(self) -> str:
        """The target without a query."""
        return self.target.partition("?")[0]

    def encode(self) -> bytes:
        """The bytes to send."""
        return _encoded(f"{self.method} {self.target} HTTP/1.1", self.headers, self.body)


@dataclass(frozen=True, slots=True)
class Response:
    """What a server answers."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    def encode(self) -> bytes:
        """The bytes to send."""
        return _encoded(f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}", self.headers, self.body)


async def receive_request(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, max_body: int
) -> Request:
    """The one request on a connection; `HttpError` or `EOFError` if there is none to answer."""
    first, headers = await _head(reader)
    found = _REQUEST_LINE.fullmatch(first)
    if found is None:
        raise HttpError(HTTPStatus.BAD_REQUEST, "this is no request")
    if "transfer-encoding" in headers or (found[1] == "POST" and "content-length" not in headers):
        raise HttpError(HTTPStatus.LENGTH_REQUIRED, "a body needs a content-length")
    length = _length_of(headers)
    if length > max_body:
        raise HttpError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body may have {max_body} bytes")
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    return Request(found[1], found[2], headers, await reader.readexactly(length))


async def receive_status(reader: asyncio.StreamReader) -> tuple[int, Mapping[str, str]]:
    """Status and headers of a final answer; its body stands behind them."""
    while True:
        first, headers = await _head(reader)
        found = _STATUS_LINE.fullmatch(first)
        if found is None:
            raise HttpError(HTTPStatus.BAD_GATEWAY, "this is no answer")
        if int(found[1]) >= HTTPStatus.OK:
            return int(found[1]), headers


async def receive_body(reader: asyncio.StreamReader, headers: Mapping[str, str], *, max_body: int) -> bytes:
    """The body of an answer, however its end is told."""
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return await _chunks(reader, max_body)
    if "content-length" in headers:
        length = _length_of(headers)
        return await reader.readexactly(length) if length <= max_body else b""
    body = b""
    while len(body) <= max_body and (more := await reader.read(max_body)):
        body += more
    return body[:max_body]


async def _head(reader: asyncio.StreamReader) -> tuple[str, Mapping[str, str]]:
    """First line and headers."""
    try:
        head = await reader.readuntil(_END_OF_HEAD)
    except asyncio.LimitOverrunError:
        status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        raise HttpError(status, f"headers may have {MAX_HEAD} bytes") from None
    first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    headers: dict[str, str] = {}
    for line in lines:
        found = _HEADER.fullmatch(line)
        if found is None:
            raise HttpError(HTTPStatus.BAD_REQUEST, "a header is malformed")
        name = found[1].lower()
        headers[name] = f"{headers[name]}, {found[2]}" if name in headers else found[2]
    return first, headers


def _length_of(headers: Mapping[str, str]) -> int:
    told = headers.get("content-length", "0")
    if not _LENGTH.fullmatch(told):
        raise HttpError(HTTPStatus.BAD_REQUEST, "content-length is no number")
    return int(told)


async def _chunks(reader: asyncio.StreamReader, max_body: int) -> bytes:
    body = b""
    while True:
        found = _CHUNK.fullmatch(await reader.readuntil(b"\r\n"))
        size = int(found[1], 16) if found else 0
        if size == 0 or len(body) + size > max_body:
            return body
        body += await reader.readexactly(size)
        await reader.readexactly(len(b"\r\n"))


def _encoded(first: str, headers: Mapping[str, str], body: bytes) -> bytes:
    told = {**headers, "content-length": str(len(body)), "connection": "close"}
    lines = [first, *(f"{name}: {value}" for name, value in told.items())]
    return "\r\n".join(lines).encode("latin-1") + _END_OF_HEAD + body


CONNECT_SECONDS: Final = 10.0
ANSWER_SECONDS: Final = 30.0
BODY_SECONDS: Final = 5.0
MAX_ANSWER: Final = 64 << 10

_PORTS: Final = {"http": 80, "https": 443}


class NotConnectedError(Exception):
    """There was no connection, so nothing can have arrived."""


@dataclass(frozen=True, slots=True)
class Url:
    """Where requests go."""

    scheme: str
    host: str
    port: int
    target: str

    @classmethod
    def parse(cls, text: str) -> Url:
        """Read an address that begins with `http://` or `https://`."""
        try:
            parts = urlsplit(text)
            port = parts.port or _PORTS[parts.scheme]
        except (KeyError, ValueError):
            raise _no_url(text) from None
        target = f"{parts.path or '/'}?{parts.query}".removesuffix("?")
        plain = (parts.hostname or "").isprintable() and target.isascii() and target.isprintable()
        if not parts.hostname or not plain or " " in text or parts.username is not None:
            raise _no_url(text)
        return cls(parts.scheme, parts.hostname, port, target)

    @property
    def authority(self) -> str:
        """What a server knows itself by."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


async def post(url: Url, headers: Mapping[str, str], body: bytes, *, tls: ssl.SSLContext | None) -> Response:
    """Send a body and return the answer.

    `NotConnectedError`: nothing was sent. Any other error: nobody knows whether it has arrived.
    """
    request = Request("POST", url.target, {"host": url.authority, **headers}, body)
    async with _connected(url, tls) as (reader, writer):
        with anyio.fail_after(ANSWER_SECONDS):
            writer.write(request.encode())
            await writer.drain()
            status, told = await receive_status(reader)
        answer = b""
        # The status tells what became of the request; a body that never comes changes nothing about that.
        with anyio.move_on_after(BODY_SECONDS), contextlib.suppress(*_BROKEN):
            answer = await receive_body(reader, told, max_body=MAX_ANSWER)
        return Response(status, answer, told)


_BROKEN: Final = (OSError, EOFError, asyncio.LimitOverrunError, HttpError)


@asynccontextmanager
async def _connected(
    url: Url, tls: ssl.SSLContext | None
) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    context = tls if url.scheme == "https" else None
    try:
        with anyio.fail_after(CONNECT_SECONDS):
            opened = await asyncio.open_connection(url.host, url.port, ssl=context, limit=MAX_HEAD)
    except (
        OSError,
        UnicodeError,
    ) as error:  # a time-out, a name that is none or unknown, a wrong certificate
        raise NotConnectedError(str(error) or type(error).__name__) from error
    reader, writer = opened
    async with closing(writer):
        yield reader, writer


def _no_url(text: str) -> InvalidInputError:
    problem = f"{text!r} is no address of the form http://host/path or https://host/path"
    return InvalidInputError(problem)


MAX_CONNECTIONS: Final = 64
BACKLOG: Final = 128
ARRIVAL_SECONDS: Final = 10.0
"""How long a request may take to arrive, and an answer to be taken."""
PAUSE_SECONDS: Final = 0.1
"""How long to leave those outside who cannot be let in, because this process may open no more files."""
LEFTOVERS_SECONDS: Final = 1.0

Answer: TypeAlias = Callable[[Request], Awaitable[Response]]


class HttpServer:
    """Listens at an address, and answers with what the function it was given returns."""

    def __init__(self, listener: socket.socket, answer: Answer, *, max_body: int) -> None:
        self._listener = listener
        self._answer = answer
        self._max_body = max_body
        self._room = asyncio.Semaphore(MAX_CONNECTIONS)

    async def serve(self) -> None:
        """Answer for ever. Whoever comes while there is no room waits outside."""
        async with anyio.create_task_group() as conversations:
            await self._accept(conversations)

    async def _accept(self, conversations: TaskGroup) -> None:
        while True:
            await self._room.acquire()
            try:
                connection = await accept(self._listener)
            except OSError:
                self._room.release()
                await anyio.sleep(PAUSE_SECONDS)
                continue
            conversations.start_soon(self._converse, connection)

    async def _converse(self, connection: socket.socket) -> None:
        try:
            with connection:
                reader, writer = await asyncio.open_connection(sock=connection, limit=MAX_HEAD)
                async with closing(writer):
                    response = await self._response(reader, writer)
                    writer.write(response.encode())
                    with anyio.fail_after(ARRIVAL_SECONDS):
                        await writer.drain()
                    await _take_leftovers(reader, writer)
        except (OSError, EOFError):
            pass  # it went away, or was too slow: there is nobody to answer
        finally:
            self._room.release()

    async def _response(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Response:
        try:
            with anyio.fail_after(ARRIVAL_SECONDS):
                request = await receive_request(reader, writer, max_body=self._max_body)
        except HttpError as error:
            return Response(error.status, error.problem.encode())
        return await self._answer(request)


async def _take_leftovers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read what still comes: to close on unread bytes may throw away an answer that is on its way."""
    writer.write_eof()
    with anyio.move_on_after(LEFTOVERS_SECONDS):
        while await reader.read(MAX_HEAD):
            pass


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens at an address; `OSError` if that is not possible."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    listener.setblocking(False)  # noqa: FBT003 -- the only form there is
    return listener
