"""`IssuerKeys`: the public keys of an issuer, which are fetched when they are needed and kept for a day.

Nothing here makes a call: whoever checks a token gets the call that is needed first, and hands its answer to
`learn`. The engine limits how often such a call is made, because a stranger can name a key that nobody has.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import msgspec

from gateway_sessions.adapters.webhooks.api_calls import ApiCall, PlatformAnswer
from gateway_sessions.integrations.tokens.signed_tokens import (
    CheckedToken,
    KeysUnreadableError,
    SigningKeys,
    TokenRules,
    UnknownKeyError,
    check_token,
    read_keys,
)

FRESH: Final = timedelta(hours=24)
"""The time after which keys are fetched anew: an issuer withdraws a key that was stolen."""


class _IssuerMetadata(msgspec.Struct, frozen=True):
    """The part of an issuer's OpenID metadata that is read."""

    jwks_uri: str


class IssuerKeys:
    """The keys of one issuer."""

    def __init__(self, *, metadata_url: str = "", keys_url: str = "") -> None:
        """One of the two addresses is given; the metadata name the address of the keys."""
        self._metadata_url = metadata_url
        self._keys_url = keys_url
        self._keys: SigningKeys = {}
        self._learnt_at: datetime | None = None

    def check(self, token: str, rules: TokenRules, now: datetime) -> CheckedToken | ApiCall:
        """Return what a token states, or the call whose answer is needed first.

        `TokenRefusedError` if the token is not valid.
        """
        if self._learnt_at is None or now - self._learnt_at >= FRESH:
            return self._needed_call()
        try:
            return check_token(token, self._keys, rules, now)
        except UnknownKeyError:
            return self._needed_call()

    def learn(self, call: ApiCall, answer: PlatformAnswer, now: datetime) -> bool:
        """Keep what an answer tells, and return whether it is one of the issuer's.

        `KeysUnreadableError` if it tells nothing; the keys that were known stay known.
        """
        if call.url not in (self._metadata_url, self._keys_url):
            return False
        if not answer.is_success:
            problem = f"the keys of an issuer cannot be fetched: it {answer.problem}"
            raise KeysUnreadableError(problem)
        if call.url == self._metadata_url:
            self._keys_url = _keys_url_in(answer)
        else:
            self._keys, self._learnt_at = read_keys(answer.json), now
        return True

    def _needed_call(self) -> ApiCall:
        if self._keys_url:
            return ApiCall(url=self._keys_url, method="GET", name="keys", shows=False)
        return ApiCall(url=self._metadata_url, method="GET", name="openid metadata", shows=False)


def _keys_url_in(answer: PlatformAnswer) -> str:
    try:
        return msgspec.convert(answer.json, _IssuerMetadata).jwks_uri
    except msgspec.ValidationError as error:
        problem = f"the metadata of an issuer cannot be read ({error})"
        raise KeysUnreadableError(problem) from error
