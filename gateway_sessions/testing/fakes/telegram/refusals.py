"""Refusals in the words of Telegram's Bot API."""

from __future__ import annotations

from typing import Any


class TelegramRefusalError(Exception):
    """The Bot API does not do what it was asked."""

    def __init__(self, code: int, description: str, parameters: dict[str, Any] | None = None) -> None:
        self.code = code
        self.description = description
        self.parameters: dict[str, Any] = parameters or {}
        super().__init__(description)

    def as_json(self) -> dict[str, Any]:
        """Return the answer that tells it."""
        answer: dict[str, Any] = {"ok": False, "error_code": self.code, "description": self.description}
        if self.parameters:
            answer["parameters"] = self.parameters
        return answer


def bad_request(problem: str) -> TelegramRefusalError:
    """Return the refusal of a request that makes no sense."""
    return TelegramRefusalError(400, f"Bad Request: {problem}")


def forbidden(problem: str) -> TelegramRefusalError:
    """Return the refusal of a request that the bot may not make."""
    return TelegramRefusalError(403, f"Forbidden: {problem}")


def too_many_requests(seconds: int) -> TelegramRefusalError:
    """Return the refusal of a request that came too early."""
    problem = f"Too Many Requests: retry after {seconds}"
    return TelegramRefusalError(429, problem, {"retry_after": seconds})
