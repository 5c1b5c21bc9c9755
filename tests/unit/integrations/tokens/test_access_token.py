"""The access token of an account: asked for once, kept until shortly before its end, told when refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gateway_sessions.adapters.webhooks import ApiCall, PlatformAnswer
from gateway_sessions.errors import AdapterUnavailableError, InvalidInputError
from gateway_sessions.integrations.tokens.access_token import AccessToken, check_identity

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
CALL = ApiCall(url="https://api/x", headers={"x": "y"})


@pytest.fixture
def token() -> AccessToken:
    return AccessToken(lambda now: ApiCall(url="https://login/token"), platform="p", check="the secret")


def learn(token: AccessToken, content: Any, status: int = 200) -> None:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    assert token.learn(token.needed_call(NOW), PlatformAnswer(status, {}, body), NOW)


def test_a_call_gets_the_token_once_there_is_one(token: AccessToken):
    assert token.authorize(CALL, NOW) is None
    learn(token, {"access_token": "abc", "expires_in": 3600})
    authorized = token.authorize(CALL, NOW)
    assert authorized is not None
    assert authorized.headers == {"x": "y", "authorization": "Bearer abc"}


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        (3600, timedelta(minutes=55)),
        (60, timedelta(minutes=1)),
        (0, timedelta(minutes=1)),
        (-5, timedelta(minutes=1)),
        (1e300, timedelta(minutes=1)),
        (float("nan"), timedelta(minutes=1)),
    ],
)
def test_a_token_is_kept_until_shortly_before_its_end(token: AccessToken, told: float, kept: timedelta):
    learn(token, {"access_token": "abc", "expires_in": told})
    assert token.authorize(CALL, NOW + kept - timedelta(seconds=1)) is not None
    assert token.authorize(CALL, NOW + kept) is None


def test_a_forgotten_token_is_asked_for_again(token: AccessToken):
    learn(token, {"access_token": "abc", "expires_in": 3600})
    token.forget()
    assert token.authorize(CALL, NOW) is None


@pytest.mark.parametrize(
    ("content", "status", "problem"),
    [
        (
            {"error": "invalid_client", "error_description": "AADSTS7000215: wrong\r\nTrace ID: 1"},
            401,
            r"check the secret \(AADSTS7000215: wrong\)",
        ),
        ({"error": "invalid_grant"}, 400, r"check the secret \(invalid_grant\)"),
        ({}, 400, r"check the secret \(status 400\)"),
        ({}, 429, r"gives no access token now \(status 429\)"),
        (b"<html>", 502, r"gives no access token now \(status 502\)"),
        ({"access_token": "abc"}, 500, "gives no access token now"),
        ({"access_token": ""}, 200, r"gives no access token now \(status 200\)"),
        ({"access_token": "a\nb"}, 200, "gives no access token now"),
        ({"access_token": 7}, 200, "gives no access token now"),
        ([], 200, "gives no access token now"),
    ],
)
def test_an_answer_without_a_token_is_told_in_one_sentence(
    token: AccessToken, content: Any, status: int, problem: str
):
    with pytest.raises(AdapterUnavailableError, match=problem):
        learn(token, content, status)
    assert token.authorize(CALL, NOW) is None


def test_the_answer_to_another_call_is_nobodys_token(token: AccessToken):
    assert not token.learn(CALL, PlatformAnswer(200, {}, b'{"access_token": "abc"}'), NOW)


@pytest.mark.parametrize("value", ["", " ", "a b", " a", "a\n", "é"])
def test_a_secret_that_cannot_be_one_is_told(value: str):
    with pytest.raises(InvalidInputError, match="app_secret is missing, or has blanks"):
        check_identity(value, "app_secret")
