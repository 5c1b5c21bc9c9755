"""Whatever became of a transcript, a provider accepts what goes to the model.

The validator says what providers ask for; it was written without looking at how conversations are made.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateway_sessions import Message
from gateway_sessions.core.transcript.messages import message_from, text_of
from gateway_sessions.core.transcript.model_history import (
    INTERRUPTED,
    UNANSWERED,
    conversation_of,
    model_rows,
)
from gateway_sessions.transcripts import Hidden

IDS = st.sampled_from(["a", "b", "c", "", None, 7])
CONTENTS = st.sampled_from(
    [None, "", " ", "text", "two\nlines", [], [{"type": "text", "text": "part"}], {"type": "image"}]
)
HIDDEN = st.sampled_from([None, None, None, None, *Hidden])
CALLS = st.one_of(
    st.none(),
    st.lists(
        st.one_of(
            st.builds(lambda one: {"id": one, "function": {"name": "f"}}, IDS), st.just("odd"), st.just({})
        ),
        max_size=3,
    ),
)
NAMES = st.sampled_from([{}, {}, {"name": "bob"}])
MESSAGES = st.one_of(
    st.builds(Message, st.just("user"), CONTENTS, observed=st.booleans(), hidden_because=HIDDEN, extra=NAMES),
    st.builds(Message, st.just("assistant"), CONTENTS, tool_calls=CALLS, hidden_because=HIDDEN),
    st.builds(
        Message,
        st.just("tool"),
        CONTENTS,
        tool_call_id=IDS.filter(lambda one: one != 7),
        hidden_because=HIDDEN,
    ),
    st.builds(Message, st.sampled_from(["system", "session_meta", "odd"]), CONTENTS),
)
TRANSCRIPTS = st.lists(MESSAGES, max_size=14)


def numbered(messages: list[Message]) -> list[Message]:
    return [one.altered(message_id=at, seq=at) for at, one in enumerate(messages, start=1)]


def says_something(content: Any) -> bool:
    return bool(content.strip() if isinstance(content, str) else content)


def accept(rows: list[dict[str, Any]]) -> None:
    """Fail unless a provider would take this history."""
    walk: Iterator[dict[str, Any]] = iter([*rows, {"role": "end"}])
    row = next(walk)
    expected = "user"
    while row["role"] != "end":
        assert row["role"] == expected
        assert "observed" not in row
        if expected == "user":
            assert says_something(row["content"])
            expected, row = "assistant", next(walk)
            continue
        calls = [call["id"] for call in row.get("tool_calls", [])]
        assert calls or says_something(row["content"])
        assert len(set(calls)) == len(calls)
        assert all(isinstance(one, str) and one for one in calls)
        answered = []
        row = next(walk)
        while row["role"] == "tool":
            assert row["content"] is not None
            answered.append(row["tool_call_id"])
            row = next(walk)
        assert sorted(answered) == sorted(calls)
        expected = "assistant" if calls and row["role"] != "end" else "user"


@settings(deadline=None, max_examples=150)
@given(TRANSCRIPTS, st.integers(0, 15) | st.none())
@example([Message("user", "a"), Message("assistant", tool_calls=[{"id": "a"}]), Message("user", "b")], None)
def test_a_provider_accepts_what_is_left_of_any_transcript(messages: list[Message], limit: int | None):
    rows = conversation_of(numbered(messages), limit=limit)
    accept(rows)
    assert conversation_of(numbered(messages), limit=limit) == rows


@settings(deadline=None, max_examples=100)
@given(TRANSCRIPTS)
def test_what_goes_to_a_model_goes_to_it_unchanged_the_next_time(messages: list[Message]):
    rows = conversation_of(numbered(messages))
    assert conversation_of([message_from(row) for row in rows]) == rows


@settings(deadline=None, max_examples=100)
@given(TRANSCRIPTS)
def test_nothing_that_was_said_is_lost_and_nothing_hidden_is_shown(messages: list[Message]):
    told = [
        one.altered(content=f"<{at}>", extra={})
        if one.role in {"user", "assistant"}
        else one.altered(content="")
        for at, one in enumerate(messages)
    ]
    rows = conversation_of(numbered(told))
    shown = "\n".join(text_of(row["content"]) for row in rows)
    last_turn = max((at for at, one in enumerate(told) if is_turn(one)), default=-1)
    for at, one in enumerate(told):
        if one.role in {"user", "assistant"} and one.active and (at < last_turn or not one.observed):
            assert shown.count(f"<{at}>") == 1
        elif not one.active:
            assert f"<{at}>" not in shown


def is_turn(one: Message) -> bool:
    return one.role == "user" and one.active and not one.observed


TURNS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.booleans()), max_size=4)


def lived(turns: list[tuple[int, int, bool]]) -> list[Message]:
    """A transcript that nothing ever happened to."""
    ids = itertools.count()
    said: list[Message] = []
    for rounds, calls, reasons in turns:
        said.append(Message("user", "ask", platform_message_id=str(next(ids))))
        for _ in range(rounds):
            made = [{"id": f"c{next(ids)}", "function": {"name": "f"}} for _ in range(calls + 1)]
            said.append(Message("assistant", None, tool_calls=made, finish_reason="tool_calls"))
            said += [Message("tool", "ok", tool_call_id=one["id"], tool_name="f") for one in reversed(made)]
        said.append(Message("assistant", "answer", reasoning="hm" if reasons else None))
    return said


@settings(deadline=None)
@given(TURNS)
def test_a_transcript_that_nothing_happened_to_comes_out_as_it_is(turns: list[tuple[int, int, bool]]):
    said = lived(turns)
    rows = conversation_of(said)
    assert [message_from(row) for row in rows] == said


@settings(deadline=None)
@given(TURNS, st.data())
def test_wherever_a_transcript_breaks_off_what_follows_is_a_turn_of_its_own(
    turns: list[tuple[int, int, bool]], data: st.DataObject
):
    said = lived(turns)
    cut = data.draw(st.integers(0, len(said)))
    rows = conversation_of([*said[:cut], Message("user", "next"), Message("assistant", "yes")])
    accept(rows)
    assert [row["content"] for row in rows[-2:]] == ["next", "yes"]
    stored = [message_from(row) for row in rows if row["content"] not in {UNANSWERED, INTERRUPTED}]
    assert stored[:-2] == said[:cut]


KNOWN = {
    "user": {"role", "content"},
    "assistant": {"role", "content", "tool_calls"},
    "tool": {"role", "content", "tool_call_id"},
}


@given(TRANSCRIPTS)
def test_the_rows_of_an_agent_have_no_member_that_a_strict_endpoint_refuses(messages):
    rows = model_rows(conversation_of(numbered(messages)))
    accept(rows)
    for row in rows:
        assert set(row) <= KNOWN[row["role"]]
        for call in row.get("tool_calls", ()):
            assert set(call) == {"id", "type", "function"}
            assert isinstance(call["function"]["arguments"], str)
    assert model_rows(rows) == rows
