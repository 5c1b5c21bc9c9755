"""What people are reminded of when they come back."""

import pytest

from gateway_sessions.core.transcript.messages import Hidden, Message
from gateway_sessions.core.transcript.recap import ASSISTANT, MOST, USER, make_recap


def texts(*messages: Message) -> list[str]:
    return [one.text for one in make_recap(messages).lines]


def test_only_what_a_person_and_an_agent_said_is_shown():
    shown = texts(
        Message("system", "be kind"),
        Message("user", "hello"),
        Message("tool", "result"),
        Message("session_meta", "facts"),
        Message("user", "taken back", hidden_because=Hidden.REWOUND),
        Message("assistant", "<think>hm</think>hi"),
        Message("assistant", ""),
    )
    assert shown == ["hello", "hi"]


@pytest.mark.parametrize(
    "thought", ["<think>a</think>", "<THINKING x='1'>a\nb</THINKING>", "<reasoning>never ends"]
)
def test_thoughts_are_not_shown(thought: str):
    assert texts(Message("assistant", f"so {thought}")) == ["so"]


def test_long_texts_are_cut_but_for_the_last_answer():
    long = "x" * 1000
    shown = texts(Message("user", long), Message("assistant", long), Message("assistant", long))
    assert [len(one) for one in shown] == [USER, ASSISTANT, 1000]


def test_an_earlier_answer_has_at_most_three_lines():
    lines = "\n".join("abcde")
    assert texts(Message("assistant", lines), Message("assistant", lines)) == ["a\nb\nc...", lines]


def test_tool_calls_are_a_number_and_names():
    calls = [{"function": {"name": name}} for name in ("a", "b", "b", "c", "d", "e")]
    assert texts(Message("assistant", "look", tool_calls=calls)) == ["look [6 tool calls: a, b, c, d…]"]
    assert texts(Message("assistant", None, tool_calls=[{"name": "a"}])) == ["[1 tool call: a]"]
    assert texts(Message("assistant", None, tool_calls=["damaged"])) == ["[1 tool call: ?]"]


def test_pictures_are_named():
    content = [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": "…"}, "this", 7]
    assert texts(Message("user", content)) == ["see [image] this"]


def test_what_is_left_out_is_counted():
    many = [Message("user", str(number)) for number in range(MOST + 5)]
    found = make_recap(many)
    assert (len(found.lines), found.earlier, found.lines[0].text) == (MOST, 5, "5")
    assert make_recap([]).lines == ()


def test_nothing_moves_the_cursor():
    assert texts(Message("user", "a\x1b[2Jb")) == ["a [2Jb"]
