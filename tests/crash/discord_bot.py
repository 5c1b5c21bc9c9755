"""A Discord bot that repeats what it is told: `python -m tests.crash.discord_bot API GATEWAY TOKEN HOME`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import discord

from gateway_sessions import Gateway, SessionStore
from gateway_sessions.integrations.discord_py import DiscordAdapter, GroupTalk
from gateway_sessions.testing.fakes.discord.discord_py import discord_py_pointed_at
from tests.crash.telegram_bot import answer, config


class QuickClient(discord.Client):
    """Begins sessions without the pauses that spare the real Discord."""

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """Wait for nothing."""


async def main(api: str, gateway: str, token: str, home: str) -> None:
    intents = discord.Intents.default()
    intents.message_content = True
    client = QuickClient(intents=intents, guild_ready_timeout=0.05)
    adapter = DiscordAdapter(client, token, groups=GroupTalk.ALL)
    with discord_py_pointed_at(api, gateway):
        async with (
            SessionStore.open(Path(home), config()) as store,
            Gateway(store, agent=answer, adapters=[adapter]) as running,
        ):
            await running.run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
