"""A Discord on loopback: a gateway and the REST API, with people, rules and faults.

- ``discord_py``: Points discord.py at a fake Discord: its addresses are the same for all clients of a
  process.
- ``endpoint``: The webhook at which an application gets its interactions in place of the gateway, with
  signatures.
- ``gateway``: The gateway of a fake Discord: sessions of a bot, the events that they are owed, and how they
  end.
- ``guilds``: Guilds, channels, threads, people and messages of a fake Discord, in the form that its API has.
- ``pace``: How fast a bot may call Discord, told in headers, and what happens to a bot that does not listen.
- ``refusals``: Refusals in the words and numbers of Discord's API.
- ``rest``: The part of Discord's REST API that bots use, with the rules for what they send.
- ``server``: `FakeDiscord`: gateway and REST API on loopback, with people who write to a bot.
"""

from gateway_sessions.testing.fakes.discord.discord_py import discord_py_on
from gateway_sessions.testing.fakes.discord.pace import DiscordLimits
from gateway_sessions.testing.fakes.discord.server import FakeDiscord

__all__ = ["DiscordLimits", "FakeDiscord", "discord_py_on"]
