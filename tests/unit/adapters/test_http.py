"""What is taken for a request, and what is not."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from http import HTTPStatus
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_sessions.adapters._http import MAX_HEAD, MAX_TARGET, HttpError, Request, Response, ServerExchange


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


def exchange(data: bytes, writer: Any = None) -> ServerExchange:
    return ServerExchange(reader_of(data), writer or Writer(), max_body=100)


async def request_of(data: bytes, writer: Any = None) -> Request:
    return await exchange(data, writer).receive()


def post(*headers: str, body: bytes = b"") -> bytes:
    return "\r\n".join(("POST /a HTTP/1.1", "host: x", *headers, "", "")).encode("latin-1") + body


async def test_a_request_is_read():
    request = await request_of(post("Content-Length: 2", "X-Y:\t z \t", body=b"hi and more"))
    assert request == Request("POST", "/a", {"host": "x", "content-length": "2", "x-y": "z"}, b"hi")


async def test_a_path_is_a_target_without_its_query():
    assert (await request_of(b"GET /a?b=c HTTP/1.0\r\n\r\n")).path == "/a"


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
        (b"post /a HTTP/1.1\r\nhost: x\r\n\r\n", 400),
        (b"POST /a HTTP/2.0\r\nhost: x\r\n\r\n", 400),
        (b"POST /a b HTTP/1.1\r\n\r\n", 400),
        (b"POST /\xc3\xa4 HTTP/1.1\r\n\r\n", 400),
        (b"GET " + b"/" * (MAX_TARGET + 1) + b" HTTP/1.0\r\n\r\n", 400),
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
        (post("content-length: " + "1" * 21), 400),
        (post("content-length: 5", "content-length: 6"), 400),
        (post("content-length: 5", "content-length: 5"), 400),
        (post(), 411),
        (post("transfer-encoding: chunked"), 411),
        (post("transfer-encoding: chunked", "content-length: 5"), 411),
        (b"GET / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: x\r\n\r\n", 411),
        (post("content-length: 101"), 413),
        (post("content-length: " + "9" * 20), 413),
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


@given(
    data=st.one_of(
        st.binary(max_size=80),
        st.lists(st.sampled_from([
            b"POST", b"HEAD", b"GET", b"CONNECT", b" ", b"/", b"HTTP/1.1", b"HTTP/1.0", b"\r\n", b"\n",
            b"host: x\r\n", b"content-length: ", b"transfer-encoding: ", b"chunked", b"5", b"0",
            b"expect: 100-continue\r\n", b"connection: upgrade\r\nupgrade: h2c\r\n", b"\r\n\r\n", b"hello",
        ]), max_size=20).map(b"".join),
    )
)  # fmt: skip
def test_no_bytes_whatever_break_it_and_each_can_be_answered(data: bytes):
    async def converse() -> None:
        for given_bytes in (data, data + b"\r\n\r\n", b"POST / HTTP/1.1\r\nhost: x\r\n" + data + b"\r\n\r\n"):
            writer = Writer()
            one = exchange(given_bytes, writer)
            try:
                await one.receive()
            except EOFError:
                continue
            except HttpError as error:
                one.send(Response(error.status))
            else:
                one.send(Response(HTTPStatus.OK, b"hi"))
            assert writer.written.startswith(b"HTTP/1.1 ")

    asyncio.run(converse())


async def test_an_answer_ends_its_connection():
    writer = Writer()
    one = exchange(post("content-length: 0"), writer)
    await one.receive()
    one.send(Response(HTTPStatus.ACCEPTED, b"{}", {"retry-after": "5"}))
    head = b"HTTP/1.1 202 Accepted\r\nretry-after: 5\r\ncontent-length: 2\r\nconnection: close\r\n\r\n"
    assert writer.written == head + b"{}"


def test_a_program_that_speaks_no_http_does_not_load_it():
    code = """
import sys
from gateway_sessions import Gateway, SessionStore
from gateway_sessions.adapters import console
sys.exit("h11" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
