"""Apps of Slack as people make them, on a fake Slack."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from gateway_sessions.testing.fakes.slack import FakeSlack

quiet = logging.getLogger("tests.slack")
quiet.setLevel(logging.CRITICAL)


def web_client(slack: FakeSlack, token: str | None = None) -> AsyncWebClient:
    return AsyncWebClient(token or slack.token, base_url=slack.api_url, logger=quiet)


def bolt_app(slack: FakeSlack, **options: Any) -> AsyncApp:
    return AsyncApp(
        client=web_client(slack), signing_secret=slack.signing_secret, name="tests", logger=quiet, **options
    )


@asynccontextmanager
async def serving(app: AsyncApp) -> AsyncGenerator[str]:
    """Serve an app as `app.start()` does, and yield its address."""
    runner = web.AppRunner(app.web_app())
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}/slack/events"
    finally:
        await runner.cleanup()
