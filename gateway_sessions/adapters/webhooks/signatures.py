"""Signatures of platforms: each is compared over the raw bytes, in a time that tells nothing."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from gateway_sessions.errors import InvalidInputError

REPLAY_WINDOW: Final = timedelta(minutes=5)
"""The greatest age of a signed request where a timestamp is signed as well; an older one may be a replay."""

SIGNED_AT_ANOTHER_TIME: Final = "it was signed at another time than now; is the clock of this machine right?"
"""The sentence by which an operator hears of a request that is not recent."""

_MOST_DIGITS: Final = 14  # of a timestamp in milliseconds: three thousand years


def hmac_hex(secret: str, content: bytes, algorithm: str = "sha256") -> str:
    """Return the HMAC of some bytes in hexadecimal digits."""
    return hmac.new(secret.encode(), content, algorithm).hexdigest()


def hmac_base64(secret: str, content: bytes, algorithm: str = "sha256") -> str:
    """Return the HMAC of some bytes in base64."""
    return base64.b64encode(hmac.digest(secret.encode(), content, algorithm)).decode("ascii")


def is_same_secret(expected: str, given: str) -> bool:
    """Return whether two secrets are equal; the time of the comparison does not tell where they differ."""
    # Hashes have one length, so that not even the length of the secret is told; and bytes of any text do.
    ours = hashlib.sha256(expected.encode("utf-8", "surrogatepass")).digest()
    theirs = hashlib.sha256(given.encode("utf-8", "surrogatepass")).digest()
    return bool(expected) and hmac.compare_digest(ours, theirs)


def is_any_secret(expected: Iterable[str], given: str) -> bool:
    """Return whether a secret is one of several: while a secret is being replaced, there are two."""
    return sum(is_same_secret(one, given) for one in expected) > 0  # a sum: each is compared


def is_recent(timestamp: str, now: datetime, *, window: timedelta = REPLAY_WINDOW, unit: float = 1.0) -> bool:
    """Return whether a timestamp, in units of so many seconds, is close to now."""
    if not timestamp.isascii() or not timestamp.isdigit() or len(timestamp) > _MOST_DIGITS:
        return False
    return abs(now.timestamp() - int(timestamp) * unit) <= window.total_seconds()


def check_secret(value: str, name: str) -> str:
    """Return a secret of the settings; `InvalidInputError` if it is empty: an empty secret opens to all."""
    if not value.strip():
        problem = f"{name} is empty: without it, anybody could post messages"
        raise InvalidInputError(problem)
    return value
