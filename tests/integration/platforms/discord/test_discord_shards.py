"""A client of discord.py that holds several shards: each hears of its guilds, and one of private messages."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import discord
import pytest
from discord.ext import commands

from gateway_sessions.integrations.discord_py import DiscordAdapter
from gateway_sessions.testing.fakes.discord import FakeDiscord, discord_py_on
from gateway_sessions.testing.fakes.discord.gateway import shard_of
from tests.integration.platforms.discord.test_discord import gateway_with

PATIENCE = 30


class Quick:
    """Begins sessions without the pauses that spare the real Discord."""

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """Wait for nothing."""


class QuickClient(Quick, discord.AutoShardedClient): ...


class QuickBot(Quick, commands.AutoShardedBot):
    def __init__(self, **options: object) -> None:
        super().__init__("!", **options)


@pytest.fixture
async def fake() -> AsyncGenerator[FakeDiscord]:
    async with FakeDiscord(shards=2) as fake:
        fake.guilds.guild_id |= 1 << 22
        with discord_py_on(fake):
            yield fake


async def answered(fake: FakeDiscord, count: int) -> None:
    await fake.wait_until(
        lambda: len(fake.texts("ann")) == len(fake.texts(channel="general")) == count, seconds=PATIENCE
    )


@pytest.mark.parametrize("kind", [QuickClient, QuickBot])
async def test_all_shards_are_heard_and_what_each_missed_is_read(
    fake: FakeDiscord, tmp_path: Path, kind: type[discord.AutoShardedClient]
):
    assert shard_of(str(fake.guilds.guild_id), 2) == 1
    intents = discord.Intents.default()
    intents.message_content = True

    def new_adapter() -> DiscordAdapter:
        """Return the adapter of a program that has just begun."""
        return DiscordAdapter(kind(intents=intents, guild_ready_timeout=0.01), fake.token)

    async with gateway_with(new_adapter(), tmp_path):
        await fake.wait_until(lambda: fake.gateway.identified == 2, seconds=PATIENCE)
        fake.says("ann", "one")
        fake.says("bob", f"{fake.mention} one", channel="general")
        await answered(fake, 1)
        await fake.on_gateway(fake.gateway.forget_sessions)
        fake.says("ann", "two")
        fake.says("bob", f"{fake.mention} two", channel="general")
        await answered(fake, 2)
    fake.says("ann", "three")
    fake.says("bob", f"{fake.mention} three", channel="general")
    async with gateway_with(new_adapter(), tmp_path):
        await answered(fake, 3)
    expected = [f"You said **{text}**." for text in ("one", "two", "three")]
    assert fake.texts("ann") == expected
    assert fake.texts(channel="general") == expected
