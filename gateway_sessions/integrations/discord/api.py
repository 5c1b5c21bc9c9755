"""The port to Discord's REST API: what a client has to do for the adapter, and what failures mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from gateway_sessions.core.identity.source import Platform
from gateway_sessions.errors import AdapterUnavailableError, DeliveryRefusedError, RateLimitedError

FILE_HOSTS: Final = frozenset({"cdn.discordapp.com", "media.discordapp.net"})
"""Where Discord keeps the files that people send."""
MOST_BYTES: Final = 20 << 20
"""The most bytes of a file that are fetched, unless more are asked for."""
UNKNOWN_BOT: Final = (
    "does not know this token: copy it anew from the page of the bot at https://discord.com/developers"
)
_HINTS: Final[Mapping[int, str]] = {
    10003: "the channel does not exist, or no longer",
    10008: "the message does not exist, or no longer",
    50001: "the bot does not see the channel: give its role the permission View Channel",
    50007: "the person takes no private messages of this bot",
    50013: "the bot may not write there: give its role the permissions Send Messages, "
    "Send Messages in Threads and Read Message History",
}


@dataclass(frozen=True, slots=True)
class DiscordUpload:
    """A file that a request carries."""

    name: str
    content: bytes
    media_type: str = "application/octet-stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscordRequest:
    """A request to the REST API."""

    method: str
    path: str
    """The address behind the version of the API, with names in braces for the ids."""
    ids: Mapping[str, str] = field(default_factory=dict[str, str])
    json: Mapping[str, Any] | Sequence[Any] | None = None
    files: tuple[DiscordUpload, ...] = ()

    @property
    def url_path(self) -> str:
        """The address with its ids."""
        return self.path.format_map(self.ids)


class DiscordApi(Protocol):
    """A client of the REST API with the token of one bot."""

    async def request(self, request: DiscordRequest) -> Any:
        """Make a request, and return the answer as JSON has it; None if it has no body.

        Raise `DiscordApiError` for an answer that refuses, `DiscordNotSentError` if nothing was sent, and any
        other error if nobody knows.
        """
        ...


class DiscordApiError(Exception):
    """Discord refuses a request."""

    def __init__(self, status: int, code: int, message: str, *, retry_after: float | None = None) -> None:
        self.status: int = status
        self.code: int = code
        """The number that Discord gives to the reason; 0: none."""
        self.message: str = message
        self.retry_after: float | None = retry_after
        super().__init__(f"{message} ({status}, {code})")


class DiscordNotSentError(Exception):
    """There was no connection, so the request was not made."""


def hint_of(code: object) -> str | None:
    """Return what the code of a refusal means, and what to do; None if it says nothing more."""
    return _HINTS.get(code) if isinstance(code, int) else None


def failure_of(error: Exception) -> Exception:
    """Return what a failed request means to the gateway."""
    if isinstance(error, DiscordNotSentError):
        return AdapterUnavailableError(Platform.DISCORD, f"cannot be reached ({error})")
    if not isinstance(error, DiscordApiError):
        return error
    match error.status:
        case 429:
            return RateLimitedError(Platform.DISCORD, error.retry_after)
        case 401:
            return AdapterUnavailableError(Platform.DISCORD, UNKNOWN_BOT)
        case status if status < 500:  # noqa: PLR2004 -- the server's own failures begin there
            hint = hint_of(error.code)
            return DeliveryRefusedError(Platform.DISCORD, f"{hint} ({error.message})" if hint else str(error))
        case _:
            return ConnectionError(str(error))
