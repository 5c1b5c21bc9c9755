"""Bodies that nobody has proven to be genuine yet fill no memory: few large ones are held at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import httpx2
import pytest

from gateway_sessions.adapters._http import LARGE_BODIES, LARGE_BODY, Request, Response
from gateway_sessions.adapters.webhooks.asgi import WebhookApp
from gateway_sessions.adapters.webhooks.server import WebhookPort, WebhookServer

SMALL, LARGE = b"x" * LARGE_BODY, b"x" * (LARGE_BODY + 1)
Post = Callable[[bytes], Awaitable[int]]


class Holding:
    """An endpoint that holds each request until it is told to let go."""

    path = "/hook"
    max_body = 3 << 20

    def __init__(self) -> None:
        self.held: list[int] = []
        self.released = anyio.Event()

    async def answer(self, request: Request) -> Response:
        self.held.append(len(request.body))
        await self.released.wait()
        return Response(200)

    async def wait_for(self, number: int) -> None:
        with anyio.fail_after(10):
            while len(self.held) < number:
                await anyio.lowlevel.checkpoint()
        await anyio.wait_all_tasks_blocked()


@asynccontextmanager
async def by_port(endpoint: Holding) -> AsyncIterator[Post]:
    server = WebhookServer(endpoint, port=WebhookPort(0))
    async with server.listening(), httpx2.AsyncClient(timeout=20) as client:
        assert server.address is not None
        url = f"http://{server.address[0]}:{server.address[1]}/hook"

        async def post(body: bytes) -> int:
            return (await client.post(url, content=body)).status_code

        yield post


@asynccontextmanager
async def by_asgi(endpoint: Holding) -> AsyncIterator[Post]:
    app = WebhookApp(endpoint)

    async def post(body: bytes) -> int:
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {"type": "http", "method": "POST", "path": "/hook", "headers": []}
        await app(scope, receive, send)
        return int(sent[0]["status"])

    yield post


@pytest.mark.parametrize("opened", [by_port, by_asgi])
async def test_few_large_bodies_are_held_and_small_ones_pass_them(opened: Callable[[Holding], Any]):
    endpoint, statuses = Holding(), []

    async def post_and_note(post: Post, body: bytes) -> None:
        statuses.append(await post(body))

    async with opened(endpoint) as post, anyio.create_task_group() as clients:
        for _ in range(LARGE_BODIES + 2):
            clients.start_soon(post_and_note, post, LARGE)
        await endpoint.wait_for(LARGE_BODIES)
        for _ in range(3):
            clients.start_soon(post_and_note, post, SMALL)
        await endpoint.wait_for(LARGE_BODIES + 3)
        assert sorted(endpoint.held) == [*[len(SMALL)] * 3, *[len(LARGE)] * LARGE_BODIES]
        endpoint.released.set()
    assert statuses == [200] * (LARGE_BODIES + 5)
