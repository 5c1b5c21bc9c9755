"""The door for bots that are made with discord.py: `DiscordAdapter`.

- ``adapter``: `DiscordAdapter`: puts a bot of discord.py behind a gateway, and leaves the rest of it alone.
- ``client_api``: `DiscordPyApi`: the REST API through a client of discord.py, with its pace and its proxy.
- ``conversion``: The objects of discord.py as the objects of Discord's API.
- ``from_settings``: The adapter of a connected bot that a configuration asks for, with a client of
  discord.py.
- ``listening``: `ClientListener`: hears what happens on a client of discord.py, beside whoever else listens
  there.
- ``server_address``: The server with which discord.py speaks: its addresses are the same for all clients of a
  process.
"""

from gateway_sessions.errors import InvalidInputError

try:
    import discord as _discord  # noqa: F401  # pyright: ignore[reportUnusedImport]  # tells what is missing
except ModuleNotFoundError as _error:
    if _error.name != "discord":
        raise
    _problem = "DiscordAdapter needs discord.py: pip install 'gateway-sessions[discord]'"
    raise InvalidInputError(_problem) from _error

from gateway_sessions.integrations.discord_py.adapter import DiscordAdapter

__all__ = ["DiscordAdapter"]
