"""One request, and whether it can have arrived."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from gateway_sessions.adapters import _http
from gateway_sessions.adapters._http import HttpError, NotConnectedError, Response, Url, post
from gateway_sessions.errors import InvalidInputError
from tests.unit.adapters.loopback import CERTIFICATE, localhost, loopback


@asynccontextmanager
async def server(
    answer: bytes | None, *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[Url, list[bytes]]]:
    """Answers to each request with those bytes, and closes; None: never, and stays."""
    received: list[bytes] = []

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.append(await reader.readuntil(b"\r\n\r\n") + await reader.readexactly(4))
        if answer is None:
            await reader.read()
        writer.write(answer or b"")

    async with loopback(converse, tls=tls) as port:
        yield (
            Url("https" if tls else "http", "localhost" if tls else "127.0.0.1", port, "/hook?x=1"),
            received,
        )


async def posted(url: Url, tls: ssl.SSLContext | None = None) -> Response:
    return await post(url, {"x-y": "z"}, b"body", tls=tls)


async def test_a_request_is_sent_and_answered():
    async with server(b"HTTP/1.1 200 OK\r\nx: y\r\ncontent-length: 2\r\n\r\nhi") as (url, received):
        assert await posted(url) == Response(200, b"hi", {"x": "y", "content-length": "2"})
    first, *lines = received[0].decode().split("\r\n")
    assert first == "POST /hook?x=1 HTTP/1.1"
    assert lines == [
        f"host: 127.0.0.1:{url.port}", "x-y: z", "content-length: 4", "connection: close", "", "body"
    ]  # fmt: skip


CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhi",
        CHUNKED + b"no number\r\n",
        CHUNKED + b"2\r\nab\r\nffff\r\n",
    ],
)
async def test_a_body_that_breaks_off_changes_nothing_about_what_happened(answer: bytes):
    async with server(answer) as (url, _):
        response = await posted(url)
    assert (response.status, response.body) == (200, b"")


@pytest.mark.parametrize(
    ("data", "status", "body"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi and more", 200, b"hi"),
        (b"HTTP/1.0 200\r\n\r\nuntil the end", 200, b"until the end"),
        (b"HTTP/1.1 200 \r\n\r\n", 200, b""),
        (b"HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n", 204, b""),
        (
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 201 C\r\n\r\n",
            201,
            b"",
        ),
        (CHUNKED + b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n", 200, b"abcde"),
        (CHUNKED + b"2\r\nab\r\nffff\r\n" + b"x" * 300, 200, b"ab" + b"x" * 98),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 101\r\n\r\n" + b"x" * 101, 200, b""),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 300, 200, b"x" * 100),
    ],
)
async def test_an_answer_is_read_however_its_end_is_told(
    monkeypatch: pytest.MonkeyPatch, data: bytes, status: int, body: bytes
):
    monkeypatch.setattr(_http, "MAX_ANSWER", 100)
    async with server(data) as (url, _):
        response = await posted(url)
    assert (response.status, response.body) == (status, body)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"", EOFError),
        (b"HTTP/1.1 200 OK\r\n", EOFError),
        (b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n", HttpError),
        (b"SSH-2.0\r\n\r\n", HttpError),
        (b"\r\n\r\n", HttpError),
        (b"HTTP/1.1 OK\r\n\r\n", HttpError),
        (b"HTTP/1.1 600 No\r\n\r\n", HttpError),
        (b"HTTP/2 200\r\n\r\n", HttpError),
        (b"x" * 20_000, HttpError),
    ],
)
async def test_without_an_answer_nobody_knows(answer: bytes, error: type[Exception]):
    async with server(answer) as (url, received):
        with pytest.raises(error):
            await posted(url)
    assert len(received) == 1


async def test_an_answer_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_http, "ANSWER_SECONDS", 0.02)
    async with server(None) as (url, _):
        with pytest.raises(TimeoutError):
            await posted(url)


async def test_where_nobody_listens_nothing_arrives():
    async with server(b"") as (url, _):
        pass
    with pytest.raises(NotConnectedError):
        await posted(url)


@pytest.mark.parametrize("host", ["x" * 80, "no..name"])
async def test_where_nobody_lives_nothing_arrives(host: str):
    with pytest.raises(NotConnectedError):
        await posted(Url("http", host, 80, "/"))


async def test_a_connection_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_http, "CONNECT_SECONDS", 0)
    async with server(b"") as (url, received):
        with pytest.raises(NotConnectedError):
            await posted(url)
    assert received == []


# TLS


@pytest.fixture
def trusting() -> ssl.SSLContext:
    return ssl.create_default_context(cafile=CERTIFICATE)


@pytest.fixture
def certified() -> ssl.SSLContext:
    return localhost()


async def test_a_server_that_is_known_is_spoken_to_in_private(
    trusting: ssl.SSLContext, certified: ssl.SSLContext
):
    async with server(b"HTTP/1.1 202 Accepted\r\n\r\n", tls=certified) as (url, received):
        assert (await posted(url, trusting)).status == 202
    assert len(received) == 1


async def test_a_server_that_is_not_known_is_told_nothing(certified: ssl.SSLContext):
    async with server(b"HTTP/1.1 202 Accepted\r\n\r\n", tls=certified) as (url, received):
        with pytest.raises(NotConnectedError, match="certificate"):
            await posted(url, ssl.create_default_context())
    assert received == []


async def test_a_server_of_another_name_is_told_nothing(trusting: ssl.SSLContext, certified: ssl.SSLContext):
    async with server(b"", tls=certified) as (url, received):
        with pytest.raises(NotConnectedError):
            await posted(Url("https", "127.0.0.2", url.port, "/"), trusting)
    assert received == []


# Addresses


@pytest.mark.parametrize(
    ("text", "url", "authority"),
    [
        ("http://host", Url("http", "host", 80, "/"), "host"),
        ("https://host/a/b?c=d&e", Url("https", "host", 443, "/a/b?c=d&e"), "host"),
        ("HTTPS://Host:8443/#part", Url("https", "host", 8443, "/"), "host:8443"),
        ("http://[::1]:80/x?", Url("http", "::1", 80, "/x"), "[::1]"),
        ("http://[::1]:81", Url("http", "::1", 81, "/"), "[::1]:81"),
    ],
)
def test_an_address_is_read(text: str, url: Url, authority: str):
    assert Url.parse(text) == url
    assert url.authority == authority


@pytest.mark.parametrize(
    "text",
    [
        "", "host", "//host/", "ftp://host/", "http://", "http:///path", "http://user:word@host/",
        "http://host:port/", "http://host:99999/", "http://ho st/", "http://host/ä", "http://host/\x7f", "http://[::1",
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused(text: str):
    with pytest.raises(InvalidInputError, match="no address"):
        Url.parse(text)
