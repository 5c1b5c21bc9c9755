"""Calls as values, answers of any kind, and what a status says."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gateway_sessions.adapters.webhooks import (
    ApiCall,
    CallLimited,
    CallOutcome,
    CallRefused,
    CallSucceeded,
    CallUnauthorized,
    CallUnavailable,
    CallUnknown,
    FileToSend,
    PlatformAnswer,
    outcome_of_status,
)
from gateway_sessions.testing.fakes.http_server import FakeRequest, UploadedFile

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def received(call: ApiCall) -> dict[str, object]:
    return FakeRequest(method=call.method, path="/", headers=call.headers, body=call.body).parameters()


def test_a_call_with_json_or_a_form_says_what_it_carries():
    assert received(ApiCall.of_json("http://x", {"text": "é"})) == {"text": "é"}
    form = ApiCall.of_form("http://x", [("a", "1 2"), ("b", "é&=")])
    assert received(form) == {"a": "1 2", "b": "é&="}


def test_an_upload_cannot_be_broken_by_the_name_of_its_file():
    file = FileToSend('a"b\r\nx: y.png', b"\x00--bytes\r\n", "image/png")
    call = ApiCall.of_upload("http://x", {"product": "whatsapp"}, {"file": file})
    got = received(call)
    assert got["product"] == "whatsapp"
    uploaded = got["file"]
    assert isinstance(uploaded, UploadedFile)
    assert (uploaded.content, uploaded.media_type) == (file.content, "image/png")
    assert b'filename="a_b__x: y.png"' in call.body
    assert call.shows is False


def test_a_call_shows_no_secrets():
    call = ApiCall.of_json(
        "http://x/y?token=secret", {"text": "private"}, headers={"authorization": "secret"}
    )
    assert repr(call) == "ApiCall(POST http://x/y, unnamed)"


def test_members_of_an_answer_are_found_or_none():
    answer = PlatformAnswer(200, {}, b'{"messages": [{"id": "m1"}]}')
    assert answer.member("messages", 0, "id") == "m1"
    for path in (("messages", 1), ("else",), ("messages", "id"), ("messages", 0, "id", "deeper")):
        assert answer.member(*path) is None
    for body in (b"", b"<html>", b"\xff", b"[" * 100_000):
        assert PlatformAnswer(200, {}, body).json is None


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        ("7", 7),
        ("0.5", 0.5),
        ("Fri, 20 Nov 2026 12:00:30 GMT", 30),
        ("Fri, 20 Nov 2026 11:00:30 GMT", 0),
        ("Fri, 20 Nov 2026 12:00:30", None),
        ("-1", None),
        ("nan", None),
        ("inf", None),
        ("soon", None),
        ("", None),
    ],
)
def test_a_pause_is_told_in_seconds_or_as_a_date(told: str, seconds: float | None):
    assert PlatformAnswer(429, {"retry-after": told}).retry_after(NOW) == seconds


@pytest.mark.parametrize(
    ("status", "headers", "outcome"),
    [
        (200, {}, CallSucceeded("m1")),
        (204, {}, CallSucceeded("m1")),
        (302, {}, CallRefused("answered with status 302")),
        (400, {}, CallRefused("answered with status 400")),
        (401, {}, CallUnauthorized("answered with status 401")),
        (404, {}, CallRefused("answered with status 404")),
        (408, {}, CallUnknown("answered with status 408")),
        (429, {"retry-after": "3"}, CallLimited(3, everywhere=False)),
        (429, {}, CallLimited()),
        (500, {}, CallUnknown("answered with status 500")),
        (502, {}, CallUnknown("answered with status 502")),
        (503, {}, CallUnavailable("answered with status 503")),
        (503, {"retry-after": "3"}, CallLimited(3, everywhere=True)),
    ],
)
def test_a_status_says_what_became_of_a_call(status: int, headers: dict[str, str], outcome: CallOutcome):
    assert outcome_of_status(PlatformAnswer(status, headers), NOW, message_id="m1") == outcome


def test_a_problem_quotes_the_beginning_of_an_answer():
    answer = PlatformAnswer(400, {}, b"\xffno\n" + b"x" * 500)
    assert answer.problem.startswith("answered with status 400: \ufffdno xxx")
    assert len(answer.problem) < 250
