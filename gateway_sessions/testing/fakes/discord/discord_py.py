"""Points discord.py at a fake Discord: its addresses are the same for all clients of a process."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gateway_sessions.errors import InvalidInputError

if TYPE_CHECKING:
    from gateway_sessions.testing.fakes.discord.server import FakeDiscord


@contextmanager
def discord_py_pointed_at(api_url: str, gateway_url: str) -> Generator[None]:
    """Let every client of discord.py in this process speak with a fake, within the block."""
    try:
        import yarl  # noqa: PLC0415 -- a fake serves any library; only this function needs discord.py
        from discord.gateway import DiscordWebSocket  # noqa: PLC0415 -- the same
        from discord.http import Route  # noqa: PLC0415 -- the same
    except ModuleNotFoundError as error:
        problem = "To point discord.py at a fake, install it: pip install 'gateway-sessions[discord]'"
        raise InvalidInputError(problem) from error
    before = Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY
    Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY = api_url, yarl.URL(gateway_url)
    try:
        yield
    finally:
        Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY = before


@contextmanager
def discord_py_on(fake: FakeDiscord) -> Generator[None]:
    """Let every client of discord.py in this process speak with that fake, within the block."""
    with discord_py_pointed_at(fake.api_url, fake.gateway_url):
        yield
