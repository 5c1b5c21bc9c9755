"""What no database or JSON can hold is replaced in a way that is told, or refused."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from gateway_sessions import InvalidInputError, Message, SessionDB, StorageCorruptError

DEEP: list[Any] = []
for _ in range(64):
    DEEP = [DEEP]
ENDLESS: list[Any] = []
for _ in range(5000):
    ENDLESS = [ENDLESS]
CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("a\x00b", "a\ufffdb"),
        ("a\ud800b", "a\ufffdb"),
        ("\udc80\x00", "\ufffd\ufffd"),
        (["a\x00", {"k\ud800": "\udfff"}], ["a\ufffd", {"k\ufffd": "\ufffd"}]),
        ({"type": "text", "text": "\x00"}, {"type": "text", "text": "\ufffd"}),
        (("a\x00", None, True, 1.5), ["a\ufffd", None, True, 1.5]),
    ],
)
async def test_what_cannot_be_stored_of_a_text_is_replaced_and_told(
    db: SessionDB, session: str, caplog: pytest.LogCaptureFixture, given: Any, stored: Any
):
    caplog.set_level(logging.WARNING)
    await db.append_message(session, "user", given)
    (message,) = await db.get_messages(session)
    assert message.content == stored
    assert [getattr(one, "action", None) for one in caplog.records] == ["text_replaced"]


@pytest.mark.parametrize("text", ["\\u0000", "\\\\u0000", "😀", "a\u2028"])
async def test_what_only_looks_unstorable_is_left_alone(
    db: SessionDB, session: str, caplog: pytest.LogCaptureFixture, text: str
):
    await db.append_message(session, "user", [text])
    await db.append_message(session, "user", text)
    assert [one.content for one in await db.get_messages(session)] == [[text], text]
    assert not caplog.records


UNSTORABLE: dict[str, dict[str, Any]] = {
    "nan": {"content": [float("nan")]},
    "infinity": {"content": {"x": float("-inf")}},
    "deep": {"content": [DEEP]},
    "endless": {"content": ENDLESS},
    "circle": {"content": CIRCLE},
    "object": {"content": [object()]},
    "number": {"content": 5},
    "bytes": {"content": b"bytes"},
    "long": {"content": "x" * ((16 << 20) + 1)},
    "long in bytes": {"content": "ä" * ((8 << 20) + 1)},
    "calls": {"tool_calls": "ls"},
    "tokens": {"token_count": -1},
    "many tokens": {"token_count": 1 << 70},
    "name": {"tool_name": 5},
    "role": {"role": ""},
    "role of two lines": {"role": "user\n"},
    "role that is a number": {"role": 7},
    "hidden": {"hidden_because": "shy"},
    "time": {"timestamp": "yesterday"},
    "time that is a flag": {"timestamp": True},
    "time that is none": {"timestamp": float("nan")},
    "time out of the calendar": {"timestamp": 1e300},
    "time that is a list": {"timestamp": [1]},
}


async def test_what_cannot_be_stored_truly_is_refused(db: SessionDB, session: str):
    for name, members in UNSTORABLE.items():
        with pytest.raises(InvalidInputError):
            await db.append_messages(session, [{"role": "user", **members}])
        assert await db.get_messages(session) == [], name


async def test_what_is_no_message_is_refused(db: SessionDB, session: str):
    no_messages: list[Any] = [{"content": "x"}, "text", None, ["role", "user"]]
    for given in no_messages:
        with pytest.raises(InvalidInputError):
            await db.append_messages(session, [given])


async def test_a_message_of_ten_megabytes_comes_back(db: SessionDB, session: str):
    text = "long " * (2 << 20)
    await db.append_message(session, "tool", text)
    assert (await db.get_messages(session))[0].content == text


async def test_one_call_that_is_not_in_a_list_is_a_list_of_one(db: SessionDB, session: str):
    await db.append_messages(session, [{"role": "assistant", "tool_calls": {"id": "a"}}])
    assert (await db.get_messages(session))[0].tool_calls == [{"id": "a"}]


async def test_a_damaged_row_is_told_as_damage(db: SessionDB, session: str):
    await db.append_messages(session, [Message("user", "fine"), Message("user", "hurt")])
    for damage in ("sent_at = 9223372036854775807", "parts = '{'", "extra = '[]x'", "tool_calls = '[1'"):
        with closing(sqlite3.connect(db.path)) as connection:
            connection.execute(f"UPDATE messages SET {damage} WHERE content = 'hurt'")  # noqa: S608
            connection.commit()
        with pytest.raises(StorageCorruptError, match="damaged"):
            await db.get_messages(session)
    with pytest.raises(StorageCorruptError, match="damaged"):
        await db.get_messages_as_conversation(session)


async def test_a_damaged_session_is_told_as_damage(db: SessionDB, session: str):
    with closing(sqlite3.connect(db.path)) as connection:
        connection.execute("UPDATE sessions SET model_config = '{'")
        connection.commit()
    with pytest.raises(StorageCorruptError, match="damaged"):
        await db.get_session(session)
