"""A bot as `serve` makes it from its settings, in JSON, that repeats what it is told.

Platforms that call a bot find it at a port; 0: the platform calls nobody.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack

from gateway_sessions.adapters.webhooks.endpoints import WebhookEndpoint
from gateway_sessions.adapters.webhooks.server import WebhookPort, WebhookServer
from gateway_sessions.config.kinds import AdapterConfig
from gateway_sessions.integrations.registry import make_adapters
from tests.crash.platforms.bots.repeating_bot import repeat_all


async def main(home: str, port: str, platform: str, settings: str) -> None:
    config = AdapterConfig(platform=platform, settings=json.loads(settings))
    ((adapter, _),) = await asyncio.to_thread(make_adapters, [config])
    async with AsyncExitStack() as stack:
        if isinstance(adapter, WebhookEndpoint) and port != "0":
            server = WebhookServer(adapter, port=WebhookPort(int(port)))
            await stack.enter_async_context(server.listening())
        await repeat_all(home, adapter)
