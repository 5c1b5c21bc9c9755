"""An endpoint that does not answer is told apart by what can be done about it."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from gateway_sessions.agents.chat_completions.failures import (
    COUNTING,
    LONGEST_PAUSE,
    MAX_QUOTE,
    TRIES,
    Refusal,
    pause_before_retry,
    quote_from,
    retry_after_seconds,
)
from gateway_sessions.errors import ContextTooLongError, ModelError, ModelRefusedError, ModelUnavailableError

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TOO_LONG = (
    {"error": {"code": "context_length_exceeded", "message": "x"}},
    {"error": {"message": "This model's maximum context length is 8192 tokens."}},
    {"error": {"message": "the request exceeds the available context size"}},
    {"error": {"message": "prompt is too long: 210000 tokens > 200000 maximum"}},
    {"message": "Please reduce the length of the messages."},
)


def refusal(status: int, body: object = b"", **members: object) -> Refusal:
    written = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Refusal(**{"endpoint": "host", "model": "large", "status": status, "body": written, **members})


@pytest.mark.parametrize("status", [400, 413, 422])
@pytest.mark.parametrize("body", TOO_LONG)
def test_a_conversation_that_is_too_long_is_said_so(status: int, body: dict):
    error = refusal(status, body).error
    assert type(error) is ContextTooLongError
    assert "too long for large; /new begins another one" in str(error)


@pytest.mark.parametrize(
    ("status", "body", "kind", "says"),
    [
        (
            401,
            {"error": {"message": "Invalid"}},
            ModelRefusedError,
            "wants a key: set OPENAI_API_KEY (status 401: Invalid)",
        ),
        (403, b"", ModelRefusedError, "wants a key: set OPENAI_API_KEY (status 403)"),
        (
            404,
            {"error": {"message": "The model `large` does not exist"}},
            ModelRefusedError,
            "has no model 'large' (status 404",
        ),
        (
            404,
            {"detail": "Not Found"},
            ModelRefusedError,
            "the address usually ends in /v1 (status 404: Not Found)",
        ),
        (405, b"<html>", ModelRefusedError, "the address usually ends in /v1 (status 405)"),
        (301, b"", ModelRefusedError, "set the final address (status 301)"),
        (
            400,
            {"error": {"message": "temperature is wrong"}},
            ModelRefusedError,
            "refuses the question (status 400: temperature is wrong)",
        ),
        (402, {"error": "no credits"}, ModelRefusedError, "refuses the question (status 402: no credits)"),
        (204, b"", ModelRefusedError, "refuses the question (status 204)"),
        (
            429,
            {"error": {"code": "insufficient_quota", "message": "pay"}},
            ModelRefusedError,
            "refuses the question (status 429: pay)",
        ),
        (
            429,
            {"error": {"message": "slow down, see /billing"}},
            ModelUnavailableError,
            "too busy or out of order just now (status 429: slow down",
        ),
        (408, b"", ModelUnavailableError, "(status 408)"),
        (500, b"\xff", ModelUnavailableError, "(status 500)"),
        (503, [{"msg": "loading"}], ModelUnavailableError, "(status 503: loading)"),
    ],
)
def test_each_status_means_something(status: int, body: object, kind: type[ModelError], says: str):
    error = refusal(status, body).error
    assert type(error) is kind
    assert says in str(error)
    assert str(error).startswith("host ")
    assert "\n" not in str(error)


def test_who_has_sent_a_key_is_told_that_it_is_not_accepted_and_never_reads_it():
    one = refusal(401, {"error": {"message": "Incorrect API key provided: sk-secret."}}, key="sk-secret")
    assert (
        str(one.error) == "host does not accept the key (status 401: Incorrect API key provided: (the key).)"
    )
    assert "sk-secret" not in repr(one)


def test_when_to_come_back_is_kept():
    error = refusal(503, retry_after=7.0).error
    assert isinstance(error, ModelUnavailableError)
    assert (error.retry_after, error.asked) == (7.0, True)


@pytest.mark.parametrize(
    ("status", "body", "refuses"),
    [
        (400, {"error": "unknown member stream_options"}, True),
        (422, {"detail": [{"loc": ["body", "stream_options"], "msg": "extra fields"}]}, True),
        (400, {"error": "unknown member seed"}, False),
        (500, {"error": "stream_options"}, False),
    ],
)
def test_whether_only_counting_is_refused(status: int, body: object, *, refuses: bool):
    assert refusal(status, body).refuses_member(COUNTING) == refuses


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"error": {"message": "a\r\n  b\x1b[31m"}}, "a b [31m"),
        ({"error": {"detail": {"msg": "deep"}}}, "deep"),
        (["first", "second"], "first"),
        ({"error": {}}, ""),
        ([], ""),
        (None, ""),
        (7, ""),
        ("x" * 1000, "x" * (MAX_QUOTE - 3) + "..."),
    ],
)
def test_what_an_endpoint_says_is_one_short_line(answer: object, told: str):
    assert quote_from(answer, hiding=None) == told


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        ("5", 5.0),
        ("0", 0.0),
        ("1.5", 1.5),
        ("Sun, 01 Mar 2026 12:00:30 GMT", 30.0),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0.0),
        ("Sun, 01 Mar 2026 12:00:30 -0000", None),
        ("", None),
        ("-5", None),
        ("soon", None),
        ("9" * 400, None),
        ("nan", None),
    ],
)
def test_a_pause_is_told_in_seconds_or_as_a_date(told: str, seconds: float | None):
    assert retry_after_seconds(told, NOW) == seconds


NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("asked", "retry_after", "tries", "pause"),
    [
        (False, None, 1, 0.5),
        (False, None, 2, 1.0),
        (False, None, TRIES, None),
        (True, None, 1, None),
        (True, 7.0, 1, 7.0),
        (True, 7.0, 2, 7.0),
        (True, 0.0, 1, 0.0),
        (True, 7.0, TRIES, None),
        (True, LONGEST_PAUSE, 1, LONGEST_PAUSE),
        (True, LONGEST_PAUSE + 1, 1, None),
    ],
)
def test_how_long_to_wait(*, asked: bool, retry_after: float | None, tries: int, pause: float | None):
    error = ModelUnavailableError("host", "is busy", asked=asked, retry_after=retry_after)
    assert pause_before_retry(error, tries, NOW, None) == pause


@pytest.mark.parametrize(("left", "pause"), [(7.0, None), (7.1, 7.0), (0.0, None)])
def test_a_turn_that_is_over_by_then_is_not_kept_waiting(left: float, pause: float | None):
    error = ModelUnavailableError("host", "is busy", retry_after=7.0)
    assert pause_before_retry(error, 1, NOW, NOW + timedelta(seconds=left)) == pause
