"""Ways to serve webhooks on loopback: a port of our own, and applications on uvicorn."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import uvicorn

from gateway_sessions.adapters import InboundMessage
from gateway_sessions.adapters.webhooks.adapter import WebhookAdapter
from gateway_sessions.core.queue.inbound import Receipt
from gateway_sessions.testing.contract.adapter import Inbox
from tests.unit.adapters.webhooks.example_platform import ExampleRules, FakeExample


@asynccontextmanager
async def serving(app: Any) -> AsyncIterator[str]:
    """Serve an ASGI application with uvicorn, and yield its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(app, lifespan="on", log_config=None, timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        async with asyncio.TaskGroup() as tasks:
            # uvicorn's own `serve` would take over the signals of the tests.
            serving = tasks.create_task(server._serve(sockets=[listener]))  # noqa: SLF001
            with anyio.fail_after(30):
                while not server.started:  # noqa: ASYNC110 -- uvicorn has no event for that
                    await anyio.sleep(0.005)
            try:
                yield f"http://127.0.0.1:{listener.getsockname()[1]}"
            finally:
                server.should_exit = True
                await serving


class FailingInbox(Inbox):
    """Fails for messages with some texts."""

    def __init__(self, **failures: Exception) -> None:
        super().__init__()
        self.failures = failures

    async def __call__(self, message: InboundMessage) -> Receipt:
        if (failure := self.failures.pop(message.text, None)) is not None:
            raise failure
        return await super().__call__(message)


@asynccontextmanager
async def own_port(
    fake: FakeExample, inbox: Inbox, rules: ExampleRules | None = None, **options: Any
) -> AsyncIterator[WebhookAdapter]:
    """Connect an adapter on a port of its own, to which the fake delivers."""
    adapter = WebhookAdapter(rules or ExampleRules(fake.url), port=0, **options)
    async with adapter.connect(inbox):
        fake.webhook_url = adapter.url
        yield adapter
