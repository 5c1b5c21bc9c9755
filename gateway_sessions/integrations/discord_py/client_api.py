"""`DiscordPyApi`: the REST API through a client of discord.py, with its pace and its proxy."""

from __future__ import annotations

import io
import json
from typing import Any, Final
from urllib.parse import urlsplit

import discord
from aiohttp import ClientConnectorError, ConnectionTimeoutError
from discord.http import Route

from gateway_sessions.errors import InvalidInputError
from gateway_sessions.integrations.discord.api import (
    FILE_HOSTS,
    DiscordApiError,
    DiscordNotSentError,
    DiscordRequest,
)

_TOO_MANY: Final = 429


class DiscordPyApi:
    """The REST API for the bot of one client."""

    def __init__(self, client: discord.Client) -> None:
        self._client = client

    async def download(self, url: str) -> bytes:
        """Return a file that Discord keeps; `InvalidInputError` for any other address."""
        if urlsplit(url).hostname not in {*FILE_HOSTS, urlsplit(Route.BASE).hostname}:
            problem = f"{url[:40]!r} is no file of Discord"
            raise InvalidInputError(problem)
        try:
            return await self._client.http.get_from_cdn(url)
        except discord.HTTPException as error:
            problem = f"Discord does not have the file any more ({error.status})"
            raise InvalidInputError(problem) from error

    async def request(self, request: DiscordRequest) -> Any:
        """Make a request, and return the answer as JSON has it; None if it has no body."""
        if self._client.is_closed() or self._client.user is None:
            problem = "the client of discord.py is not logged in"
            raise DiscordNotSentError(problem)
        route = Route(request.method, request.path, **request.ids)
        try:
            answer = await self._client.http.request(route, **_content_of(request))
        except discord.RateLimited as error:
            raise DiscordApiError(_TOO_MANY, 0, str(error), retry_after=error.retry_after) from error
        except discord.HTTPException as error:
            raise DiscordApiError(error.status, error.code, error.text, retry_after=_pause(error)) from error
        except (ClientConnectorError, ConnectionTimeoutError) as error:
            raise DiscordNotSentError(str(error)) from error
        return None if answer == "" else answer


def _pause(error: discord.HTTPException) -> float | None:
    """Return the pause that an answer asks for; discord.py keeps most of them by itself."""
    try:
        return float(error.response.headers.get("Retry-After", ""))
    except ValueError:
        return None


def _content_of(request: DiscordRequest) -> dict[str, Any]:
    if request.files:
        return {"form": _form_of(request)}
    return {} if request.json is None else {"json": request.json}


def _form_of(request: DiscordRequest) -> list[dict[str, Any]]:
    """Return the parts of a form with files, anew for each attempt."""
    parts: list[dict[str, Any]] = [{"name": "payload_json", "value": json.dumps(request.json)}]
    for number, file in enumerate(request.files):
        parts.append(
            {
                "name": f"files[{number}]",
                "value": io.BytesIO(file.content),
                "filename": file.name,
                "content_type": file.media_type,
            }
        )
    return parts
