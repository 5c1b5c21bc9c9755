"""Messages as values, and as chat programs pass them on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from gateway_sessions import InvalidInputError, Message
from gateway_sessions.core.transcript.messages import NO_EXTRA, brief_line, message_from, preview_of, text_of
from gateway_sessions.transcripts import Hidden

AT = datetime(2026, 1, 1, 12, 0, 0, 250_000, tzinfo=UTC)


def test_a_message_passes_as_it_is():
    message = Message("user", "x", hidden_because=Hidden.REWOUND)
    assert message_from(message) is message
    assert not message.active
    assert Message("user").active
    assert message.altered(content="y") == Message("user", "y", hidden_because=Hidden.REWOUND)


def test_its_time_is_also_a_number():
    assert Message("user", sent_at=AT).timestamp == 1767268800.25
    assert Message("user").timestamp is None


def test_known_members_of_a_mapping_are_fields_and_others_are_kept():
    given = {
        "role": "tool",
        "content": "x",
        "tool_call_id": "c",
        "tool_name": "ls",
        "timestamp": 1767268800.25,
        "message_id": 77,
        "session_id": "elsewhere",
        "seq": 3,
        "observed": 1,
        "name": "bob",
    }
    assert message_from(given) == Message(
        "tool",
        "x",
        tool_call_id="c",
        tool_name="ls",
        sent_at=AT,
        platform_message_id="77",
        observed=True,
        extra={"name": "bob"},
    )


def test_a_mapping_without_anything_unknown_has_nothing_extra():
    assert message_from({"role": "user"}).extra is NO_EXTRA


def test_the_platforms_own_name_for_a_message_goes_before_another():
    given = {"role": "user", "platform_message_id": 5, "message_id": "b"}
    assert message_from(given).platform_message_id == "5"
    assert message_from({"role": "user", "message_id": None}).platform_message_id is None


@pytest.mark.parametrize(
    "given",
    [
        AT,
        AT.astimezone(timezone(timedelta(hours=5))),
        AT.replace(tzinfo=None),
        1767268800.25,
        1767268800250,
        " 1767268800.25 ",
        "2026-01-01T12:00:00.250Z",
        "2026-01-01T12:00:00.25",
    ],
)
def test_a_time_may_be_said_in_many_ways(given: Any):
    assert message_from({"role": "user", "timestamp": given}).sent_at == AT


@pytest.mark.parametrize("given", [True, "soon", "nan", float("inf"), 1e300, [], "9" * 40])
def test_what_is_no_time_is_refused_by_name(given: Any):
    with pytest.raises(InvalidInputError, match="timestamp"):
        message_from({"role": "user", "timestamp": given})


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ("a", "a"),
        ([{"type": "text", "text": "a"}, {"type": "image"}, "b"], "a\nb"),
        ({"text": "a"}, "a"),
        ({"content": [{"text": "a"}, {"content": "b"}]}, "a\nb"),
        ([1, None, ["a"], {"text": 5}], "a"),
    ],
)
def test_the_text_of_a_content_is_what_a_person_can_read(content: Any, text: str):
    assert text_of(content) == text
    assert Message("user", content).text == text


@pytest.mark.parametrize(
    ("text", "preview"),
    [
        ("", None),
        (" \n\t ", None),
        ("\n" * 1000 + "x", None),
        (" a\r\nb\u2028c ", "a b c"),
        ("x" * 60, "x" * 60),
        ("x" * 61, "x" * 60 + "..."),
        ("x" * 58 + "\nyz", "x" * 58 + " y..."),
    ],
)
def test_a_preview_is_one_short_line(text: str, preview: str | None):
    assert preview_of(text) == preview


def test_a_brief_has_eighty_characters_at_most():
    assert brief_line("a\nb") == "a b"
    assert brief_line("x" * 80) == "x" * 80
    assert brief_line("x" * 81) == "x" * 77 + "..."
