"""An app of Slack that repeats what it is told: `python -m tests.crash.slack_bot DOOR API_URL HOME`.

It prints the address at which it listens, if it does. The secrets of the fake Slack come from its module.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from gateway_sessions import Config, Gateway, SessionStore, TurnContext
from gateway_sessions.core.queue.busy_modes import BusyRules
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.testing.fakes.slack.server import APP_TOKEN, SIGNING_SECRET, TOKEN

ATTEMPTS = 1000
"""A sweep kills the bot more often within a minute, and within one turn, than anything else does."""


def config() -> Config:
    """Return a configuration in which each message is a turn, and nothing waits because of many crashes."""
    plain = Config(timezone="UTC", busy=BusyRules(mode=BusyMode.QUEUE, debounce=timedelta()))
    return replace(
        plain,
        agent=replace(plain.agent, max_restart_attempts=ATTEMPTS),
        delivery=replace(plain.delivery, retry=timedelta(seconds=0.05)),
        gateway=replace(plain.gateway, crash_loop_starts=ATTEMPTS),
    )


def announced(adapter: Any, url: Callable[[], str]) -> Any:
    """Let an adapter print where it listens, whenever it begins to."""
    connect = adapter.connect

    @asynccontextmanager
    async def connect_and_tell(submit: Any) -> AsyncGenerator[None]:
        async with connect(submit):
            sys.stdout.write(f"{url()}\n")
            sys.stdout.flush()
            yield

    adapter.connect = connect_and_tell
    return adapter


def adapter_of(door: str, api_url: str) -> Any:
    if door == "without bolt":
        from gateway_sessions.integrations.slack.adapter import SlackAdapter  # noqa: PLC0415 -- as people's bots do

        adapter = SlackAdapter(TOKEN, SIGNING_SECRET, api_url=api_url, port=0)
        return announced(adapter, lambda: adapter.url)
    from slack_bolt.async_app import AsyncApp  # noqa: PLC0415 -- the same
    from slack_sdk.web.async_client import AsyncWebClient  # noqa: PLC0415 -- the same

    from gateway_sessions.integrations.slack_bolt import SlackBoltAdapter  # noqa: PLC0415 -- the same

    quiet = logging.getLogger("quiet")
    quiet.setLevel(logging.CRITICAL)
    client = AsyncWebClient(TOKEN, base_url=api_url, logger=quiet)
    app = AsyncApp(client=client, signing_secret=SIGNING_SECRET, logger=quiet)
    if door == "socket mode":
        return SlackBoltAdapter(app, app_token=APP_TOKEN)
    bolt = SlackBoltAdapter(app, port=0)
    return announced(bolt, lambda: "http://{}:{}/slack/events".format(*(bolt.address or ("", 0))))


async def answer(turn: TurnContext) -> str:
    return f"A:{turn.text}"


async def main(door: str, api_url: str, home: str) -> None:
    async with (
        SessionStore.open(Path(home), config()) as store,
        Gateway(store, agent=answer, adapters=[adapter_of(door, api_url)]) as gateway,
    ):
        await gateway.run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
