"""What is taken for a request or an answer, and what is not."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_sessions.adapters._http import (
    MAX_HEAD,
    HttpError,
    Request,
    Response,
    receive_body,
    receive_request,
    receive_status,
)


class Writer:
    def __init__(self) -> None:
        self.written = b""

    def write(self, data: bytes) -> None:
        self.written += data


def reader_of(data: bytes) -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=MAX_HEAD)
    reader.feed_data(data)
    reader.feed_eof()
    return reader


async def request_of(data: bytes, writer: Any = None) -> Request:
    return await receive_request(reader_of(data), writer or Writer(), max_body=100)


def post(*headers: str, body: bytes = b"") -> bytes:
    return "\r\n".join(("POST /a HTTP/1.1", *headers, "", "")).encode("latin-1") + body


async def test_a_request_is_read():
    request = await request_of(post("Content-Length: 2", "X-Y:\t z \t", body=b"hi and more"))
    assert request == Request("POST", "/a", {"content-length": "2", "x-y": "z"}, b"hi")


async def test_a_request_is_read_as_it_was_written():
    request = Request("POST", "/a?b=c", {"x": "y"}, b"body")
    again = await request_of(request.encode())
    assert (again.method, again.target, again.path, again.body) == ("POST", "/a?b=c", "/a", b"body")
    assert again.headers == {"x": "y", "content-length": "4", "connection": "close"}


async def test_a_request_without_a_body_needs_no_length():
    assert await request_of(b"GET / HTTP/1.0\r\n\r\n") == Request("GET", "/", {})


async def test_a_header_that_stands_there_twice_holds_both():
    request = await request_of(post("content-length: 0", "via: a", "Via: b"))
    assert request.headers["via"] == "a, b"


async def test_a_client_that_waits_to_be_asked_for_the_body_is_asked():
    writer = Writer()
    request = await request_of(post("content-length: 2", "expect: 100-Continue", body=b"hi"), writer)
    assert request.body == b"hi"
    assert writer.written == b"HTTP/1.1 100 Continue\r\n\r\n"


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\r\n\r\n", 400),
        (b"hello\r\n\r\n", 400),
        (b"post /a HTTP/1.1\r\n\r\n", 400),
        (b"POST /a HTTP/2.0\r\n\r\n", 400),
        (b"POST /a b HTTP/1.1\r\n\r\n", 400),
        (b"POST /\xc3\xa4 HTTP/1.1\r\n\r\n", 400),
        (b"GET " + b"/" * 5000 + b" HTTP/1.1\r\n\r\n", 400),
        (post("no header"), 400),
        (post("a : b"), 400),
        (post(": b"), 400),
        (post("a: b", " folded"), 400),
        (post("a: b\x00"), 400),
        (post("a: b\nc: d"), 400),
        (post("content-length: -1"), 400),
        (post("content-length: +1"), 400),
        (post("content-length: 1e3"), 400),
        (post("content-length: 0x10"), 400),
        (post("content-length: " + "1" * 13), 400),
        (post("content-length: 5", "content-length: 6"), 400),
        (post("content-length: 5", "content-length: 5"), 400),
        (post(), 411),
        (post("transfer-encoding: chunked"), 411),
        (post("transfer-encoding: chunked", "content-length: 5"), 411),
        (b"GET / HTTP/1.1\r\ntransfer-encoding: x\r\n\r\n", 411),
        (post("content-length: 101"), 413),
        (post("content-length: " + "9" * 12), 413),
        (post("a: " + "b" * MAX_HEAD), 431),
        (b"x" * (MAX_HEAD + 10), 431),
    ],
)
async def test_what_is_unusual_is_refused(data: bytes, status: int):
    with pytest.raises(HttpError) as refused:
        await request_of(data)
    assert refused.value.status == status


@pytest.mark.parametrize(
    "data", [b"", b"POST", b"POST /a HTTP/1.1\r\n", post("content-length: 5", body=b"1234")]
)
async def test_whoever_leaves_early_has_asked_nothing(data: bytes):
    with pytest.raises(EOFError):
        await request_of(data)


@given(data=st.binary(max_size=80))
def test_no_bytes_whatever_break_it(data: bytes):
    async def read() -> None:
        for given_bytes in (data, data + b"\r\n\r\n", b"POST / HTTP/1.1\r\n" + data + b"\r\n\r\n"):
            try:
                await request_of(given_bytes)
            except (HttpError, EOFError):
                continue

    asyncio.run(read())


# Answers


async def answer_of(data: bytes, *, max_body: int = 100) -> tuple[int, bytes]:
    reader = reader_of(data)
    status, headers = await receive_status(reader)
    return status, await receive_body(reader, headers, max_body=max_body)


async def test_an_answer_is_read_as_it_was_written():
    answer = Response(HTTPStatus.ACCEPTED, b"{}", {"retry-after": "5"})
    assert answer.encode().startswith(b"HTTP/1.1 202 Accepted\r\nretry-after: 5\r\n")
    assert await answer_of(answer.encode()) == (202, b"{}")


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
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n",
            200,
            b"abcde",
        ),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nno number\r\n", 200, b""),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\nffff\r\n", 200, b"ab"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 101\r\n\r\n" + b"x" * 101, 200, b""),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 300, 200, b"x" * 100),
    ],
)
async def test_an_answer_is_read_however_its_end_is_told(data: bytes, status: int, body: bytes):
    assert await answer_of(data) == (status, body)


@pytest.mark.parametrize("first", [b"", b"SSH-2.0", b"HTTP/1.1 OK", b"HTTP/1.1 600 No", b"HTTP/2 200"])
async def test_what_is_no_answer_is_told(first: bytes):
    with pytest.raises(HttpError):
        await answer_of(first + b"\r\n\r\n")


async def test_an_answer_that_is_cut_off_is_told():
    with pytest.raises(EOFError):
        await answer_of(b"HTTP/1.1 200 OK\r\n")
    with pytest.raises(EOFError):
        await answer_of(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhi")
