"""Refusals in the words of a Matrix homeserver."""

from __future__ import annotations

from typing import Any


class MatrixRefusalError(Exception):
    """The homeserver does not do what it was asked."""

    def __init__(self, status: int, errcode: str, error: str, **more: Any) -> None:
        self.status = status
        self.errcode = errcode
        self.error = error
        self.more: dict[str, Any] = more
        super().__init__(error)

    def as_json(self) -> dict[str, Any]:
        """Return the answer that tells it."""
        return {"errcode": self.errcode, "error": self.error, **self.more}


def not_allowed(problem: str) -> MatrixRefusalError:
    """Return the refusal of what this user may not do."""
    return MatrixRefusalError(403, "M_FORBIDDEN", problem)


def not_found(problem: str) -> MatrixRefusalError:
    """Return the refusal of a request about what does not exist."""
    return MatrixRefusalError(404, "M_NOT_FOUND", problem)


def bad_json(problem: str) -> MatrixRefusalError:
    """Return the refusal of a body that makes no sense."""
    return MatrixRefusalError(400, "M_BAD_JSON", problem)


def limit_exceeded(seconds: float) -> MatrixRefusalError:
    """Return the refusal of a request that came too early."""
    return MatrixRefusalError(
        429, "M_LIMIT_EXCEEDED", "Too Many Requests", retry_after_ms=round(seconds * 1000)
    )


def unknown_token(*, soft: bool) -> MatrixRefusalError:
    """Return the refusal of a token that was revoked; *soft*: the device is known, and may log in again."""
    return MatrixRefusalError(401, "M_UNKNOWN_TOKEN", "Invalid access token passed.", soft_logout=soft)
