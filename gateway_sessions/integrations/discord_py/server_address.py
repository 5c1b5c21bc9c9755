"""The server with which discord.py speaks: its addresses are the same for all clients of a process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import ExitStack, contextmanager
from typing import Final

import yarl
from discord.gateway import DiscordWebSocket
from discord.http import Route

from gateway_sessions.errors import InvalidInputError

_used: Final[list[tuple[str, str]]] = []
"""The addresses of each configured account that speaks with another server than Discord's."""
_until_last: Final = ExitStack()
"""Goes back to Discord's own addresses when no account needs others any more."""


@contextmanager
def pointed_at(api_url: str, gateway_url: str) -> Generator[None]:
    """Let every client of discord.py in this process speak with another server, within the block."""
    before = Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY
    Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY = api_url, yarl.URL(gateway_url)
    try:
        yield
    finally:
        Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY = before


def use_server(api_url: str, gateway_url: str) -> Callable[[], Awaitable[None]]:
    """Let discord.py speak with another server until all who asked have called the returned function.

    `InvalidInputError` if another account of this process speaks with a third one.
    """
    asked = (api_url.rstrip("/"), gateway_url)
    if _used and _used[0] != asked:
        problem = "names another server than a second account: one process speaks with one of them"
        raise InvalidInputError(problem)
    if not _used:
        _until_last.enter_context(pointed_at(*asked))
    _used.append(asked)

    async def leave() -> None:
        _used.remove(asked)
        if not _used:
            _until_last.close()

    return leave
