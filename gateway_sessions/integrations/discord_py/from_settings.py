"""The adapter of a connected bot that a configuration asks for, with a client of discord.py."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import discord

from gateway_sessions.errors import InvalidInputError
from gateway_sessions.integrations.configured import AdapterSettings
from gateway_sessions.integrations.discord_py.adapter import DiscordAdapter
from gateway_sessions.integrations.discord_py.server_address import use_server

CATCH_UP_HOURS: Final = 24
MOST_HOURS: Final = 24 * 365


def discord_bot_from_settings(settings: AdapterSettings) -> DiscordAdapter:
    """Make the adapter of one bot from `token`, and maybe `groups`, `message_content` and more."""
    token = settings.required_text("token")
    groups = settings.group_rules()
    reads_all = settings.flag("message_content", default=True)
    bots = settings.flag("bots")
    catch_up = settings.number("catch_up_hours", CATCH_UP_HOURS, most=MOST_HOURS)
    unreadable = settings.folder("unreadable")
    api_url, gateway_url = settings.text("api_url"), settings.text("gateway_url")
    if (api_url is None) is not (gateway_url is None):
        settings.refuse("gateway_url", "must be set together with api_url: discord.py asks no server for it")
    if groups.hear_all and not reads_all:
        settings.refuse(
            "message_content",
            "must be true with groups: all and with observe: true, else Discord hides what people say",
        )
    settings.check()
    if api_url is not None and gateway_url is not None:
        try:
            settings.on_close(use_server(api_url, gateway_url))
        except InvalidInputError as error:
            settings.refuse("api_url", str(error))
            settings.check()
    intents = discord.Intents.default()
    intents.message_content = reads_all
    return DiscordAdapter(
        discord.Client(intents=intents),
        token,
        name=settings.name,
        groups=groups,
        bots=bots,
        catch_up=timedelta(hours=catch_up or 0),
        unreadable=unreadable,
    )
