"""Signatures: made as other programs make them, and checked so that nobody gets past."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_sessions.adapters.webhook import ID, SIGNATURE, TIMESTAMP, Signer
from gateway_sessions.errors import InvalidInputError

NOW = datetime(2026, 6, 10, 12, tzinfo=UTC)
SECRET = "a secret of some length"
OTHER = "another secret, as long"
BODY = b'{"text": "hello"}'


def signed(secret: str = SECRET, *, now: datetime = NOW, body: bytes = BODY) -> dict[str, str]:
    return Signer([secret]).headers("msg_1", body, now)


def test_the_signature_is_that_of_the_standard():
    """The example that the specification of Standard Webhooks gives."""
    signer = Signer(["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"])
    sent_at = datetime.fromtimestamp(1614265330, UTC)
    assert signer.headers("msg_p5jXN8AQM9LWM0D4loKWxJek", b'{"test": 2432232314}', sent_at) == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_what_was_signed_is_accepted():
    assert Signer([SECRET]).is_signed(signed(), BODY, NOW)


@pytest.mark.parametrize(
    "changed",
    [
        {ID: "msg_2"},
        {ID: ""},
        {TIMESTAMP: str(int(NOW.timestamp()) + 1)},
        {TIMESTAMP: ""},
        {TIMESTAMP: "soon"},
        {TIMESTAMP: "-1"},
        {TIMESTAMP: "1e9"},
        {TIMESTAMP: "١٧٨١٠٩٢٨٠٠"},
        {TIMESTAMP: "9" * 5000},
        {SIGNATURE: ""},
        {SIGNATURE: "v1,"},
        {SIGNATURE: "v1,ünsigned"},
        {SIGNATURE: "v2,x"},
        {SIGNATURE: signed(OTHER)[SIGNATURE]},
        {SIGNATURE: signed()[SIGNATURE].removeprefix("v1,")},
        {SIGNATURE: signed()[SIGNATURE][:-1]},
    ],
)
def test_what_was_changed_is_not(changed: dict[str, str]):
    assert not Signer([SECRET]).is_signed(signed() | changed, BODY, NOW)


def test_another_body_is_not_accepted():
    assert not Signer([SECRET]).is_signed(signed(), BODY + b" ", NOW)


@pytest.mark.parametrize("missing", [ID, TIMESTAMP, SIGNATURE])
def test_nothing_may_be_left_out(missing: str):
    headers = {name: value for name, value in signed().items() if name != missing}
    assert not Signer([SECRET]).is_signed(headers, BODY, NOW)


@pytest.mark.parametrize(
    ("age", "accepted"), [(300, True), (301, False), (-300, True), (-301, False), (0, True)]
)
def test_what_is_old_or_of_the_future_is_not_accepted(age: int, accepted: bool):
    headers = signed(now=NOW - timedelta(seconds=age))
    assert Signer([SECRET]).is_signed(headers, BODY, NOW) is accepted


def test_a_secret_can_be_replaced_without_a_gap():
    both = Signer([OTHER, SECRET])
    assert both.is_signed(signed(SECRET), BODY, NOW)
    assert both.is_signed(signed(OTHER), BODY, NOW)
    assert both.headers("msg_1", BODY, NOW) == signed(OTHER)


def test_one_good_signature_among_several_is_enough():
    headers = signed() | {SIGNATURE: f"v1a,zzz {signed(OTHER)[SIGNATURE]} {signed()[SIGNATURE]}"}
    assert Signer([SECRET]).is_signed(headers, BODY, NOW)


def test_not_any_number_of_signatures_is_tried():
    headers = signed() | {SIGNATURE: "v1,x " * 1000 + signed()[SIGNATURE]}
    assert not Signer([SECRET]).is_signed(headers, BODY, NOW)


@pytest.mark.parametrize(
    "secrets", [[], ["short"], [SECRET, "short"], ["whsec_c2hvcnQ="], ["whsec_no base64!"]]
)
def test_a_secret_that_can_be_guessed_is_refused(secrets: list[str]):
    with pytest.raises(InvalidInputError):
        Signer(secrets)


def test_a_secret_is_not_shown():
    assert SECRET not in repr(Signer([SECRET]))


@given(
    headers=st.dictionaries(st.sampled_from([ID, TIMESTAMP, SIGNATURE]), st.text()),
    body=st.binary(max_size=40),
)
def test_no_headers_whatever_break_it(headers: dict[str, str], body: bytes):
    assert not Signer([SECRET]).is_signed(headers, body, NOW)
