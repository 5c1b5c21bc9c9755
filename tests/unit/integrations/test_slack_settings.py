"""An app of Slack is made of what a configuration says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from gateway_sessions.adapters import ReceiveClass
from gateway_sessions.adapters.webhooks import WebhookPort, WebhookServer
from gateway_sessions.config.kinds import AdapterConfig
from gateway_sessions.errors import ConfigError
from gateway_sessions.integrations.first_configuration import first_configuration, variables_to_set
from gateway_sessions.integrations.registry import make_adapters
from gateway_sessions.integrations.slack.adapter import SlackAdapter
from gateway_sessions.integrations.slack_bolt import SlackBoltAdapter
from gateway_sessions.testing.contract.adapter import Inbox
from gateway_sessions.testing.fakes.slack import FakeSlack


def made(tmp_path: Path, **settings: Any) -> Any:
    wanted = AdapterConfig(platform="slack", name="b", settings=MappingProxyType(settings))
    ((adapter, _),) = make_adapters([wanted], tmp_path)
    return adapter


@asynccontextmanager
async def listening(adapter: SlackAdapter | SlackBoltAdapter, slack: FakeSlack) -> AsyncGenerator[None]:
    """Listen for an adapter that Slack calls, as `serve` does for all of them."""
    if not isinstance(adapter, SlackAdapter):
        yield
        return
    async with WebhookServer(adapter, port=WebhookPort(0)).listening() as server:
        assert server.address is not None
        slack.listen_at("http://{}:{}{}".format(*server.address, adapter.path))
        yield


@pytest.mark.parametrize("mode", ["app_token", "signing_secret"])
async def test_an_app_is_made_of_its_settings(mode: str, tmp_path: Path):
    async with FakeSlack() as slack:
        own: dict[str, Any] = {"app_token": slack.app_token}
        if mode == "signing_secret":
            own = {"signing_secret": slack.signing_secret}
        own |= {"threads": "nowhere", "unreadable": "odd", "command": "/helper", "unfurl": True}
        own |= {"catch_up_hours": 0}
        own |= {"token": slack.token, "api_url": slack.api_url, "groups": "all"}
        adapter = await asyncio.to_thread(made, tmp_path, **own)
        assert isinstance(adapter, SlackBoltAdapter if mode == "app_token" else SlackAdapter)
        assert adapter.capabilities.receives is ReceiveClass.ACKNOWLEDGED
        inbox = Inbox()
        async with listening(adapter, slack), adapter.connect(inbox):
            slack.people.says("ann", "no mention", channel="team")
            (message,) = await inbox.wait_for(1)
        assert (message.account, message.source.thread_id) == ("b", None)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({}, "needs token"),
        (
            {"token": "xoxb-1"},
            "app_token: must be set for Socket Mode, or signing_secret for events at a webhook",
        ),
        (
            {"token": "xoxb-1", "app_token": "x", "signing_secret": "y"},
            "and not both of them",
        ),
        ({"token": "xoxb-1", "app_token": "x", "groups": "some"}, "must be one of mention, all"),
        ({"token": "xoxb-1", "app_token": "xapp-1", "port": 3000}, "is not a key of slack"),
        ({"token": "xoxb-1", "app_token": "x", "thread": "nowhere"}, "is not a key of slack"),
        ({"token": "xoxb-1", "signing_secret": "s", "unfurl": "yes"}, "must be true or false"),
    ],
)
def test_what_is_wrong_is_told(settings: dict[str, Any], problem: str, tmp_path: Path):
    with pytest.raises(ConfigError, match=problem):
        made(tmp_path, **settings)


def test_a_first_configuration_names_both_tokens():
    assert "app_token: ${SLACK_APP_TOKEN}" in first_configuration("slack")
    assert variables_to_set("slack") == ["SLACK_TOKEN", "SLACK_APP_TOKEN"]
