"""The HTTP server of the fakes: who stops it cuts every connection, also one that is just being accepted."""

from __future__ import annotations

import asyncio
import socket

import pytest

from gateway_sessions.testing.fakes.http_server import FakeHttpServer, FakeRequest, FakeResponse

REQUEST = b"GET / HTTP/1.1\r\nhost: e.org\r\n\r\n"


async def answer(_: FakeRequest) -> FakeResponse:
    return FakeResponse(body=b"hello")


@pytest.mark.parametrize("turns", range(6))
async def test_a_stopped_server_answers_nobody(turns: int):
    server = FakeHttpServer(answer)
    async with server.listening():
        port = int(server.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
            for _ in range(turns):  # of the event loop, by which the server accepts the connection
                await asyncio.sleep(0)
            await server.stop()
            assert await asyncio.to_thread(answer_to, client) == b""


def answer_to(client: socket.socket) -> bytes:
    try:
        client.sendall(REQUEST)
        return client.recv(1 << 10)
    except ConnectionError:
        return b""
