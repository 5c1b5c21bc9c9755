"""Requests and answers by which two readers of HTTP are played off against each other, over real sockets.

A proxy in front may read the same bytes in another way. So each request either means one thing only, or is
refused and its connection closed; whatever follows the first request of a connection is never taken for one.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from http import HTTPStatus

import pytest

from gateway_sessions._process.streams import closing_stream
from gateway_sessions.adapters._http import (
    MAX_ANSWER,
    MAX_HEAD,
    HttpError,
    HttpServer,
    Request,
    Response,
    Url,
    listening_socket,
    post,
)
from tests.unit.adapters.loopback import loopback

MAX_BODY = 100
ANSWER = b"taken"
SECOND = b"GET /admin HTTP/1.1\r\nhost: a\r\n\r\n"
STATUS = re.compile(rb"HTTP/1\.1 ([0-9]{3}) ")


@dataclass
class Exchange:
    """What a server made of some bytes: the requests that it has taken, and what it sent back."""

    taken: list[Request] = field(default_factory=list)
    sent: bytes = b""

    @property
    def statuses(self) -> list[int]:
        return [int(one) for one in STATUS.findall(self.sent)]

    @property
    def bodies(self) -> list[bytes]:
        return [one.body for one in self.taken]


async def exchanged(*pieces: bytes, leaving: bool = False) -> Exchange:
    """Send the pieces to a server, one after the other, and read until it closes; *leaving*: do not wait."""
    exchange = Exchange()

    async def answer(request: Request) -> Response:
        exchange.taken.append(request)
        return Response(HTTPStatus.OK, ANSWER)

    with listening_socket("127.0.0.1", 0) as listener:
        serving = asyncio.create_task(HttpServer(listener, answer, max_body=MAX_BODY).serve())
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        async with closing_stream(writer):
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
            if leaving:
                writer.write_eof()
            exchange.sent = await reader.read()
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
    return exchange


def sent(
    *headers: str, first: str = "POST /a HTTP/1.1", host: str | None = "host: a", body: bytes = b""
) -> bytes:
    lines = [first, *([host] if host else []), *headers, "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


CHUNKS = b"5\r\nhello\r\n0\r\n\r\n"


REFUSED = {
    # The length of a body can be read in two ways.
    "CL.TE": (sent("content-length: 5", "transfer-encoding: chunked", body=CHUNKS), 411),
    "TE.CL": (sent("transfer-encoding: chunked", "content-length: 5", body=CHUNKS), 411),
    "chunked": (sent("transfer-encoding: chunked", body=CHUNKS), 411),
    "xchunked": (sent("transfer-encoding: xchunked", "content-length: 5", body=b"hello"), 411),
    "two codings": (sent("transfer-encoding: gzip, chunked", body=CHUNKS), 411),
    "TE.TE": (sent("transfer-encoding: chunked", "transfer-encoding: x", body=CHUNKS), 411),
    "VT in TE": (sent("transfer-encoding:\x0bchunked", "content-length: 5", body=b"hello"), 400),
    "TE space": (sent("transfer-encoding : chunked", "content-length: 5", body=b"hello"), 400),
    "chunked GET": (sent("transfer-encoding: chunked", first="GET /a HTTP/1.1"), 411),
    "chunked 1.0": (sent("transfer-encoding: chunked", first="POST /a HTTP/1.0", body=CHUNKS), 411),
    "folded TE": (sent("x: y", " transfer-encoding: chunked", "content-length: 5", body=b"hello"), 400),
    "folded value": (sent("transfer-encoding:", " chunked", "content-length: 5", body=b"hello"), 400),
    "bare LF": (sent("x: y\ntransfer-encoding: chunked", "content-length: 5", body=b"hello"), 400),
    "bare CR": (sent("x: y\rtransfer-encoding: chunked", "content-length: 5", body=b"hello"), 400),
    "two lengths": (sent("content-length: 5", "content-length: 6", body=b"hello!"), 400),
    "the length twice": (sent("content-length: 5", "Content-Length: 5", body=b"hello"), 400),
    "lengths in a list": (sent("content-length: 5, 6", body=b"hello!"), 400),
    "the length twice in a list": (sent("content-length: 5, 5", body=b"hello"), 400),
    "a length and none": (sent("content-length: 5", "content-length:", body=b"hello"), 400),
    "space behind a name": (sent("content-length : 5", body=b"hello"), 400),
    "space in a length": (sent("content-length: 5 6", body=b"hello!"), 400),
    "empty length": (sent("content-length: ", body=b"hello"), 400),
    "signed length": (sent("content-length: +5", body=b"hello"), 400),
    "negative length": (sent("content-length: -5", body=b"hello"), 400),
    "length with an underscore": (sent("content-length: 5_0", body=b"hello"), 400),
    "hexadecimal length": (sent("content-length: 0x5", body=b"hello"), 400),
    "superscript length": (sent("content-length: \xb2", body=b"he"), 400),
    "length with a point": (sent("content-length: 5.0", body=b"hello"), 400),
    "endless length": (sent("content-length: " + "9" * 300), 400),
    "no length": (sent("x: y", body=b"hello"), 411),
    # Who is meant can be read in two ways.
    "no host": (sent("content-length: 0", host=None), 400),
    "two hosts": (sent("content-length: 0", "host: b"), 400),
    # This is no request of the version that is spoken.
    "HTTP/2.0": (sent("content-length: 0", first="POST /a HTTP/2.0"), 400),
    "HTTP/1.2": (sent("content-length: 0", first="POST /a HTTP/1.2"), 400),
    "HTTP/1.11": (sent("content-length: 0", first="POST /a HTTP/1.11"), 400),
    "http in small letters": (sent("content-length: 0", first="POST /a http/1.1"), 400),
    "HTTP/0.9": (sent("content-length: 0", first="POST /a"), 400),
    "a preface of HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    "method in small letters": (sent("content-length: 0", first="post /a HTTP/1.1"), 400),
    "a tunnel": (sent("content-length: 0", first="CONNECT b:443 HTTP/1.1"), 400),
    "two spaces": (sent("content-length: 0", first="POST  /a HTTP/1.1"), 400),
    "space at the end": (sent("content-length: 0", first="POST /a HTTP/1.1 "), 400),
    "space at the beginning": (sent("content-length: 0", first=" POST /a HTTP/1.1"), 400),
    "tabs": (sent("content-length: 0", first="POST\t/a\tHTTP/1.1"), 400),
    "non-ASCII target": (sent("content-length: 0", first="POST /\xe4 HTTP/1.1"), 400),
    "NUL in a target": (sent("content-length: 0", first="POST /\x00 HTTP/1.1"), 400),
    "long target": (sent("content-length: 0", first="POST /" + "a" * 4096 + " HTTP/1.1"), 400),
    "an empty line before": (b"\r\n" + sent("content-length: 0"), 400),
    # Headers that others may read in another way.
    "non-ASCII name": (sent("content-length: 0", "x\xe4: y"), 400),
    "NUL in a name": (sent("content-length: 0", "x\x00: y"), 400),
    "NUL in a value": (sent("content-length: 0", "x: y\x00"), 400),
    "control character in a value": (sent("content-length: 0", "x: y\x01z"), 400),
    "DEL in a value": (sent("content-length: 0", "x: y\x7f"), 400),
    "parentheses in a name": (sent("content-length: 0", "(x): y"), 400),
    "no name": (sent("content-length: 0", ": y"), 400),
    "no colon": (sent("content-length: 0", "xy"), 400),
    "folded at the beginning": (sent(" x: y", "content-length: 0", host=None), 400),
    # More than is taken.
    "a huge header": (sent("content-length: 0", "x: " + "y" * MAX_HEAD), 431),
    "many headers": (sent("content-length: 0", *["x: y"] * (MAX_HEAD // 6)), 431),
    "a line that does not end": (b"POST /" + b"a" * (2 * MAX_HEAD), 431),
    "a body that is too long": (sent("content-length: 101", body=b"x" * 101), 413),
    "a body that is far too long": (sent("content-length: 999999999999"), 413),
    "too long, and asked before": (sent("content-length: 101", "expect: 100-continue"), 413),
}


@pytest.mark.parametrize(("data", "status"), REFUSED.values(), ids=REFUSED)
async def test_what_could_be_read_in_two_ways_is_refused(data: bytes, status: int) -> None:
    exchange = await exchanged(data, SECOND)
    assert exchange.taken == []
    assert exchange.statuses == [status]
    assert b"connection: close\r\n" in exchange.sent.lower()


TAKEN = {
    "pipelined": (sent("content-length: 5", body=b"hello" + SECOND), b"hello"),
    "pipelined behind no body": (sent("content-length: 0", body=SECOND), b""),
    "an empty line between": (sent("content-length: 0", body=b"\r\n" + SECOND), b""),
    "keep-alive": (sent("content-length: 5", "connection: keep-alive", body=b"hello" + SECOND), b"hello"),
    "HTTP/1.0 without a host": (sent(first="GET /a HTTP/1.0", host=None, body=SECOND), b""),
    "GET with a body": (sent("content-length: 5", first="GET /a HTTP/1.1", body=b"hello" + SECOND), b"hello"),
    "upgrade": (
        sent("content-length: 5", "upgrade: h2c", "connection: upgrade", body=b"hello" + SECOND),
        b"hello",
    ),
    "the longest body": (sent("content-length: 100", body=b"x" * 100 + SECOND), b"x" * 100),
    "bytes that are no text": (sent("content-length: 3", body=b"\xff\x00\n" + SECOND), b"\xff\x00\n"),
    "leading zeros": (sent("content-length: 005", body=b"hello" + SECOND), b"hello"),
}


@pytest.mark.parametrize(("data", "body"), TAKEN.values(), ids=TAKEN)
async def test_one_request_is_taken_and_nothing_behind_it(data: bytes, body: bytes) -> None:
    exchange = await exchanged(data)
    assert exchange.bodies == [body]
    assert exchange.statuses == [200]
    head, _, answer = exchange.sent.partition(b"\r\n\r\n")
    assert answer == ANSWER
    assert b"connection: close" in head.lower().split(b"\r\n")


async def test_how_the_network_cuts_a_request_makes_no_difference() -> None:
    data = sent("content-length: 5", "x: y", body=b"hello")
    at_once = await exchanged(data)
    byte_by_byte = await exchanged(*(data[at : at + 1] for at in range(len(data))))
    assert byte_by_byte == at_once
    assert at_once.bodies == [b"hello"]


@pytest.mark.parametrize("size", [MAX_HEAD, MAX_HEAD + 64])
@pytest.mark.parametrize("piece", [1000, 1 << 20])
async def test_a_head_has_the_same_limit_however_it_is_cut(size: int, piece: int) -> None:
    empty = sent("content-length: 0", "x: ")
    data = sent("content-length: 0", "x: " + "y" * (size - len(empty)))
    exchange = await exchanged(*(data[at : at + piece] for at in range(0, len(data), piece)))
    assert exchange.statuses == [200 if size <= MAX_HEAD else 431]


LEFT = {
    "nothing": b"",
    "half a line": b"POST /a HT",
    "half a head": b"POST /a HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n",
    "no body": sent("content-length: 5"),
    "half a body": sent("content-length: 5", body=b"hell"),
}


@pytest.mark.parametrize("data", LEFT.values(), ids=LEFT)
async def test_whoever_leaves_in_the_middle_has_asked_nothing(data: bytes) -> None:
    exchange = await exchanged(data, leaving=True)
    assert (exchange.taken, exchange.sent) == ([], b"")


async def test_a_client_that_waits_to_be_asked_for_the_body_is_asked_before_it_is_read() -> None:
    exchange = await exchanged(sent("content-length: 5", "expect: 100-continue"), b"hello")
    assert exchange.sent.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")
    assert exchange.bodies == [b"hello"]


async def test_a_client_of_an_older_version_is_not_asked() -> None:
    exchange = await exchanged(
        sent("content-length: 5", "expect: 100-continue", first="POST /a HTTP/1.0", body=b"hello")
    )
    assert exchange.statuses == [200]


async def test_an_answer_to_head_has_no_body() -> None:
    exchange = await exchanged(sent(first="HEAD /a HTTP/1.1"))
    head, _, body = exchange.sent.partition(b"\r\n\r\n")
    assert b"content-length: 5" in head.lower().split(b"\r\n")
    assert body == b""


async def test_a_name_that_stands_there_in_two_spellings_holds_both_values() -> None:
    exchange = await exchanged(sent("content-length: 0", "Via: a", "vIA: b, c", "x: \xe4\t z \t"))
    headers = exchange.taken[0].headers
    assert (headers["via"], headers["x"]) == ("a, b, c", "\xe4\t z")


# Answers


async def answered(*pieces: bytes) -> Response | HttpError:
    """Post to a server that sends these pieces and closes."""

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for piece in pieces:
            writer.write(piece)
            await writer.drain()

    async with loopback(converse) as port:
        try:
            return await post(Url("http", "127.0.0.1", port, "/"), {}, b"", tls=None)
        except HttpError as error:  # out of the block it would come in a group
            return error


OK = b"HTTP/1.1 200 OK\r\n"


ANSWERS = {
    "TE and CL": (OK + b"transfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n" + CHUNKS, 200, b"hello"),
    "trailers": (
        OK + b"transfer-encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nx: y\r\n\r\n",
        200,
        b"hello",
    ),
    "a chunk without its end": (OK + b"transfer-encoding: chunked\r\n\r\n5\r\nhello!!0\r\n\r\n", 200, b""),
    "no last chunk": (OK + b"transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n", 200, b""),
    "negative chunk": (OK + b"transfer-encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n", 200, b""),
    "endless line of a chunk": (OK + b"transfer-encoding: chunked\r\n\r\n5" + b" " * 2 * MAX_HEAD, 200, b""),
    "more than its length": (OK + b"content-length: 2\r\n\r\nhello", 200, b"he"),
    "less than its length": (OK + b"content-length: 9\r\n\r\nhello", 200, b""),
    "the length twice": (OK + b"content-length: 2\r\ncontent-length: 2\r\n\r\nhello", 200, b"he"),
    "until the end": (OK + b"\r\nhello", 200, b"hello"),
    "more than is read": (OK + b"\r\n" + b"x" * (MAX_ANSWER + 1), 200, b"x" * MAX_ANSWER),
    "204 with a length": (b"HTTP/1.1 204 No\r\ncontent-length: 5\r\n\r\n", 204, b""),
    "304 with a length": (b"HTTP/1.1 304 No\r\ncontent-length: 5\r\n\r\nhello", 304, b""),
    "many hints": (b"HTTP/1.1 100 Continue\r\n\r\n" * 50 + OK + b"content-length: 2\r\n\r\nhi", 200, b"hi"),
    "no reason": (b"HTTP/1.0 200\r\ncontent-length: 2\r\n\r\nhi", 200, b"hi"),
}


@pytest.mark.parametrize(("data", "status", "body"), ANSWERS.values(), ids=ANSWERS)
async def test_an_answer_means_one_thing(data: bytes, status: int, body: bytes) -> None:
    whole = await answered(data)
    assert isinstance(whole, Response)
    assert (whole.status, whole.body) == (status, body)
    if len(data) < 1000:
        cut = await answered(*(data[at : at + 1] for at in range(len(data))))
        assert cut == whole


NO_ANSWERS = {
    "two lengths": OK + b"content-length: 2\r\ncontent-length: 3\r\n\r\nhi!",
    "no length": OK + b"content-length: x\r\n\r\nhi",
    "another coding": OK + b"transfer-encoding: gzip, chunked\r\n\r\n" + CHUNKS,
    "space behind a name": OK + b"x : y\r\n\r\n",
    "NUL in a value": OK + b"x: y\x00\r\n\r\n",
    "a huge header": OK + b"x: " + b"y" * 2 * MAX_HEAD + b"\r\n\r\n",
    "another protocol": b"HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n" + OK + b"\r\n",
    "status 099": b"HTTP/1.1 099 No\r\n\r\n",
    "status 600": b"HTTP/1.1 600 No\r\n\r\n",
    "status 20": b"HTTP/1.1 20 No\r\n\r\n",
    "HTTP/2.0": b"HTTP/2.0 200 OK\r\n\r\n",
    "another protocol's status": b"ICY 200 OK\r\n\r\n",
    "an alert of TLS": b"\x15\x03\x01\x00\x02\x02\x50\r\n\r\n",
}


@pytest.mark.parametrize("data", NO_ANSWERS.values(), ids=NO_ANSWERS)
async def test_of_what_is_no_answer_nobody_knows_what_became(data: bytes) -> None:
    assert isinstance(await answered(data), HttpError)
