"""`TelegramBot`: a client of the Bot API for programs that have no library for Telegram."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from gateway_sessions._process.request_log import hide_in_request_log
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.integrations.telegram.bot_api import BotApiError, NotSentError, Upload, result_of

try:
    import httpx2
except ModuleNotFoundError as _error:
    if _error.name != "httpx2":
        raise
    _problem = "TelegramBot needs httpx2: pip install 'gateway-sessions[telegram]'"
    raise InvalidInputError(_problem) from _error

API_URL: Final = "https://api.telegram.org"
CONNECT_SECONDS: Final = 10.0
ANSWER_SECONDS: Final = 60.0
"""The limit for an answer: a poll is kept open for half of it."""

hide_in_request_log(re.compile(r"(?<=/bot)\d+:[^/\s]+"))


class TelegramBot:
    """A client with the token of one bot. It opens connections when they are needed."""

    def __init__(self, token: str, *, api_url: str = API_URL) -> None:
        """The token is the one from @BotFather; another *api_url* is a Bot API server of one's own."""
        number, _, secret = token.partition(":")
        if not (number.isdigit() and secret and token.isascii() and token.isprintable()):
            problem = "the token is none of Telegram's: it looks like 123456789:AA…, and @BotFather has it"
            raise InvalidInputError(problem)
        self._url = f"{api_url.rstrip('/')}/bot{token}"
        self._files_url = f"{api_url.rstrip('/')}/file/bot{token}"
        self._client: httpx2.AsyncClient | None = None
        self._opening = asyncio.Lock()

    async def call(self, method: str, parameters: Mapping[str, Any]) -> Any:
        """Call a method of the Bot API, and return its result."""
        client = await self._open_client()
        # With a type, the client does not read the system's list of types; Telegram looks for itself.
        files = {
            name: (one.name, one.content, "application/octet-stream")
            for name, one in parameters.items()
            if isinstance(one, Upload)
        }
        fields = {name: value for name, value in parameters.items() if name not in files}
        try:
            if files:
                form = {name: _form_value(value) for name, value in fields.items()}
                response = await client.post(f"{self._url}/{method}", data=form, files=files)
            else:
                response = await client.post(f"{self._url}/{method}", json=fields)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise NotSentError(str(error) or type(error).__name__) from error
        return result_of(response.json())

    async def download(self, file_path: str, *, most: int) -> bytes:
        """Return the content of a file."""
        client = await self._open_client()
        content = bytearray()
        async with client.stream("GET", f"{self._files_url}/{file_path}") as response:
            if not response.is_success:
                raise BotApiError(response.status_code, "the file is not there any more")
            async for some in response.aiter_bytes():
                content += some
                if len(content) > most:
                    problem = f"the file has more than {most} bytes"
                    raise InvalidInputError(problem)
        return bytes(content)

    async def aclose(self) -> None:
        """Close the connections; the next call opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _open_client(self) -> httpx2.AsyncClient:
        async with self._opening:
            if self._client is None:
                # In a thread: it reads the certificates that this machine trusts.
                self._client = await asyncio.to_thread(_new_client)
            return self._client


def _new_client() -> httpx2.AsyncClient:
    return httpx2.AsyncClient(timeout=httpx2.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS))


def _form_value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
