"""`MattermostApi`: the calls of a server's REST API with a bot's token, and what their failures mean."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from gateway_sessions.adapters.webhooks.api_calls import ApiCall, FileToSend, PlatformAnswer
from gateway_sessions.adapters.webhooks.http_client import ApiClient
from gateway_sessions.core.identity.source import Platform
from gateway_sessions.errors import (
    AdapterUnavailableError,
    DeliveryRefusedError,
    InvalidInputError,
    RateLimitedError,
)

NEW_ONE: Final = "does not know this token: make a new one for the bot in the integrations of the server"
_SECONDS: Final = re.compile(r"\d+(?:\.\d+)?", re.ASCII)


class MattermostApi:
    """Calls a server; each failure has one meaning."""

    def __init__(self, url: str, token: str) -> None:
        """*url* is the address of the server, as people open it; the token is the bot's."""
        if not url.startswith(("http://", "https://")):
            problem = f"the address of a Mattermost server begins with https://, and {url[:40]!r} does not"
            raise InvalidInputError(problem)
        if not token.strip() or not (token.isascii() and token.isprintable()):
            problem = "the token is none of Mattermost's: 26 letters and digits, which its page shows once"
            raise InvalidInputError(problem)
        self._url = f"{url.rstrip('/')}/api/v4"
        self._headers = {"authorization": f"Bearer {token}"}
        self._client: ApiClient | None = None

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[None]:
        """Make calls within the block; none is made outside of it."""
        self._client = client = ApiClient(Platform.MATTERMOST)
        try:
            yield
        finally:
            self._client = None
            await client.aclose()

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Any:
        """Return what is at a path."""
        where = f"{self._url}/{path}{'?' * bool(query)}{urlencode(query or {})}"
        return await self._result(ApiCall(url=where, method="GET", headers=self._headers, name=path))

    async def send(self, method: str, path: str, value: Mapping[str, Any]) -> Any:
        """Send a value to a path, and return the answer."""
        where = f"{self._url}/{path}"
        return await self._result(
            ApiCall.of_json(where, value, method=method, headers=self._headers, name=path)
        )

    async def upload(self, channel_id: str, file: FileToSend) -> str:
        """Keep a file for a post in a channel, and return its id."""
        fields, files = {"channel_id": channel_id}, {"files": file}
        call = ApiCall.of_upload(f"{self._url}/files", fields, files, headers=self._headers, name="files")
        answer = await self._result(call)
        return str(answer["file_infos"][0]["id"])

    async def download(self, file_id: str, *, most: int) -> bytes:
        """Return a file of up to *most* bytes; `InvalidInputError` if it is larger or not there."""
        call = ApiCall(url=f"{self._url}/files/{file_id}", method="GET", headers=self._headers, name="file")
        return await self._opened.download(call, most=most)

    @property
    def _opened(self) -> ApiClient:
        if self._client is None:
            raise AdapterUnavailableError(Platform.MATTERMOST, "is not connected")
        return self._client

    async def _result(self, call: ApiCall) -> Any:
        answer = await self._opened.answer_to(call)
        if answer.is_success:
            return msgspec.json.decode(answer.body)
        raise _failure(answer)


def _failure(answer: PlatformAnswer) -> Exception:
    """Return what a refusal means; the codes of a server's errors begin with "api." or "app."."""
    platform, told = Platform.MATTERMOST, answer.member("message")
    problem = told if isinstance(told, str) and told else answer.problem
    is_its_own = isinstance(answer.member("id"), str)
    match answer.status:
        case 429:
            return RateLimitedError(platform, _pause(answer))
        case 401:
            return AdapterUnavailableError(platform, NEW_ONE)
        case status if status >= 500:  # noqa: PLR2004 -- the server's own failures begin there
            return ConnectionError(problem)
        case _ if not is_its_own:  # something in front of the server refuses for now
            return AdapterUnavailableError(platform, problem)
        case 403:
            to_do = "make the bot a member of the team and of the channel, and let it write there"
            return DeliveryRefusedError(platform, f"{problem.rstrip('.')}: {to_do}")
        case _:
            return DeliveryRefusedError(platform, problem)


def _pause(answer: PlatformAnswer) -> float | None:
    """Return the seconds that a server asks to wait: it names them in a header of its own."""
    told = answer.headers.get("x-ratelimit-reset", answer.headers.get("retry-after", "")).strip()
    return float(told) if _SECONDS.fullmatch(told) else None
