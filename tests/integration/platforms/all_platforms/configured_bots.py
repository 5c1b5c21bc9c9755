"""Bots on fakes of all platforms, with adapters as `serve` makes them from the settings that a fake tells."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from gateway_sessions import Gateway, SessionStore
from gateway_sessions.adapters.webhooks.endpoints import WebhookEndpoint
from gateway_sessions.adapters.webhooks.server import WebhookPort, WebhookServer
from gateway_sessions.config.kinds import AdapterConfig
from gateway_sessions.integrations.registry import BUILT_IN, make_adapters
from gateway_sessions.testing.fakes.platform_server import FakePlatformServer
from gateway_sessions.testing.fakes.webhook_platform import FakeWebhookPlatform
from tests.integration.gateway.gateway_harness import QUICK

# Python 3.11 fails now and then if two threads compile at once: everything is imported before a fake runs.
FACTORIES = [load() for load in BUILT_IN.values()]


@asynccontextmanager
async def bot_on(
    fake: FakePlatformServer, platform: str, home: Path, agent: Any, **settings: str
) -> AsyncGenerator[SessionStore]:
    """Run a gateway with that agent on a fake; *settings* are more keys of its adapter."""
    given = {**await asyncio.to_thread(fake.adapter_settings, home), **settings}
    config = AdapterConfig(platform=platform, settings=given)
    ((adapter, made_for),) = await asyncio.to_thread(make_adapters, [config])
    async with AsyncExitStack() as stack:
        stack.push_async_callback(made_for.aclose)
        store = await stack.enter_async_context(SessionStore.open(home / "store", QUICK))
        if isinstance(fake, FakeWebhookPlatform):
            assert isinstance(adapter, WebhookEndpoint)
            server = WebhookServer(adapter, port=WebhookPort(0))
            await stack.enter_async_context(server.listening())
            assert server.address is not None
            host, port = server.address
            fake.webhook_url = f"http://{host}:{port}{adapter.path}"
        await stack.enter_async_context(Gateway(store, agent=agent, adapters=[adapter]))
        yield store
