"""A Discord bot that repeats what it is told; `main` has its arguments."""

from __future__ import annotations

import discord

from gateway_sessions.integrations.discord_py import DiscordAdapter
from gateway_sessions.testing.fakes.discord.discord_py import discord_py_pointed_at
from tests.crash.platforms.bots.repeating_bot import repeat_all


class QuickClient(discord.Client):
    """Begins sessions without the pauses that spare the real Discord."""

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """Wait for nothing."""


async def main(home: str, api: str, gateway: str, token: str) -> None:
    intents = discord.Intents.default()
    intents.message_content = True
    client = QuickClient(intents=intents, guild_ready_timeout=0.05)
    with discord_py_pointed_at(api, gateway):
        await repeat_all(home, DiscordAdapter(client, token, groups="all"))
