"""A message as a row."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from gateway_sessions import Message
from gateway_sessions.storage.tables.message_rows import MessageColumns, encode_message
from gateway_sessions.transcripts import Hidden

NOW = datetime(2026, 1, 2, tzinfo=UTC)
TEXT: dict[str, Any] = {
    "role": "user",
    "content": "hello",
    "sent_at": NOW,
    "platform_message_id": "p1",
    "observed": True,
    "author": "main:telegram:user:1",
    "from_lane": "agent:main:telegram:dm:1",
}
OTHERS: dict[str, Any] = {
    "content": [{"text": "hello"}],
    "tool_call_id": "c1",
    "tool_name": "terminal",
    "effect_disposition": "done",
    "token_count": 0,
    "finish_reason": "stop",
    "reasoning": "",
    "reasoning_content": "so",
    "tool_calls": [{"id": "c1"}],
    "reasoning_details": [],
    "codex_reasoning_items": 0,
    "codex_message_items": False,
    "api_content": "hello!",
    "hidden_because": Hidden.REWOUND,
    "edited_at": NOW,
    "platform_messages": [{"id": "1", "text": "a"}, {"id": "2", "text": "b"}],
    "people": ("main:telegram:user:1", "main:telegram:user:2"),
    "extra": {"a": 1},
}


@pytest.mark.parametrize(
    "absent", ["content", "platform_message_id", "sent_at", "observed", "author", "from_lane"]
)
def test_nothing_but_text_has_few_columns(absent: str):
    message = Message(**{name: value for name, value in TEXT.items() if name != absent})
    content, name = message.content, message.platform_message_id
    whose = (message.author, message.from_lane)
    expected = ("user", content, 1_767_312_000_000_000, name, int(message.observed), *whose)
    stored = encode_message(message, NOW)
    assert stored.stored == expected
    *others, extra, author, from_lane, people = encode_message(message.altered(extra={"a": 1}), NOW).columns
    assert stored.columns == (*others, None, author, from_lane, people)
    assert (extra, author, from_lane, people) == ('{"a":1}', *whose, None)


@pytest.mark.parametrize("name", OTHERS)
def test_whatever_else_there_is_needs_all_columns(name: str):
    assert isinstance(encode_message(Message(**{**TEXT, name: OTHERS[name]}), NOW).stored, MessageColumns)


def test_no_member_is_forgotten():
    known = {*TEXT, *OTHERS, "message_id", "session_id", "seq"}
    assert {field.name for field in msgspec.structs.fields(Message)} == known
