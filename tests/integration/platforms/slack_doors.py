"""Apps of Slack as people make them, on a fake Slack."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from aiohttp import web
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from gateway_sessions.adapters.protocol import Submit
from gateway_sessions.integrations.slack.adapter import SlackAdapter
from gateway_sessions.integrations.slack_bolt import SlackBoltAdapter
from gateway_sessions.testing.fakes.slack import FakeSlack

SlackDoor = Callable[..., AbstractAsyncContextManager[SlackAdapter | SlackBoltAdapter]]

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


@asynccontextmanager
async def bolt_door(slack: FakeSlack, **options: Any) -> AsyncGenerator[SlackBoltAdapter]:
    app = bolt_app(slack)
    async with serving(app) as url:
        slack.listen_at(url)
        yield SlackBoltAdapter(app, **options)
        slack.listen_at("")


@asynccontextmanager
async def socket_door(slack: FakeSlack, **options: Any) -> AsyncGenerator[SlackBoltAdapter]:
    yield SlackBoltAdapter(bolt_app(slack), app_token=slack.app_token, **options)


class ListeningAdapter(SlackAdapter):
    """Tells a fake Slack where it listens, as people tell Slack once."""

    def __init__(self, slack: FakeSlack, **options: Any) -> None:
        super().__init__(slack.token, slack.signing_secret, api_url=slack.api_url, port=0, **options)
        self.fake = slack

    @asynccontextmanager
    async def connect(self, submit: Submit) -> AsyncGenerator[None]:
        async with super().connect(submit):
            self.fake.listen_at(self.url)
            yield


@asynccontextmanager
async def events_door(slack: FakeSlack, **options: Any) -> AsyncGenerator[SlackAdapter]:
    yield ListeningAdapter(slack, **options)


DOORS: dict[str, SlackDoor] = {"bolt": bolt_door, "socket mode": socket_door, "without bolt": events_door}
