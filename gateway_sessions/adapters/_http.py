"""HTTP/1.1 for the webhook and the health endpoint, with one request on each connection.

`h11` reads and writes the bytes. This module moves them between `h11` and the network, and sets the limits. A
request that two readers can understand differently is refused, because a proxy in front may have understood
it in the other way. So there is no body without a length, no folded header and no second request.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Final, TypeAlias
from urllib.parse import parse_qsl, urlsplit

import anyio
import h11
from anyio.abc import TaskGroup

from gateway_sessions._process.streams import accept_connection, closing_stream
from gateway_sessions._process.waits import rests_while_waiting
from gateway_sessions.errors import InvalidInputError

MAX_HEAD: Final = 16 << 10
"""The most bytes of a first line with its headers, and of the line with the length of a chunk.

Proxies allow 8 to 32 KiB. Ours are a few hundred bytes.
"""
MAX_TARGET: Final = 4096
"""The most characters of a target. Our paths are short; a longer one is a mistake or an attack."""

_VERSIONS: Final = {b"1.0", b"1.1"}
_METHOD: Final = re.compile(rb"[A-Z]{1,16}")
_AMBIGUOUS: Final = re.compile(
    rb"""
    (?<!\r)\n | \r(?!\n)                        # some readers end a line there, and others do not
    | \n[\ \t]                                  # some readers see a header, and others a longer one
    | [\x00-\x08\x0b\x0c\x0e-\x1f\x7f]          # some readers end a value there, or leave the character out
    | \ncontent-length:[^\r]*,                  # some readers take the first length, and others the last one
    | \ncontent-length:.*\ncontent-length:
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
"""Bytes in the head of a request that h11 reads in one way and other readers in another."""

MAX_QUERY: Final = 100
"""The most parameters of a query: those of challenges and signatures are fewer than ten."""


class HttpError(Exception):
    """The received bytes are no valid HTTP, or exceed a limit; a server answers with `status`."""

    def __init__(self, status: HTTPStatus, problem: str) -> None:
        self.status = status
        self.problem = problem
        super().__init__(problem)


@dataclass(frozen=True, slots=True)
class Request:
    """A request of a client. Names of headers are in lower case."""

    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""

    @property
    def path(self) -> str:
        """The target without a query."""
        return self.target.partition("?")[0]

    @property
    def query(self) -> Mapping[str, str]:
        """The parameters of the query, the last of each name; nothing of a query that has too many."""
        query = self.target.partition("?")[2]
        try:
            return dict(parse_qsl(query, keep_blank_values=True, max_num_fields=MAX_QUERY))
        except ValueError:
            return {}


@dataclass(frozen=True, slots=True)
class Response:
    """An answer of a server. Names of headers are in lower case."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


async def _receive_into_protocol(protocol: h11.Connection, reader: asyncio.StreamReader) -> bytes:
    """Pass the next bytes of a connection to h11, and return them; no bytes mean its end."""
    # h11 never holds more than MAX_HEAD bytes: it refuses a head at one length, however the network cuts it.
    unread, _ = protocol.trailing_data
    if received := await reader.read(MAX_HEAD - len(unread)):
        protocol.receive_data(received)
    return received


def _new_protocol(role: type[h11.CLIENT] | type[h11.SERVER]) -> h11.Connection:
    # One less: h11 refuses what is longer, and `_receive_into_protocol` needs room for one more byte.
    return h11.Connection(role, max_incomplete_event_size=MAX_HEAD - 1)


def _headers_by_name(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return headers by name; the values of a repeated header are joined by commas."""
    decoded: dict[str, str] = {}
    for raw_name, raw_value in headers:
        name, value = raw_name.decode("ascii"), raw_value.decode("latin-1")
        decoded[name] = f"{decoded[name]}, {value}" if name in decoded else value
    return decoded


def _headers_to_send(headers: Mapping[str, str], body: bytes) -> list[tuple[bytes, bytes]]:
    """Return the headers to send with a body, after which the connection is closed."""
    sent = {**headers, "content-length": str(len(body)), "connection": "close"}
    return [(name.encode("ascii"), value.encode("latin-1")) for name, value in sent.items()]


