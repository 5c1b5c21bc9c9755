"""`Refusal`: the refusal of an endpoint as an error with advice, and the rule for asking again.

A request may cost money, and text that was shown cannot be taken back. So the model is asked again only if it
cannot have begun to answer: no connection was made, or the endpoint itself said when to come back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, Final, cast

import msgspec

from gateway_sessions.core.display_text import shorten_text, visible_text
from gateway_sessions.errors import ContextTooLongError, ModelError, ModelRefusedError, ModelUnavailableError

MAX_QUOTE: Final = 300
"""The most characters that are quoted of an endpoint's answer: one line for people."""
HIDDEN: Final = "(the key)"
COUNTING: Final = "stream_options"
"""The member that asks for counted tokens, which older endpoints refuse."""
TOOLS: Final = "tools"
"""The member that offers tools, which some models refuse."""

_TOO_LONG: Final = re.compile(
    r"context[ _](length|window|size)|maximum context|too many (input )?tokens|(prompt|input) is too long"
    r"|exceeds? the (available |model'?s? )?(context|limit)|reduce the length",
    re.IGNORECASE,
)
_QUOTA_USED_UP: Final = b"insufficient_quota"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The refusal of a request: a status and, perhaps, a text."""

    endpoint: str
    model: str
    status: int
    key: str | None = field(default=None, repr=False)
    """The key of the request, which is never quoted."""
    body: bytes = field(default=b"", repr=False)
    retry_after: float | None = None

    @property
    def quote(self) -> str:
        """The message of the endpoint, on one line and without the key."""
        try:
            return quote_from(msgspec.json.decode(self.body), hiding=self.key)
        except (msgspec.DecodeError, UnicodeError):
            return ""

    def refuses_member(self, name: str) -> bool:
        """Return True if the endpoint refuses a member of the request, which it could do without."""
        if name == TOOLS:  # some say so as if there were no model
            is_meant = self._is_bad_request or self.status == HTTPStatus.NOT_FOUND
            return is_meant and b"tool" in self.body.lower()
        return self._is_bad_request and name.encode() in self.body

    @property
    def error(self) -> ModelError:
        """The error for the status and the message."""
        match self.status:
            case _ if self._is_bad_request and _TOO_LONG.search(self.body.decode("utf-8", "replace")):
                ways_out = "/new begins another one, and /compress goes on with a summary"
                problem = f"says that the conversation is too long for {self.model}; {ways_out}"
                return ContextTooLongError(self.endpoint, self._with_quote(problem))
            case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN:
                problem = "does not accept the key" if self.key else "wants a key: set OPENAI_API_KEY"
            case HTTPStatus.NOT_FOUND if "model" in self.quote.lower():
                problem = f"has no model {self.model!r}"
            case HTTPStatus.NOT_FOUND | HTTPStatus.METHOD_NOT_ALLOWED:
                problem = "has no chat completions there; the address usually ends in /v1"
            case _ if 300 <= self.status < HTTPStatus.BAD_REQUEST:  # noqa: PLR2004 -- all redirections
                problem = "sends elsewhere, where the key would go, too: set the final address"
            case _ if self._is_temporary:
                problem = self._with_quote("is too busy or out of order just now")
                return ModelUnavailableError(self.endpoint, problem, retry_after=self.retry_after)
            case _:
                problem = "refuses the question"
        return ModelRefusedError(self.endpoint, self._with_quote(problem))

    @property
    def _is_bad_request(self) -> bool:
        return self.status in {
            HTTPStatus.BAD_REQUEST,
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            HTTPStatus.UNPROCESSABLE_ENTITY,
        }

    @property
    def _is_temporary(self) -> bool:
        if self.status == HTTPStatus.TOO_MANY_REQUESTS:  # a used-up quota does not come back by waiting
            return _QUOTA_USED_UP not in self.body
        return self.status >= HTTPStatus.INTERNAL_SERVER_ERROR or self.status == HTTPStatus.REQUEST_TIMEOUT

    def _with_quote(self, problem: str) -> str:
        told = f": {self.quote}" if self.quote else ""
        return f"{problem} (status {self.status}{told})"


def quote_from(answer: object, *, hiding: str | None) -> str:
    """Return the message for people in an answer, on one line and without the key."""
    for name in ("error", "message", "detail", "msg"):
        if isinstance(answer, dict) and (found := cast("Mapping[str, Any]", answer).get(name)):
            return quote_from(found, hiding=hiding)
    if isinstance(answer, list) and answer:
        return quote_from(cast("list[object]", answer)[0], hiding=hiding)
    text = answer if isinstance(answer, str) else ""
    return shorten_text(
        " ".join(visible_text(text.replace(hiding, HIDDEN) if hiding else text).split()), MAX_QUOTE
    )


def retry_after_seconds(told: str, now: datetime) -> float | None:
    """Return the seconds of a `retry-after` header, which may be a date; None for anything else."""
    if re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,6})?", told):
        return float(told)
    try:
        at = parsedate_to_datetime(told)
    except ValueError:
        return None
    return max((at - now).total_seconds(), 0.0) if at.tzinfo is not None else None


# When a model is asked again

TRIES: Final = 3
"""The number of attempts for one turn, because a person waits."""
FIRST_PAUSE: Final = 0.5
"""Seconds before the second attempt, doubled before the third: a restarting endpoint is back soon."""
LONGEST_PAUSE: Final = 60.0
"""The most seconds to wait. If the endpoint asks for more, the person is told instead."""


def pause_before_retry(
    error: ModelUnavailableError, tries: int, now: datetime, deadline: datetime | None
) -> float | None:
    """Return the seconds before the next attempt; None if there is none."""
    if tries >= TRIES or (error.asked and error.retry_after is None):
        return None
    pause = error.retry_after if error.retry_after is not None else FIRST_PAUSE * 2 ** (tries - 1)
    in_time = deadline is None or now + timedelta(seconds=pause) < deadline
    return pause if pause <= LONGEST_PAUSE and in_time else None
