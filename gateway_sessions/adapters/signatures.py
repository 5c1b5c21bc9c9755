"""Who sent it, and when: signatures as Standard Webhooks has them, which many libraries can make and check.

`webhook-signature` holds `v1,` and the base64 form of HMAC-SHA256 over id, timestamp and body, joined by
dots; several may stand there, separated by spaces, while a secret is being replaced.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from gateway_sessions.errors import InvalidInputError

ID: Final = "webhook-id"
TIMESTAMP: Final = "webhook-timestamp"
SIGNATURE: Final = "webhook-signature"

LEAST_SECRET: Final = 16
ENCODED: Final = "whsec_"
WINDOW: Final = timedelta(minutes=5)

_VERSION: Final = "v1,"
_MOST_DIGITS: Final = 12
_MOST_SIGNATURES: Final = 8


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs with the first secret, and accepts what any of them has signed within the *window*."""

    secrets: Sequence[str] = field(repr=False)
    """Texts of at least sixteen bytes, or `whsec_` and such bytes in base64."""
    window: timedelta = WINDOW
    """How far the sender's clock may differ from ours, and how old a request may be."""

    def __post_init__(self) -> None:
        if not self.secrets or any(len(_key_of(one)) < LEAST_SECRET for one in self.secrets):
            problem = f"a secret must have at least {LEAST_SECRET} bytes"
            raise InvalidInputError(problem)

    def headers(self, message_id: str, body: bytes, now: datetime) -> dict[str, str]:
        """What goes along with a body."""
        timestamp = str(int(now.timestamp()))
        signature = _VERSION + _signature(self.secrets[0], message_id, timestamp, body)
        return {ID: message_id, TIMESTAMP: timestamp, SIGNATURE: signature}

    def is_signed(self, headers: Mapping[str, str], body: bytes, now: datetime) -> bool:
        """Whether a body was sent by somebody who knows a secret, and just now."""
        message_id, timestamp = headers.get(ID, ""), headers.get(TIMESTAMP, "")
        if not message_id or not self._is_recent(timestamp, now):
            return False
        given = [
            one.removeprefix(_VERSION).encode()
            for one in headers.get(SIGNATURE, "").split(" ")[:_MOST_SIGNATURES]
            if one.startswith(_VERSION)
        ]
        expected = [_signature(secret, message_id, timestamp, body).encode() for secret in self.secrets]
        return any(hmac.compare_digest(ours, theirs) for ours in expected for theirs in given)

    def _is_recent(self, timestamp: str, now: datetime) -> bool:
        if not timestamp.isascii() or not timestamp.isdigit() or len(timestamp) > _MOST_DIGITS:
            return False
        return abs(now.timestamp() - int(timestamp)) <= self.window.total_seconds()


def _signature(secret: str, message_id: str, timestamp: str, body: bytes) -> str:
    content = b".".join((message_id.encode(), timestamp.encode(), body))
    return base64.b64encode(hmac.digest(_key_of(secret), content, hashlib.sha256)).decode()


def _key_of(secret: str) -> bytes:
    if not secret.startswith(ENCODED):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(ENCODED), validate=True)
    except binascii.Error:
        problem = f"a secret that begins with {ENCODED} must go on in base64"
        raise InvalidInputError(problem) from None
