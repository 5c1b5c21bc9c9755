"""An app of Slack made with Bolt that repeats what it is told; `main` has its arguments.

The secrets of the fake Slack come from its module.
"""

from __future__ import annotations

import logging

from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from gateway_sessions.integrations.slack_bolt import SlackBoltAdapter
from gateway_sessions.testing.fakes.slack.server import APP_TOKEN, SIGNING_SECRET, TOKEN
from tests.crash.platforms.bots.repeating_bot import repeat_all


async def main(home: str, port: str, api_url: str) -> None:
    """Listen at a port; 0: use Socket Mode."""
    quiet = logging.getLogger("quiet")
    quiet.setLevel(logging.CRITICAL)
    client = AsyncWebClient(TOKEN, base_url=api_url, logger=quiet)
    app = AsyncApp(client=client, signing_secret=SIGNING_SECRET, logger=quiet)
    by_socket = SlackBoltAdapter(app, app_token=APP_TOKEN)
    await repeat_all(home, by_socket if port == "0" else SlackBoltAdapter(app, port=int(port)))
