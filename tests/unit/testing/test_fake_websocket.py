"""The fakes' side of a WebSocket, spoken to by a client that people use."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from gateway_sessions.errors import InvalidInputError
from gateway_sessions.testing.fakes.discord import FakeDiscord
from gateway_sessions.testing.fakes.http_server import (
    ConnectionCutError,
    FakeHttpServer,
    FakeRequest,
    FakeResponse,
    UpgradedConnection,
)
from gateway_sessions.testing.fakes.slack import FakeSlack
from gateway_sessions.testing.fakes.websocket import (
    FakeWebSocket,
    TalkOfServer,
    WebSocketClosedError,
    wants_web_socket,
    web_socket,
)

PATIENCE = 30
HANDSHAKE = (
    b"GET /socket HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
CLOSED = (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.CLOSING)


@asynccontextmanager
async def served(talk: TalkOfServer) -> AsyncGenerator[tuple[FakeHttpServer, aiohttp.ClientSession]]:
    async def answer(request: FakeRequest) -> FakeResponse | UpgradedConnection:
        return web_socket(request, talk) if request.path == "/socket" else FakeResponse(200, b"plain")

    async with FakeHttpServer(answer).listening() as server, aiohttp.ClientSession(server.url) as session:
        yield server, session


async def echo(socket: FakeWebSocket) -> None:
    while True:
        await socket.send(await socket.receive())


async def test_text_and_bytes_go_both_ways_in_order():
    async with served(echo) as (_, session), session.ws_connect("/socket") as client:
        for number in range(100):
            await client.send_str(f"é {number}")
        await client.send_bytes(bytes(range(256)) * 1000)
        for number in range(100):
            assert await client.receive_str(timeout=PATIENCE) == f"é {number}"
        assert await client.receive_bytes(timeout=PATIENCE) == bytes(range(256)) * 1000


async def test_json_and_the_request_are_there_for_the_taking():
    async def talk(socket: FakeWebSocket) -> None:
        await socket.send_json({"query": socket.request.query, "got": await socket.receive_json()})

    async with served(talk) as (_, session), session.ws_connect("/socket?v=10") as client:
        await client.send_json([1])
        assert await client.receive_json(timeout=PATIENCE) == {"query": {"v": "10"}, "got": [1]}
        message = await client.receive(timeout=PATIENCE)
        assert (message.type in CLOSED, client.close_code) == (True, 1000)


async def test_what_the_client_sends_with_its_request_is_not_lost():
    async with served(echo) as (server, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", int(server.url.rpartition(":")[2]))
        writer.write(HANDSHAKE + b"\x01\x82\0\0\0\0he\x80\x83\0\0\0\0llo")  # a message in two frames
        answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)
        assert b"101 Switching Protocols" in answer
        assert b"sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n" in answer
        assert await asyncio.wait_for(reader.readexactly(7), PATIENCE) == b"\x81\x05hello"
        writer.write(b"\x81\x81\0\0\0\0\xff")  # no text in UTF-8
        assert await asyncio.wait_for(reader.readexactly(4), PATIENCE) != b""
        writer.close()


async def test_the_server_closes_with_a_code_and_a_reason():
    async def talk(socket: FakeWebSocket) -> None:
        await socket.close(4004, "Authentication failed.")
        await socket.close(4005)  # once is enough
        with pytest.raises(WebSocketClosedError):
            await socket.send("more")

    async with served(talk) as (_, session), session.ws_connect("/socket", autoclose=False) as client:
        message = await client.receive(timeout=PATIENCE)
        assert (message.data, message.extra) == (4004, "Authentication failed.")


async def test_the_server_hears_how_a_client_went():
    heard: asyncio.Queue[tuple[int, str]] = asyncio.Queue()

    async def talk(socket: FakeWebSocket) -> None:
        try:
            await socket.receive()
        except WebSocketClosedError as closed:
            await heard.put((closed.code, closed.reason))
            await socket.send("too late")

    async with served(talk) as (server, session):
        async with session.ws_connect("/socket") as client:
            await client.close(code=4000, message=b"bye")
        assert await asyncio.wait_for(heard.get(), PATIENCE) == (4000, "bye")
        reader, writer = await asyncio.open_connection("127.0.0.1", int(server.url.rpartition(":")[2]))
        writer.write(HANDSHAKE)
        await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)
        writer.transport.abort()
        assert await asyncio.wait_for(heard.get(), PATIENCE) == (1006, "")


async def test_a_cut_socket_ends_without_a_code():
    async def talk(socket: FakeWebSocket) -> None:
        if await socket.receive() == "cut":
            socket.cut()
        raise ConnectionCutError

    async with served(talk) as (_, session):
        for word in ("cut", "raise"):
            async with session.ws_connect("/socket") as client:
                await client.send_str(word)
                message = await client.receive(timeout=PATIENCE)
                assert message.type in CLOSED
                assert client.close_code in (1006, None)


async def test_a_server_that_stops_says_no_goodbye():
    async with served(echo) as (server, session), session.ws_connect("/socket") as client:
        await client.send_str("hello")
        await client.receive_str(timeout=PATIENCE)
        await server.stop()
        assert (await client.receive(timeout=PATIENCE)).type in CLOSED
        assert client.close_code in (1006, None)


async def test_pings_are_answered():
    async with served(echo) as (_, session), session.ws_connect("/socket", autoping=False) as client:
        await client.ping(b"there?")
        message = await client.receive(timeout=PATIENCE)
        assert (message.type, message.data) == (aiohttp.WSMsgType.PONG, b"there?")


async def test_plain_requests_are_answered_and_told_apart():
    async with served(echo) as (_, session):
        async with session.get("/") as response:
            assert await response.text() == "plain"
        async with session.get("/socket") as response:
            assert (response.status, response.headers["upgrade"]) == (426, "websocket")
    assert wants_web_socket(FakeRequest(method="GET", path="/", headers={"upgrade": "WebSocket"}))
    assert not wants_web_socket(FakeRequest(method="GET", path="/"))


@pytest.mark.parametrize("fake", [FakeDiscord, FakeSlack])
def test_a_fake_says_at_once_what_it_lacks(fake: type, monkeypatch: pytest.MonkeyPatch):
    """The sentence had stood in a traceback of the server, and the bot only met a connection that broke."""
    monkeypatch.setitem(sys.modules, "wsproto", None)
    with pytest.raises(InvalidInputError, match=r"needs wsproto: pip install 'gateway-sessions\[test\]'"):
        fake()
