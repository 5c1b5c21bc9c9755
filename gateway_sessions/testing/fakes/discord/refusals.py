"""Refusals in the words and numbers of Discord's API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway_sessions.testing.fakes.http_server import FakeResponse

JSON = {"content-type": "application/json"}
"""The media type, spelled as Discord spells it: client libraries compare it letter by letter."""


class DiscordRefusalError(Exception):
    """Discord refuses a request."""

    def __init__(self, status: int, code: int, message: str, **more: Any) -> None:
        super().__init__(message)
        self.status: int = status
        self.code: int = code
        self.message: str = message
        self.more: Mapping[str, Any] = more

    def as_response(self) -> FakeResponse:
        """Return the answer that a client gets."""
        return FakeResponse.of_json(
            {"message": self.message, "code": self.code, **self.more}, status=self.status, headers=JSON
        )


def unauthorized() -> DiscordRefusalError:
    """Return the refusal of a wrong token."""
    return DiscordRefusalError(401, 0, "401: Unauthorized")


def not_found() -> DiscordRefusalError:
    """Return the refusal of an address that does not exist."""
    return DiscordRefusalError(404, 0, "404: Not Found")


def unknown(what: str) -> DiscordRefusalError:
    """Return the refusal that names a thing Discord does not know."""
    return DiscordRefusalError(404, _UNKNOWN[what], f"Unknown {what}")


def missing_access() -> DiscordRefusalError:
    """Return the refusal of a channel that the bot cannot see."""
    return DiscordRefusalError(403, 50001, "Missing Access")


def missing_permissions() -> DiscordRefusalError:
    """Return the refusal of something that the bot may not do in a channel."""
    return DiscordRefusalError(403, 50013, "Missing Permissions")


def cannot_reach_person() -> DiscordRefusalError:
    """Return the refusal of a private message that its reader does not take."""
    return DiscordRefusalError(403, 50007, "Cannot send messages to this user")


def invalid_form(field: str, code: str, message: str) -> DiscordRefusalError:
    """Return the refusal of a field of a request."""
    problem = {"code": code, "message": message}
    return DiscordRefusalError(400, 50035, "Invalid Form Body", errors={field: {"_errors": [problem]}})


_UNKNOWN = {
    "Channel": 10003,
    "Message": 10008,
    "User": 10013,
    "Webhook": 10015,
    "Interaction": 10062,
}
