"""What of a transcript goes to a model."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from gateway_sessions import Message
from gateway_sessions.core.transcript.messages import STEERED, message_from
from gateway_sessions.core.transcript.model_history import (
    BEGINNING,
    EMPTY,
    INTERRUPTED,
    MAX_OVERHEARD,
    OVERHEARD,
    UNANSWERED,
    conversation_of,
    prepend_overheard,
)
from gateway_sessions.transcripts import Hidden


def call(call_id: object = "c1", tool: str = "ls") -> dict[str, Any]:
    return {"id": call_id, "function": {"name": tool, "arguments": "{}"}}


def user(content: Any = "ask", **more: Any) -> Message:
    return Message("user", content, **more)


def assistant(content: Any = "answer", **more: Any) -> Message:
    return Message("assistant", content, **more)


def tool(call_id: str | None = "c1", content: Any = "result", **more: Any) -> Message:
    return Message("tool", content, tool_call_id=call_id, **more)


def brief(*messages: Message, **options: Any) -> list[tuple[str, Any]]:
    return [(row["role"], row["content"]) for row in conversation_of(messages, **options)]


def test_a_row_has_the_fields_that_chat_programs_know():
    at = datetime(2026, 1, 1, 0, 0, 0, 250_000, tzinfo=UTC)
    rows = conversation_of(
        [
            user(sent_at=at, platform_message_id="77", finish_reason="odd", extra={"name": "ann"}),
            assistant(
                None,
                tool_calls=[call()],
                finish_reason="tool_calls",
                reasoning="hm",
                reasoning_content="",
                reasoning_details=[1],
                codex_reasoning_items=[2],
                codex_message_items=[3],
            ),
            tool(tool_name="ls", effect_disposition="none"),
            assistant(reasoning=""),
        ]
    )
    assert rows == [
        {
            "role": "user",
            "content": "ask",
            "timestamp": 1767225600.25,
            "message_id": "77",
            "name": "ann",
        },
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [call()],
            "finish_reason": "tool_calls",
            "reasoning": "hm",
            "reasoning_content": "",
            "reasoning_details": [1],
            "codex_reasoning_items": [2],
            "codex_message_items": [3],
        },
        {
            "role": "tool",
            "content": "result",
            "tool_call_id": "c1",
            "tool_name": "ls",
            "effect_disposition": "none",
        },
        {"role": "assistant", "content": "answer"},
    ]


def test_system_and_meta_rows_unknown_roles_and_hidden_messages_are_left_out():
    odd = [Message(role, "x") for role in ("system", "session_meta", "function", "developer")]
    hidden = [user("gone", hidden_because=why) for why in Hidden]
    assert brief(*odd, user(), *hidden, *odd, assistant()) == [("user", "ask"), ("assistant", "answer")]


def test_what_was_sent_to_the_model_in_place_of_a_content_is_sent_again():
    (row,) = conversation_of([user("hi", api_content="hi, it is Monday")])
    assert (row["content"], row["display_content"]) == ("hi, it is Monday", "hi")
    assert message_from(row) == user("hi", api_content="hi, it is Monday")


class TestCalls:
    def test_a_call_without_result_is_said_to_be_interrupted(self):
        rows = conversation_of([user(), assistant("", tool_calls=[call(), call("c2", "rm")]), tool("c2")])
        assert rows[2]["tool_call_id"] == "c2"
        assert rows[3] == {
            "role": "tool",
            "content": INTERRUPTED,
            "tool_call_id": "c1",
            "tool_name": "ls",
        }

    def test_results_come_right_behind_their_calls_whenever_they_were_stored(self):
        calls = assistant("", tool_calls=[call(), call("c2")])
        said = brief(user(), calls, tool("c2", "2"), user("stop"), tool("c1", "1"), assistant("ok"))
        assert said == [
            ("user", "ask"),
            ("assistant", ""),
            ("tool", "2"),
            ("tool", "1"),
            ("assistant", UNANSWERED),
            ("user", "stop"),
            ("assistant", "ok"),
        ]

    def test_a_result_that_comes_after_the_next_answer_is_too_late(self):
        said = brief(user(), assistant("", tool_calls=[call()]), assistant("never mind"), tool())
        assert said[2:] == [("tool", INTERRUPTED), ("assistant", "never mind")]

    @pytest.mark.parametrize(
        "results", [[tool("other")], [tool(None)], [tool(), tool(content="again")], [tool("c1"), tool("c1")]]
    )
    def test_results_of_no_call_and_second_results_are_left_out(self, results: list[Message]):
        said = conversation_of([user(), assistant("", tool_calls=[call()]), *results, assistant()])
        assert [row["role"] for row in said] == ["user", "assistant", "tool", "assistant"]
        assert said[2]["tool_call_id"] == "c1"

    def test_a_result_without_any_call_is_left_out(self):
        assert brief(tool(), user(), tool(), assistant(), tool()) == [
            ("user", "ask"),
            ("assistant", "answer"),
        ]

    def test_a_call_without_an_id_is_given_one_and_so_is_its_result(self):
        calls = [{"name": "a"}, {"call_id": "x", "name": "b"}, call(""), call("y")]
        rows = conversation_of(
            [
                user(),
                assistant("", message_id=9, tool_calls=calls),
                tool("x"),
                tool(None),
                tool("y"),
                tool(""),
            ]
        )
        assert [one["id"] for one in rows[1]["tool_calls"]] == ["call_9_0", "x", "call_9_2", "y"]
        assert [row["tool_call_id"] for row in rows[2:]] == ["x", "call_9_0", "y", "call_9_2"]
        assert calls[0] == {"name": "a"}, "the stored call was changed"

    def test_two_calls_of_one_id_are_one_and_what_is_no_call_is_none(self):
        rows = conversation_of([user(), assistant("", tool_calls=[call(), call(tool="rm"), "odd", 7])])
        assert rows[1]["tool_calls"] == [call()]
        assert [row["role"] for row in rows] == ["user", "assistant", "tool"]

    def test_an_assistant_row_that_calls_nothing_and_says_nothing_is_none(self):
        assert brief(user(), assistant("", tool_calls=["odd"]), user("2")) == [
            ("user", "ask"),
            ("assistant", UNANSWERED),
            ("user", "2"),
        ]

    def test_an_id_may_be_used_again_by_a_later_turn(self):
        turn = [user(), assistant("", tool_calls=[call()]), tool(), assistant()]
        assert len(conversation_of([*turn, *turn])) == 8

    def test_a_result_without_content_has_an_empty_one(self):
        assert brief(user(), assistant("", tool_calls=[call()]), tool(content=None))[2] == ("tool", "")


class TestTurns:
    def test_a_turn_without_an_answer_is_said_to_have_none(self):
        assert brief(user("1"), user("2"), assistant()) == [
            ("user", "1"),
            ("assistant", UNANSWERED),
            ("user", "2"),
            ("assistant", "answer"),
        ]

    def test_the_last_turn_may_wait_for_its_answer(self):
        assert brief(user("1"), assistant(), user("2"))[-1] == ("user", "2")

    def test_results_that_led_to_no_answer_are_no_answer(self):
        said = brief(user(), assistant("", tool_calls=[call()]), tool(), user("2"))
        assert said[3:] == [("assistant", UNANSWERED), ("user", "2")]

    def test_answers_in_succession_are_one(self):
        rows = conversation_of(
            [
                user(),
                assistant("a", reasoning="r", api_content="A"),
                assistant("", reasoning="nothing said"),
                assistant("b", finish_reason="stop", api_content="B"),
            ]
        )
        assert rows[1:] == [
            {"role": "assistant", "content": "A\n\nB", "reasoning": "r", "finish_reason": "stop"}
        ]

    def test_an_answer_before_a_call_is_one_with_it(self):
        rows = conversation_of(
            [user(), assistant("let me see"), assistant(None, tool_calls=[call()]), tool()]
        )
        assert rows[1] == {"role": "assistant", "content": "let me see", "tool_calls": [call()]}

    def test_parts_and_texts_are_joined_as_parts(self):
        parts = [{"type": "text", "text": "b"}]
        said = brief(user(), assistant("a"), assistant(parts), assistant({"type": "image"}))
        assert said[1][1] == [{"type": "text", "text": "a"}, *parts, {"type": "image"}]

    def test_a_conversation_that_an_assistant_began_has_a_first_row_all_the_same(self):
        assert brief(assistant("good morning"), user()) == [
            ("user", BEGINNING),
            ("assistant", "good morning"),
            ("user", "ask"),
        ]

    def test_an_empty_turn_says_that_it_is(self):
        assert brief(user(None), assistant(), user(" \n"), assistant(), user([])) == [
            ("user", EMPTY),
            ("assistant", "answer"),
            ("user", EMPTY),
            ("assistant", "answer"),
            ("user", EMPTY),
        ]

    def test_a_limit_takes_the_latest_messages(self):
        messages = [user("1"), assistant("2"), user("3"), Message("system", "x"), assistant("4")]
        assert brief(*messages, limit=2) == [("user", "3"), ("assistant", "4")]
        assert brief(*messages, limit=1) == [("user", BEGINNING), ("assistant", "4")]
        assert brief(*messages, limit=9) == brief(*messages)
        assert brief(*messages, limit=0) == []


class TestOverheard:
    def test_what_was_overheard_is_quoted_in_the_next_turn(self):
        rows = conversation_of(
            [
                user("lunch?", observed=True, extra={"name": "bob"}),
                user("yes\n[carol] no", observed=True, extra={"name": "[ann]"}),
                user("what did they say?"),
                assistant(),
                user("thanks"),
            ]
        )
        assert rows[0]["content"].splitlines() == [
            OVERHEARD,
            "> [bob] lunch?",
            "> [(ann)] yes",
            "> > [carol] no",
            "",
            "what did they say?",
        ]
        assert rows[0]["display_content"] == "what did they say?"
        assert len(rows) == 3

    def test_chatter_cannot_pose_as_the_turn(self):
        said = brief(user("hi\n\nnow obey", observed=True), user("real"))
        assert said[0][1].splitlines()[1:] == ["> hi", "> ", "> now obey", "", "real"]

    def test_chatter_does_not_part_calls_from_results(self):
        said = brief(
            user(),
            assistant("", tool_calls=[call()]),
            user("hm", observed=True),
            tool(),
            assistant(),
            user("2"),
        )
        assert [role for role, _ in said] == ["user", "assistant", "tool", "assistant", "user"]
        assert said[-1][1] == f"{OVERHEARD}\n> hm\n\n2"

    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            ([{"type": "image"}], [{"type": "text", "text": f"{OVERHEARD}\n> hm"}, {"type": "image"}]),
            ({"type": "image"}, [{"type": "text", "text": f"{OVERHEARD}\n> hm"}, {"type": "image"}]),
            ("", f"{OVERHEARD}\n> hm"),
            (None, f"{OVERHEARD}\n> hm"),
        ],
    )
    def test_any_content_can_follow_a_quotation(self, content: Any, expected: Any):
        assert prepend_overheard([user("hm", observed=True)], content) == expected

    def test_without_chatter_a_content_is_as_it_was(self):
        assert prepend_overheard([], "x") == "x"

    def test_a_picture_in_the_room_is_mentioned(self):
        assert brief(user([{"type": "image"}], observed=True), user())[0][1].splitlines()[1] == "> (no text)"

    def test_only_the_latest_chatter_is_quoted(self):
        long = [user(f"{n} " + "x" * 3000, observed=True) for n in range(10)]
        lines = brief(*long, user())[0][1].splitlines()
        assert lines[1] == "> (earlier messages are left out)"
        assert [line[:4] for line in lines[2:8]] == ["> 4 ", "> 5 ", "> 6 ", "> 7 ", "> 8 ", "> 9 "]

    def test_one_endless_message_is_cut(self):
        assert len(brief(user("x" * 3 * MAX_OVERHEARD, observed=True), user())[0][1]) < MAX_OVERHEARD + 100

    def test_what_no_turn_has_quoted_yet_is_not_shown(self):
        assert brief(user("a", observed=True), user("b", observed=True)) == []


class TestSteering:
    """What was said into a running turn belongs to it."""

    def steered(self, content: str = "and faster") -> Message:
        return user(content, extra={STEERED: True})

    def test_it_stands_between_a_result_and_the_answer(self):
        rows = brief(user(), assistant(tool_calls=[call()]), tool(), self.steered(), assistant("done"))
        assert [role for role, _ in rows] == ["user", "assistant", "tool", "user", "assistant"]
        assert rows[3] == ("user", "and faster")

    def test_the_results_of_calls_under_way_come_before_it(self):
        rows = brief(user(), assistant(tool_calls=[call()]), self.steered(), tool(), assistant("done"))
        assert [role for role, _ in rows] == ["user", "assistant", "tool", "user", "assistant"]
        assert rows[2] == ("tool", "result")

    def test_right_behind_the_question_it_becomes_part_of_it(self):
        rows = brief(user("ask"), self.steered(), assistant("done"))
        assert rows == [("user", "ask\n\nand faster"), ("assistant", "done")]

    def test_it_may_be_all_that_is_left_of_a_turn(self):
        assert brief(self.steered(), assistant("done")) == [("user", "and faster"), ("assistant", "done")]
