"""Refusals in the words of Slack's Web API."""

from __future__ import annotations

from typing import Any


class SlackRefusalError(Exception):
    """The Web API does not do what it was asked."""

    def __init__(
        self,
        error: str,
        *,
        status: int = 200,
        retry_after: int | None = None,
        details: dict[str, Any] | None = None,
    ) -> None:
        self.error: str = error
        self.status: int = status
        """The status of HTTP: Slack refuses with 200, and asks for a pause with 429."""
        self.retry_after: int | None = retry_after
        self.details: dict[str, Any] = details or {}
        super().__init__(error)

    def as_json(self) -> dict[str, Any]:
        """Return the answer that tells it."""
        return {"ok": False, "error": self.error, **self.details}


def missing_scope(needed: str, provided: str) -> SlackRefusalError:
    """Return the refusal of a call for which the app lacks a right."""
    return SlackRefusalError("missing_scope", details={"needed": needed, "provided": provided})


def ratelimited(seconds: int) -> SlackRefusalError:
    """Return the refusal of a call that came too early."""
    return SlackRefusalError("ratelimited", status=429, retry_after=seconds)


def invalid_blocks(problem: str, pointer: str) -> SlackRefusalError:
    """Return the refusal of blocks, with the place of the problem in them."""
    told = f"{problem} [json-pointer:{pointer}]"
    details = {"errors": [told], "response_metadata": {"messages": [f"[ERROR] {told}"]}}
    return SlackRefusalError("invalid_blocks", details=details)
