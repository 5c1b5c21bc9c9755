"""Signatures and secrets: equal bytes only, and recent ones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from gateway_sessions.adapters.webhooks.signatures import (
    check_secret,
    hmac_base64,
    hmac_hex,
    is_any_secret,
    is_recent,
    is_same_secret,
)
from gateway_sessions.errors import InvalidInputError

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
SECONDS = int(NOW.timestamp())


def test_signatures_are_those_of_the_standard():
    # RFC 4231, test case 2, and the same bytes in base64.
    digest = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    assert hmac_hex("Jefe", b"what do ya want for nothing?") == digest
    assert (
        hmac_base64("Jefe", b"what do ya want for nothing?") == "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM="
    )
    assert hmac_hex("key", b"", "sha1") == "f42bb0eeb018ebbd4597ae7213711ec60760843f"


@pytest.mark.parametrize(
    ("expected", "given", "same"),
    [("a", "a", True), ("a", "b", False), ("a", "", False), ("", "", False), ("é\ud800", "é\ud800", True)],
)
def test_secrets_are_the_same_or_not(expected: str, given: str, same: bool):
    assert is_same_secret(expected, given) is same


def test_one_of_several_secrets_is_enough_while_they_change():
    assert is_any_secret(["old", "new"], "old")
    assert is_any_secret(["old", "new"], "new")
    assert not is_any_secret(["old", "new"], "other")
    assert not is_any_secret([], "")


@pytest.mark.parametrize(
    ("timestamp", "recent"),
    [
        (str(SECONDS), True),
        (str(SECONDS - 300), True),
        (str(SECONDS + 300), True),
        (str(SECONDS - 301), False),
        (str(SECONDS + 301), False),
        ("", False),
        ("-1", False),
        ("1e9", False),
        ("٣", False),
        ("9" * 400, False),
    ],
)
def test_a_timestamp_is_recent_within_five_minutes(timestamp: str, recent: bool):
    assert is_recent(timestamp, NOW) is recent


def test_a_timestamp_may_have_another_unit_and_window():
    assert is_recent(str(SECONDS * 1000), NOW, unit=0.001)
    assert not is_recent(str(SECONDS - 2), NOW, window=timedelta(seconds=1))


def test_an_empty_secret_is_refused():
    assert check_secret("x", "app_secret") == "x"
    with pytest.raises(InvalidInputError, match="app_secret is empty"):
        check_secret(" ", "app_secret")