# A server

MAX_CONNECTIONS: Final = 64
"""The most requests at a time."""
LARGE_BODY: Final = 256 << 10
"""The bytes of a body from which on it needs one of few places: nobody has proven yet who sends it."""
LARGE_BODIES: Final = 4
"""The most larger bodies at a time; others wait. With 3 MiB each, all requests hold at most 28 MiB."""
BACKLOG: Final = 128
"""The connections that the system keeps until there is room: twice as many, for a short burst."""
ARRIVAL_SECONDS: Final = 10.0
"""The time limit for a request to arrive, and for its answer to be read, so that no slow client stays."""
PAUSE_SECONDS: Final = 0.1
"""The pause before the next client is accepted when this process may open no more files."""
LEFTOVERS_SECONDS: Final = 1.0
"""The time limit for reading on after an answer. A client that sends longer may not get its answer."""

Answer: TypeAlias = Callable[[Request], Awaitable[Response]]


class ServerExchange:
    """One request on a connection, and the answer to it, at the side of the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, max_body: int) -> None:
        self._reader = reader
        self._writer = writer
        self._max_body = max_body
        self._protocol = _new_protocol(h11.SERVER)
        self._is_head = False

    async def receive(self, before_large_body: Callable[[], Awaitable[object]] | None = None) -> Request:
        """Return the request; `HttpError` if it is refused, `EOFError` if the client has left too early.

        *before_large_body* is awaited before a body of more than `LARGE_BODY` bytes is read.
        """
        try:
            head = await self._receive_head()
            self._is_head = head.method == b"HEAD"
            headers = self._checked_headers(head)
            is_large = int(headers.get("content-length", "0")) > LARGE_BODY
            if is_large and before_large_body is not None:
                await before_large_body()
            if self._protocol.they_are_waiting_for_100_continue:  # the client has not sent its body yet
                go_on = h11.InformationalResponse(status_code=100, reason=b"Continue", headers=[])
                self._writer.write(self._protocol.send(go_on))
            body = await self._receive_body()
        except h11.RemoteProtocolError as error:
            raise _error_for_bad_request(error) from error
        return Request(head.method.decode("ascii"), head.target.decode("ascii"), headers, body)

    def send(self, response: Response) -> None:
        """Write the answer, whether there was a request or an error."""
        body = response.body
        head = h11.Response(
            status_code=response.status,
            reason=HTTPStatus(response.status).phrase.encode("ascii"),
            headers=_headers_to_send(response.headers, body),
        )
        self._writer.write(self._protocol.send(head))
        self._writer.write(self._protocol.send(h11.Data(data=b"" if self._is_head else body)))
        self._writer.write(self._protocol.send(h11.EndOfMessage()))

    async def _receive_head(self) -> h11.Request:
        received = b""
        while True:
            match self._protocol.next_event():
                case h11.Request() as head:
                    break
                case _:
                    received += await self._receive_more()
        behind, _ = self._protocol.trailing_data
        if _AMBIGUOUS.search(received[: len(received) - len(behind)]):
            raise HttpError(HTTPStatus.BAD_REQUEST, "a header is malformed")
        return head

    def _checked_headers(self, head: h11.Request) -> dict[str, str]:
        """Return the headers of a valid request, or raise `HttpError` before its body is read."""
        headers = _headers_by_name(head.headers)
        unusual = not _METHOD.fullmatch(head.method) or head.method == b"CONNECT"  # we are nobody's tunnel
        if unusual or head.http_version not in _VERSIONS or len(head.target) > MAX_TARGET:
            raise HttpError(HTTPStatus.BAD_REQUEST, "this is no request")
        if "transfer-encoding" in headers or (head.method == b"POST" and "content-length" not in headers):
            raise HttpError(HTTPStatus.LENGTH_REQUIRED, "a body needs a content-length")
        if int(headers.get("content-length", "0")) > self._max_body:
            problem = f"a body may have {self._max_body} bytes"
            raise HttpError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, problem)
        return headers

    async def _receive_body(self) -> bytes:
        body = bytearray()
        while True:
            match self._protocol.next_event():
                case h11.Data(data=data):
                    body += data
                case h11.EndOfMessage():
                    return bytes(body)
                case _:
                    await self._receive_more()

    async def _receive_more(self) -> bytes:
        received = await _receive_into_protocol(self._protocol, self._reader)
        if not received:
            problem = "the client has left"
            raise EOFError(problem)
        return received


def _error_for_bad_request(error: h11.RemoteProtocolError) -> HttpError:
    """Return the error for a request that h11 refuses, in our words: its own may quote a stranger."""
    match error.error_status_hint:
        case HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE:
            status, problem = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"headers may have {MAX_HEAD} bytes"
        case HTTPStatus.NOT_IMPLEMENTED:  # a coding of the body, which has no length then
            status, problem = HTTPStatus.LENGTH_REQUIRED, "a body needs a content-length"
        case _:
            status, problem = HTTPStatus.BAD_REQUEST, "this is no request"
    return HttpError(status, problem)


class HttpServer:
    """A server that answers each request with what its function returns."""

    def __init__(self, listener: socket.socket, answer: Answer, *, max_body: int) -> None:
        self._listener = listener
        self._answer = answer
        self._max_body = max_body
        self._room = asyncio.Semaphore(MAX_CONNECTIONS)
        self._large_bodies = asyncio.Semaphore(LARGE_BODIES)

    async def serve(self) -> None:
        """Answer requests until cancelled. While there is no room, clients wait unaccepted."""
        async with anyio.create_task_group() as conversations:
            await self._accept_connections(conversations)

    @rests_while_waiting
    async def _accept_connections(self, conversations: TaskGroup) -> None:
        while True:
            await self._room.acquire()  # before accepting: unaccepted connections cost nothing
            try:
                connection = await accept_connection(self._listener)
            except OSError:
                self._room.release()
                await anyio.sleep(PAUSE_SECONDS)
                continue
            conversations.start_soon(self._answer_connection, connection)

    async def _answer_connection(self, connection: socket.socket) -> None:
        try:
            with connection:
                reader, writer = await asyncio.open_connection(sock=connection, limit=MAX_HEAD)
                async with closing_stream(writer):
                    exchange = ServerExchange(reader, writer, max_body=self._max_body)
                    exchange.send(await self._response_to_request(exchange))
                    with anyio.fail_after(ARRIVAL_SECONDS):
                        await writer.drain()
                    await _discard_unread_bytes(reader, writer)
        except (OSError, EOFError):
            pass  # the client went away, or was too slow: there is nobody to answer
        finally:
            self._room.release()

    async def _response_to_request(self, exchange: ServerExchange) -> Response:
        async with AsyncExitStack() as held:
            try:
                with anyio.fail_after(ARRIVAL_SECONDS):
                    request = await exchange.receive(partial(held.enter_async_context, self._large_bodies))
            except HttpError as error:
                return Response(error.status, error.problem.encode())
            return await self._answer(request)


async def _discard_unread_bytes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read what still comes: closing a connection with unread bytes may discard the answer on its way."""
    writer.write_eof()
    with anyio.move_on_after(LEFTOVERS_SECONDS):
        while await reader.read(MAX_HEAD):
            pass


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address; `OSError` if that is not possible."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    listener.setblocking(False)  # noqa: FBT003 -- the only form there is
    return listener


