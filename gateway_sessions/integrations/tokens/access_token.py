"""`AccessToken`: the token for the calls of one account, kept until shortly before it ends.

Nothing here makes a call: a call that needs a token first gets the call that asks for one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

import msgspec

from gateway_sessions.adapters.webhooks.api_calls import ApiCall, PlatformAnswer
from gateway_sessions.errors import AdapterUnavailableError, InvalidInputError

EARLY: Final = timedelta(minutes=5)
"""A token is replaced so long before it ends, so that none ends on its way."""
SHORTEST: Final = timedelta(minutes=1)
"""The least time for which a token is kept, so that one that lives for less than EARLY is not asked for with
each call."""
LONGEST: Final = timedelta(days=7)
"""The longest life of a token that is believed; platforms give tokens for an hour or a day."""


class _TokenAnswer(msgspec.Struct, frozen=True):
    """The answer of a token endpoint, good or bad."""

    access_token: str = ""
    expires_in: float = 0
    error: str = ""
    error_description: str = ""


class AccessToken:
    """The access token of one account."""

    def __init__(self, ask: Callable[[datetime], ApiCall], *, platform: str, check: str) -> None:
        """*ask* returns the call that asks for a token; *check* says what may be wrong with it."""
        self._ask = ask
        self._platform = platform
        self._check = check
        self._token = ""
        self._good_until: datetime | None = None
        self._asked_at = ""

    def authorize(self, call: ApiCall, now: datetime) -> ApiCall | None:
        """Return a call with the token; None if there is no token, or not for long enough."""
        if self._good_until is None or now >= self._good_until:
            return None
        return replace(call, headers={**call.headers, "authorization": f"Bearer {self._token}"})

    def needed_call(self, now: datetime) -> ApiCall:
        """Return the call that asks for a token; hand its answer to `learn`."""
        call = self._ask(now)
        self._asked_at = call.url
        return call

    def learn(self, call: ApiCall, answer: PlatformAnswer, now: datetime) -> bool:
        """Keep the token of an answer, and return whether the answer is one to `needed_call`.

        `AdapterUnavailableError` if it has no token.
        """
        if call.url != self._asked_at:
            return False
        told = _read(answer)
        if not answer.is_success or not told.access_token.isascii() or not told.access_token.isprintable():
            told = _TokenAnswer(error=told.error, error_description=told.error_description)
        if not told.access_token:
            raise AdapterUnavailableError(self._platform, self._problem_of(answer, told))
        self._token = told.access_token
        # What is no number of seconds, as NaN, is in no range.
        seconds = told.expires_in if 0 < told.expires_in < LONGEST.total_seconds() else 0
        self._good_until = now + max(timedelta(seconds=seconds) - EARLY, SHORTEST)
        return True

    def forget(self) -> None:
        """Ask for another token before the next call."""
        self._good_until = None

    def _problem_of(self, answer: PlatformAnswer, told: _TokenAnswer) -> str:
        """Return the sentence for an answer without a token."""
        said = (told.error_description or told.error or f"status {answer.status}").splitlines()[0]
        if 400 <= answer.status < 500 and answer.status != 429:  # noqa: PLR2004 -- a request that is wrong
            return f"gives no access token: check {self._check} ({said})"
        return f"gives no access token now ({said})"


def _read(answer: PlatformAnswer) -> _TokenAnswer:
    try:
        return msgspec.convert(answer.json, _TokenAnswer)
    except msgspec.ValidationError:  # an answer of a proxy
        return _TokenAnswer()


def check_identity(value: str, name: str) -> str:
    """Return an id or a secret of the settings; `InvalidInputError` if it is empty or cannot be one."""
    if not value or not value.isascii() or not value.isprintable() or " " in value:
        problem = f"{name} is missing, or has blanks or other characters that cannot be part of it"
        raise InvalidInputError(problem)
    return value
