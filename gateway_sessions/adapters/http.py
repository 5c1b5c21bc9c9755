"""As much of HTTP/1.1 as a webhook needs: one request on a connection, one answer, and strict limits.

Whatever is unusual is refused and not guessed at: no request without a length, no folded headers, no second
request. A proxy in front speaks everything else.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

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