# A client

CONNECT_SECONDS: Final = 10.0
"""The time limit for the lookup of a name, the connection and its TLS; nothing is sent before."""
ANSWER_SECONDS: Final = 30.0
"""The time limit for a receiver's answer, which is that of our own webhook."""
BODY_SECONDS: Final = 5.0
"""The time limit for the body of an answer: the status has already said what matters."""
MAX_ANSWER: Final = 64 << 10
"""The most bytes of an answer's body that are read: only an id is looked for in it."""

_PORTS: Final = {"http": 80, "https": 443}
_BROKEN: Final = (OSError, EOFError, h11.RemoteProtocolError)
_FIRST_UNKNOWN_STATUS: Final = 600


class NotConnectedError(Exception):
    """No connection was made, so nothing can have arrived."""


@dataclass(frozen=True, slots=True)
class Url:
    """The address of a request."""

    scheme: str
    host: str
    port: int
    target: str

    @classmethod
    def parse(cls, text: str) -> Url:
        """Parse an address that begins with `http://` or `https://`."""
        try:
            parts = urlsplit(text)
            port = parts.port or _PORTS[parts.scheme]
        except (KeyError, ValueError):
            raise _invalid_url_error(text) from None
        target = f"{parts.path or '/'}?{parts.query}".removesuffix("?")
        plain = (parts.hostname or "").isprintable() and target.isascii() and target.isprintable()
        if not parts.hostname or not plain or " " in text or parts.username is not None:
            raise _invalid_url_error(text)
        return cls(parts.scheme, parts.hostname, port, target)

    @property
    def authority(self) -> str:
        """The host, with the port unless it is the usual one, as in the header `host`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


async def post(
    url: Url, headers: Mapping[str, str], body: bytes, *, tls: ssl.SSLContext | None, method: str = "POST"
) -> Response:
    """Send a body and return the answer.

    After `NotConnectedError`, nothing was sent; after any other error, nobody knows whether it has arrived.
    """
    protocol = _new_protocol(h11.CLIENT)
    request = h11.Request(
        method=method.encode("ascii"),
        target=url.target,
        headers=_headers_to_send({"host": url.authority, **headers}, body),
    )
    events = (request, h11.Data(data=body), h11.EndOfMessage())
    sent = b"".join(protocol.send(event) for event in events)
    async with _open_connection(url, tls) as (reader, writer):
        with anyio.fail_after(ANSWER_SECONDS):
            writer.write(sent)
            await writer.drain()
            head = await _read_answer_head(protocol, reader)
        answered, answer = _headers_by_name(head.headers), b""
        # The status already says whether the request was accepted; a missing body changes nothing.
        with anyio.move_on_after(BODY_SECONDS), contextlib.suppress(*_BROKEN):
            answer = await _read_answer_body(protocol, reader, int(answered.get("content-length", "0")))
        return Response(head.status_code, answer, answered)


async def _read_answer_head(protocol: h11.Connection, reader: asyncio.StreamReader) -> h11.Response:
    """Return status and headers of the final answer, and skip informational ones before it."""
    try:
        while True:
            match protocol.next_event():
                case h11.Response() as head:
                    break
                case h11.InformationalResponse():
                    continue
                case _:
                    if not await _receive_into_protocol(protocol, reader):
                        problem = "the server has left"
                        raise EOFError(problem)
    except h11.RemoteProtocolError as error:
        raise HttpError(HTTPStatus.BAD_GATEWAY, f"this is no answer ({error})") from error
    if head.http_version not in _VERSIONS or head.status_code >= _FIRST_UNKNOWN_STATUS:
        raise HttpError(HTTPStatus.BAD_GATEWAY, "this is no answer")
    return head


async def _read_answer_body(protocol: h11.Connection, reader: asyncio.StreamReader, length: int) -> bytes:
    """Return the body of an answer up to MAX_ANSWER bytes; nothing if its length is greater."""
    body = bytearray()
    while length <= MAX_ANSWER and len(body) <= MAX_ANSWER:
        match protocol.next_event():
            case h11.Data(data=data):
                body += data
            case h11.EndOfMessage():
                break
            case _:
                if not await _receive_into_protocol(protocol, reader):
                    protocol.receive_data(
                        b""
                    )  # the end of the connection may be that of the body: h11 decides
    return bytes(body[:MAX_ANSWER])


@asynccontextmanager
async def _open_connection(
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
    async with closing_stream(writer):
        yield reader, writer


def _invalid_url_error(text: str) -> InvalidInputError:
    problem = f"{text!r} is no address of the form http://host/path or https://host/path"
    return InvalidInputError(problem)
