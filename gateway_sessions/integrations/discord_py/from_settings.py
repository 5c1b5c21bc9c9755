"""The adapter for Discord that a configuration asks for, with a client of discord.py of its own."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import discord

from gateway_sessions.integrations.configured import AdapterSettings
from gateway_sessions.integrations.discord_py.adapter import DiscordAdapter
from gateway_sessions.integrations.telegram.updates import GroupTalk

USUAL_HOURS: Final = 24
"""What was written within a day is fetched, as Telegram keeps it."""
MOST_HOURS: Final = 24 * 365


def discord_from_settings(settings: AdapterSettings) -> DiscordAdapter:
    """Make the adapter of one bot from `token`."""
    token = settings.required_text("token")
    groups = settings.choice("groups", GroupTalk, GroupTalk.ADDRESSED)
    bots = settings.flag("bots")
    hours = settings.number("catch_up_hours", USUAL_HOURS, most=MOST_HOURS)
    unreadable = settings.folder("unreadable")
    settings.check()
    intents = discord.Intents.default()
    intents.message_content = True
    return DiscordAdapter(
        discord.Client(intents=intents),
        token,
        name=settings.name,
        groups=groups,
        bots=bots,
        catch_up=timedelta(hours=hours or 0),
        unreadable=unreadable,
    )
