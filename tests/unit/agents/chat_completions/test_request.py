"""What an endpoint is asked: the conversation, in members that every endpoint knows."""

import pytest

from gateway_sessions.agents.chat_completions.request import request_body
from gateway_sessions.core.transcript.messages import message_from
from gateway_sessions.core.transcript.model_history import conversation_of

KNOWN = {
    "system": {"role", "content"},
    "user": {"role", "content"},
    "assistant": {"role", "content", "tool_calls"},
    "tool": {"role", "content", "tool_call_id"},
}


def asked(*rows: dict, **members: object) -> dict:
    return request_body(rows, **{"model": "large", "instructions": "", "further": {}, **members})


def test_what_is_asked_for():
    assert asked({"role": "user", "content": "hello"}, instructions="Be kind.", further={"seed": 7}) == {
        "seed": 7,
        "model": "large",
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "hello"},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_without_instructions_there_is_no_system_message_and_without_tools_none_are_offered():
    body = asked({"role": "user", "content": "hello"})
    assert [row["role"] for row in body["messages"]] == ["user"]
    assert "tools" not in body


def test_tools_are_offered_as_functions():
    tool = {"name": "look", "description": "Look.", "parameters": {"type": "object"}}
    body = asked({"role": "user", "content": "hello"}, tools=[tool], further={"tools": "others"})
    assert body["tools"] == [{"type": "function", "function": tool}]


def test_further_members_do_not_change_what_is_asked():
    body = asked(further={"model": "x", "stream": False, "messages": [], "stream_options": None})
    assert (body["model"], body["stream"], body["messages"]) == ("large", True, [])


def test_a_transcript_with_all_that_it_can_hold_goes_out_in_the_members_of_the_protocol():
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "look", "arguments": '{"at": "train"}'},
        "index": 0,
    }
    history = conversation_of(
        message_from(one)
        for one in (
            {"role": "user", "content": "when?", "name": "Ann", "timestamp": 5, "message_id": "m1"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [call],
                "finish_reason": "tool_calls",
                "reasoning": "hm",
                "reasoning_content": "hm",
                "reasoning_details": [{"type": "x"}],
            },
            {"role": "tool", "tool_call_id": "call_1", "tool_name": "look", "content": "at six"},
            {"role": "assistant", "content": "At six.", "api_content": "At six!"},
            {"role": "user", "content": "thanks"},
        )
    )
    assert set(history[1]) > KNOWN["assistant"]
    messages = asked(*history)["messages"]
    assert messages == [
        {"role": "user", "content": "when?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "look", "arguments": '{"at": "train"}'},
                }
            ],
        },
        {"role": "tool", "content": "at six", "tool_call_id": "call_1"},
        {"role": "assistant", "content": "At six!"},
        {"role": "user", "content": "thanks"},
    ]
    assert [set(row) - KNOWN[row["role"]] for row in messages] == [set()] * 5


@pytest.mark.parametrize(
    ("call", "function"),
    [
        (
            {"id": "1", "function": {"name": "a", "arguments": {"b": 1}}},
            {"name": "a", "arguments": '{"b":1}'},
        ),
        ({"id": "1", "name": "a", "arguments": "{}"}, {"name": "a", "arguments": "{}"}),
        ({"id": "1"}, {"name": "unnamed", "arguments": "{}"}),
    ],
)
def test_calls_that_were_written_differently_are_calls(call: dict, function: dict):
    [row] = asked({"role": "assistant", "content": "", "tool_calls": [call]})["messages"]
    assert row["tool_calls"] == [{"id": "1", "type": "function", "function": function}]


PHOTO = {"type": "attachment", "kind": "photo", "url": "https://platform.example/token/1.jpg"}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}


@pytest.mark.parametrize(
    ("content", "goes_out"),
    [
        ("hello", "hello"),
        (None, "[empty message]"),
        ([{"type": "unheard_of"}], "[empty message]"),
        ([{"type": "text", "text": "look"}, PHOTO], "look\n[photo: unnamed]"),
        ([{**PHOTO, "name": "cat.jpg"}], "[photo: cat.jpg]"),
        ([{"type": "text", "text": "look"}, IMAGE], [{"type": "text", "text": "look"}, IMAGE]),
        ([PHOTO, IMAGE, {"type": "text", "text": ""}], [{"type": "text", "text": "[photo: unnamed]"}, IMAGE]),
    ],
)
def test_what_came_with_the_words_of_a_person_is_named_or_goes_along(content: object, goes_out: object):
    [row] = asked({"role": "user", "content": content})["messages"]
    assert row == {"role": "user", "content": goes_out}


def test_where_an_attachment_lies_is_told_to_nobody():
    assert "platform.example" not in str(asked({"role": "user", "content": [PHOTO]}))


def test_an_assistant_and_a_tool_say_text():
    rows = asked(
        {"role": "assistant", "content": [{"type": "text", "text": "a"}, PHOTO]},
        {"role": "tool", "content": [{"type": "text", "text": "b"}], "tool_call_id": "1"},
    )["messages"]
    assert [row["content"] for row in rows] == ["a\n[photo: unnamed]", "b"]
