"""Tokens that platforms sign: only those of the right issuer, for us, and valid now are accepted."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest

from gateway_sessions.adapters.webhooks import ApiCall, PlatformAnswer
from gateway_sessions.integrations.tokens.issuer_keys import FRESH, IssuerKeys
from gateway_sessions.integrations.tokens.signed_tokens import (
    KeysUnreadableError,
    TokenRefusedError,
    TokenRules,
    UnknownKeyError,
    bearer_token,
    check_token,
    read_keys,
)
from gateway_sessions.testing.fakes.token_issuer import FakeIssuer

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
RULES = TokenRules(issuers=("https://issuer.example",), audiences=("app",))
CLAIMS = {"aud": "app", "exp": NOW.timestamp() + 3600, "nbf": NOW.timestamp(), "who": "ann"}


@pytest.fixture
def issuer() -> FakeIssuer:
    return FakeIssuer("https://issuer.example", endorsements=["msteams"])


def test_a_right_token_tells_its_claims_and_what_its_key_may_sign(issuer: FakeIssuer):
    checked = check_token(issuer.sign(CLAIMS), read_keys(issuer.key_set()), RULES, NOW)
    assert (checked.claims["who"], checked.key.endorsements) == ("ann", {"msteams"})


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"iss": "https://other.example"}, "the token is of another issuer"),
        ({"iss": None}, "does not say its 'iss'"),
        ({"aud": "another app"}, "the token is for somebody else"),
        ({"aud": None}, "does not say its 'aud'"),
        ({"exp": None}, "does not say its 'exp'"),
        ({"exp": "soon"}, "'exp' is no time"),
        ({"exp": True}, "'exp' is no time"),
        ({"nbf": "soon"}, "'nbf' is no time"),
        ({"exp": NOW.timestamp() - 301}, "has expired; is the clock of this machine right"),
        ({"nbf": NOW.timestamp() + 301}, "is not valid yet; is the clock of this machine right"),
    ],
)
def test_a_wrong_claim_is_told_in_one_sentence(issuer: FakeIssuer, changes: dict[str, Any], problem: str):
    with pytest.raises(TokenRefusedError, match=problem):
        check_token(issuer.sign({**CLAIMS, **changes}), read_keys(issuer.key_set()), RULES, NOW)


@pytest.mark.parametrize("skew", [{"exp": NOW.timestamp() - 299}, {"nbf": NOW.timestamp() + 299}])
def test_clocks_may_differ_by_five_minutes(issuer: FakeIssuer, skew: dict[str, Any]):
    check_token(issuer.sign({**CLAIMS, **skew}), read_keys(issuer.key_set()), RULES, NOW)


def test_the_given_clock_counts_and_not_the_machines(issuer: FakeIssuer):
    later = NOW + timedelta(days=4000)
    keys = read_keys(issuer.key_set())
    check_token(issuer.sign({**CLAIMS, "exp": later.timestamp() + 1}), keys, RULES, later)
    with pytest.raises(TokenRefusedError, match="expired"):
        check_token(issuer.sign(CLAIMS), keys, RULES, later)


def test_a_token_of_another_key_is_refused(issuer: FakeIssuer):
    keys = read_keys(issuer.key_set())
    known = issuer.key_id
    issuer.rotate()
    with pytest.raises(TokenRefusedError, match="the signature of the token is wrong"):
        check_token(issuer.sign(CLAIMS, kid=known), keys, RULES, NOW)
    with pytest.raises(UnknownKeyError):
        check_token(issuer.sign(CLAIMS), keys, RULES, NOW)


def test_a_token_cannot_choose_how_it_is_checked(issuer: FakeIssuer):
    keys = read_keys(issuer.key_set())
    public = json.dumps(issuer.key_set()["keys"][0])
    unsigned = jwt.encode({**CLAIMS, "iss": issuer.issuer}, "", algorithm="none", headers={"kid": "key-0"})
    head = base64.urlsafe_b64encode(b'{"alg":"HS256","kid":"key-0"}').rstrip(b"=").decode()
    shared = ".".join((head, *jwt.encode(CLAIMS, public * 2, algorithm="HS256").split(".")[1:]))
    for token in (unsigned, shared):
        with pytest.raises(TokenRefusedError, match="is not signed with RS256"):
            check_token(token, keys, RULES, NOW)


@pytest.mark.parametrize("token", ["", "a", "a.b", "a.b.c", "é.é.é", "." * 50, "x" * 20_000, "[" * 5000])
def test_what_is_no_token_is_refused(issuer: FakeIssuer, token: str):
    with pytest.raises(TokenRefusedError):
        check_token(token, read_keys(issuer.key_set()), RULES, NOW)


@pytest.mark.parametrize("claims", [b"[]", b"7", b"{", b"\xff"])
def test_a_signed_token_whose_claims_are_no_object_is_refused(issuer: FakeIssuer, claims: bytes):
    with pytest.raises(TokenRefusedError, match="the token cannot be read"):
        check_token(issuer.sign_bytes(claims), read_keys(issuer.key_set()), RULES, NOW)


def test_without_pyjwt_one_sentence_says_what_to_install():
    code = "import sys; sys.modules['jwt'] = None; import gateway_sessions.integrations.tokens.signed_tokens"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "signed tokens need pyjwt: pip install 'gateway-sessions[webhooks]'" in result.stderr


@pytest.mark.parametrize("header", [None, "", "Basic abc", "Bearer", "bearertoken"])
def test_a_request_without_a_token_is_refused(header: str | None):
    with pytest.raises(TokenRefusedError, match="has no bearer token"):
        bearer_token({"authorization": header} if header is not None else {})


def test_the_token_of_a_request_stands_behind_bearer_in_any_case():
    assert bearer_token({"authorization": "bEaReR  a.b.c "}) == "a.b.c"


@pytest.mark.parametrize("content", [None, [], 7, {"keys": 7}, {"keys": [7]}])
def test_what_is_no_set_of_keys_is_told(content: object):
    with pytest.raises(KeysUnreadableError, match="the keys of the issuer cannot be read"):
        read_keys(content)


def test_keys_that_cannot_be_used_are_passed_over(issuer: FakeIssuer):
    good = issuer.key_set()["keys"][0]
    odd = [{}, {"kid": "1"}, {**good, "kid": "2", "use": "enc"}, {**good, "kid": "3", "n": "%"}]
    odd += [{**good, "kid": "4", "kty": "EC"}, {**good, "kid": "5", "n": 7}, {**good, "endorsements": 7}]
    keys = read_keys({"keys": odd})
    assert set(keys) == {"key-0"}
    assert keys["key-0"].endorsements == frozenset()
    assert "n=" not in repr(keys["key-0"])


# Keys that are fetched when they are needed


def answer_of(content: object, status: int = 200) -> PlatformAnswer:
    return PlatformAnswer(status, {}, json.dumps(content).encode())


class Published:
    """An issuer's addresses, asked as the engine does."""

    def __init__(self, issuer: FakeIssuer) -> None:
        self.issuer = issuer
        self.keys = IssuerKeys(metadata_url="https://i/meta")
        self.calls: list[str] = []

    def check(self, token: str, now: datetime = NOW) -> object:
        for _ in range(3):
            checked = self.keys.check(token, RULES, now)
            if not isinstance(checked, ApiCall):
                return checked.claims["who"]
            self.calls.append(checked.url)
            meta = {"issuer": self.issuer.issuer, "jwks_uri": "https://i/keys"}
            told = meta if checked.url == "https://i/meta" else self.issuer.key_set()
            assert self.keys.learn(checked, answer_of(told), now)
        return None


