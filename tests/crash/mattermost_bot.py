"""A Mattermost bot that repeats what it is told: `python -m tests.crash.mattermost_bot URL TOKEN HOME`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from gateway_sessions import Gateway, SessionStore
from gateway_sessions.integrations.mattermost import MattermostAdapter
from tests.crash.telegram_bot import answer, config


async def main(url: str, token: str, home: str) -> None:
    adapter = MattermostAdapter(url, token, look_seconds=0.05)
    async with (
        SessionStore.open(Path(home), config()) as store,
        Gateway(store, agent=answer, adapters=[adapter]) as gateway,
    ):
        await gateway.run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
