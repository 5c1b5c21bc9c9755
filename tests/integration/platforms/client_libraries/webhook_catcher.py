"""A webhook that keeps what a fake posts to it, for the parsers of client libraries."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from gateway_sessions.testing.fakes.http_server import FakeHttpServer, FakeRequest, FakeResponse
from gateway_sessions.testing.fakes.webhook_platform import FakeWebhookPlatform


@asynccontextmanager
async def caught_from(fake: FakeWebhookPlatform) -> AsyncGenerator[asyncio.Queue[FakeRequest]]:
    """Let a fake call a webhook within the block; the requests come out of the queue."""
    requests: asyncio.Queue[FakeRequest] = asyncio.Queue()

    async def keep(request: FakeRequest) -> FakeResponse:
        requests.put_nowait(request)
        return FakeResponse(200)

    async with FakeHttpServer(keep).listening() as server:
        fake.webhook_url = server.url
        yield requests