def test_keys_are_fetched_for_the_first_token_and_when_a_day_has_passed(issuer: FakeIssuer):
    published = Published(issuer)
    assert published.check(issuer.sign(CLAIMS)) == "ann"
    assert published.check(issuer.sign(CLAIMS)) == "ann"
    assert published.calls == ["https://i/meta", "https://i/keys"]
    long = issuer.sign({**CLAIMS, "exp": NOW.timestamp() + 10**6})
    assert published.check(long, NOW + FRESH) == "ann"
    assert published.calls[2:] == ["https://i/keys"]


def test_a_key_that_is_new_is_fetched_and_the_withdrawn_one_is_forgotten(issuer: FakeIssuer):
    published = Published(issuer)
    old = issuer.sign(CLAIMS)
    assert published.check(old) == "ann"
    issuer.rotate()
    assert published.check(issuer.sign(CLAIMS)) == "ann"
    assert published.check(old) is None


def test_an_answer_without_keys_changes_nothing(issuer: FakeIssuer):
    published = Published(issuer)
    token = issuer.sign(CLAIMS)
    published.check(token)
    for url in ("https://i/meta", "https://i/keys"):
        call = ApiCall(url=url)
        for answer in (answer_of({}, 503), answer_of([]), PlatformAnswer(200, {}, b"<html>")):
            with pytest.raises(KeysUnreadableError):
                published.keys.learn(call, answer, NOW)
    assert published.check(token) == "ann"
    assert not published.keys.learn(ApiCall(url="https://else"), answer_of({}), NOW)


def test_the_address_of_the_keys_may_be_given(issuer: FakeIssuer):
    needed = IssuerKeys(keys_url="https://i/keys").check(issuer.sign(CLAIMS), RULES, NOW)
    assert isinstance(needed, ApiCall)
    assert (needed.url, needed.method) == ("https://i/keys", "GET")
