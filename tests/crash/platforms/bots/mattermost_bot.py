"""A Mattermost bot that repeats what it is told; `main` has its arguments."""

from __future__ import annotations

from gateway_sessions.integrations.mattermost import MattermostAdapter
from tests.crash.platforms.bots.repeating_bot import repeat_all


async def main(home: str, url: str, token: str) -> None:
    await repeat_all(home, MattermostAdapter(url, token, look_seconds=0.05))
