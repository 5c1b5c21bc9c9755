"""`ApiClient`: makes calls over HTTP, and tells calls that were never sent from those nobody knows of."""

from __future__ import annotations

import asyncio
from typing import Final

from gateway_sessions.adapters.webhooks.api_calls import ApiCall, PlatformAnswer
from gateway_sessions.errors import AdapterUnavailableError, InvalidInputError

try:
    import httpx2
except ModuleNotFoundError as _error:
    if _error.name != "httpx2":
        raise
    _problem = "platforms that call webhooks need httpx2: pip install 'gateway-sessions[webhooks]'"
    raise InvalidInputError(_problem) from _error

CONNECT_SECONDS: Final = 10.0
ANSWER_SECONDS: Final = 30.0
"""The limit for each step of an answer. APIs of platforms answer in a second or two."""
MAX_API_ANSWER: Final = 4 << 20
"""The most bytes of an answer that are read: sets of keys and lists are far smaller."""


class ApiClient:
    """A client for the API of one platform. It opens connections when they are needed."""

    def __init__(self, platform: str) -> None:
        self._platform = platform
        self._client: httpx2.AsyncClient | None = None
        self._opening = asyncio.Lock()

    async def answer_to(self, call: ApiCall) -> PlatformAnswer:
        """Make a call, and return its answer.

        `AdapterUnavailableError`: nothing was sent. `ConnectionError`: nobody knows.
        """
        return PlatformAnswer(*await self._exchange(call, MAX_API_ANSWER))

    async def download(self, call: ApiCall, *, most: int) -> bytes:
        """Return a file of up to *most* bytes; `InvalidInputError` if it is larger or not there."""
        status, headers, content = await self._exchange(call, most)
        answer = PlatformAnswer(status, headers, b"")
        problem = f"{self._platform} {answer.problem}"
        if answer.is_success and len(content) > most:
            problem = f"it has more than {most} bytes"
        elif answer.is_success:
            return content
        problem = f"the file cannot be fetched: {problem}"
        raise InvalidInputError(problem)

    async def aclose(self) -> None:
        """Close the connections; the next call opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _exchange(self, call: ApiCall, most: int) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body of an answer; of a longer body, more than *most* bytes."""
        client = await self._open_client()
        content = bytearray()
        try:
            async with client.stream(
                call.method, call.url, headers=dict(call.headers), content=call.body
            ) as response:
                async for some in response.aiter_bytes():
                    content += some
                    if len(content) > most:
                        break
                # Names of headers come in lower case here, whatever was sent.
                return response.status_code, dict(response.headers), bytes(content)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
            raise AdapterUnavailableError(self._platform, f"cannot be reached ({_words(error)})") from error
        except httpx2.InvalidURL as error:
            problem = f"{call.name or 'a call'} has an address that is none ({error})"
            raise InvalidInputError(problem) from error
        except httpx2.HTTPError as error:
            problem = f"{self._platform} gave no whole answer ({_words(error)})"
            raise ConnectionError(problem) from error

    async def _open_client(self) -> httpx2.AsyncClient:
        async with self._opening:
            if self._client is None:
                # In a thread: it reads the certificates that this machine trusts.
                self._client = await asyncio.to_thread(_new_client)
            return self._client


def _new_client() -> httpx2.AsyncClient:
    return httpx2.AsyncClient(timeout=httpx2.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS))


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
