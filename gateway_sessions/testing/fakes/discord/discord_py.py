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
        # A fake serves any library; only this function needs discord.py.
        from gateway_sessions.integrations.discord_py.server_address import pointed_at  # noqa: PLC0415
    except (InvalidInputError, ModuleNotFoundError) as error:
        problem = "To point discord.py at a fake, install it: pip install 'gateway-sessions[discord]'"
        raise InvalidInputError(problem) from error
    with pointed_at(api_url, gateway_url):
        yield


@contextmanager
def discord_py_on(fake: FakeDiscord) -> Generator[None]:
    """Let every client of discord.py in this process speak with that fake, within the block."""
    with discord_py_pointed_at(fake.api_url, fake.gateway_url):
        yield
