"""What the pages say of messages that come in the forms of many providers."""

import pytest

from gateway_sessions.core.export.page_texts import (
    content_pieces,
    message_remarks,
    readable_tool_calls,
    reasoning_text,
    session_facts,
    session_heading,
)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, []),
        ("", []),
        ("a\r\nb\rc", [("text", "a\nb\nc")]),
        ([], []),
        (["x"], [("text", "x")]),
        ([{"text": "x"}], [("text", "x")]),
        ([{"type": "input_text", "text": "x"}], [("text", "x")]),
        (
            [{"type": "image_url", "image_url": {"url": "https://e.org/a.png"}}],
            [("media", "image: https://e.org/a.png")],
        ),
        ([{"type": "image_url", "image_url": "data:xyz"}], [("media", "image")]),
        ([{"type": "input_audio", "input_audio": {"data": "xyz"}}], [("media", "audio")]),
        ([{"type": "file", "name": "a.pdf"}], [("media", "file: a.pdf")]),
        ([{"type": "tool_use", "id": 1}], [("data", '{\n  "type": "tool_use",\n  "id": 1\n}')]),
        ([{"id": 1}], [("data", '{\n  "id": 1\n}')]),
        ([1], [("data", "1")]),
        (7, [("data", "7")]),
    ],
)
def test_pieces_of_a_content(content: object, expected: list):
    assert list(content_pieces(content)) == expected


@pytest.mark.parametrize(
    ("call", "name", "arguments", "glimpse"),
    [
        (
            {"function": {"name": "f", "arguments": '{"a": [1]}'}},
            "f",
            '{\n  "a": [\n    1\n  ]\n}',
            "a: [ 1 ]",
        ),
        ({"name": "f", "input": {"a": "b"}}, "f", '{\n  "a": "b"\n}', "a: b"),
        ({"function": {"name": "f", "arguments": "not json"}}, "f", "not json", "not json"),
        ({"function": {"name": None}}, "tool", "", ""),
        ({}, "tool", "", ""),
        ("f()", "tool", "f()", "f()"),
    ],
)
def test_calls_of_tools(call: object, name: str, arguments: str, glimpse: str):
    assert list(readable_tool_calls([call])) == [(name, arguments, glimpse)]


def test_a_message_without_calls_has_none():
    assert list(readable_tool_calls(None)) == list(readable_tool_calls("x")) == []


def test_a_session_is_called_by_its_title_its_beginning_or_its_id():
    assert session_heading({"title": "T", "preview": "p", "id": "i"}) == "T"
    assert session_heading({"title": None, "preview": "p", "id": "i"}) == "p"
    assert session_heading({"id": "i"}) == "i"
    assert session_heading({}) == "session"


def test_what_has_to_be_known_of_a_message():
    message = {"hidden_because": "lost", "effect_disposition": "unknown", "finish_reason": "length"}
    assert message_remarks(message) == ["lost", "effect: unknown", "ended: length"]


def test_thoughts_come_from_whichever_field_has_them():
    assert reasoning_text({"reasoning": None, "reasoning_content": "x"}) == "x"
    assert reasoning_text({"reasoning": 7}) == ""


def test_a_cost_of_nothing_is_not_mentioned():
    assert [name for name, _ in session_facts({"actual_cost_usd": 0.0, "estimated_cost_usd": 1.0})] == [
        "Session",
        "Source",
        "Began",
    ]
