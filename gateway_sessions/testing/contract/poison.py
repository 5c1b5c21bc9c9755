"""What no database or JSON can hold is replaced in a way that is told, or refused."""

from __future__ import annotations

import logging
from typing import Any, Final

import pytest

from gateway_sessions import InvalidInputError, SessionDB
from gateway_sessions.testing.contract.database import DatabaseContract


def nested(depth: int) -> list[Any]:
    """A list in a list, and so on."""
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


CIRCLE: Final[list[Any]] = []
CIRCLE.append(CIRCLE)
UNSTORABLE: Final[dict[str, dict[str, Any]]] = {
    "nan": {"content": [float("nan")]},
    "infinity": {"content": {"x": float("-inf")}},
    "deep": {"content": [nested(64)]},
    "endless": {"content": nested(5000)},
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


class PoisonContract(DatabaseContract):
    """Values that break a database or a file, if they get there."""

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
        self, db: SessionDB, session: str, caplog: pytest.LogCaptureFixture, given: Any, stored: Any
    ) -> None:
        caplog.set_level(logging.WARNING)
        await db.append_message(session, "user", given)
        (message,) = await db.get_messages(session)
        assert message.content == stored
        assert [getattr(one, "action", None) for one in caplog.records] == ["text_replaced"]

    @pytest.mark.parametrize("text", ["\\u0000", "\\\\u0000", "😀", "a\u2028"])
    async def test_what_only_looks_unstorable_is_left_alone(
        self, db: SessionDB, session: str, caplog: pytest.LogCaptureFixture, text: str
    ) -> None:
        await db.append_message(session, "user", [text])
        await db.append_message(session, "user", text)
        assert [one.content for one in await db.get_messages(session)] == [[text], text]
        assert not caplog.records

    async def test_what_cannot_be_stored_truly_is_refused(self, db: SessionDB, session: str) -> None:
        for name, members in UNSTORABLE.items():
            with pytest.raises(InvalidInputError):
                await db.append_messages(session, [{"role": "user", **members}])
            assert await db.get_messages(session) == [], name

    async def test_what_is_no_message_is_refused(self, db: SessionDB, session: str) -> None:
        no_messages: list[Any] = [{"content": "x"}, "text", None, ["role", "user"]]
        for given in no_messages:
            with pytest.raises(InvalidInputError):
                await db.append_messages(session, [given])

    async def test_a_message_of_ten_megabytes_comes_back(self, db: SessionDB, session: str) -> None:
        text = "long " * (2 << 20)
        await db.append_message(session, "tool", text)
        assert (await db.get_messages(session))[0].content == text

    async def test_one_call_that_is_not_in_a_list_is_a_list_of_one(self, db: SessionDB, session: str) -> None:
        await db.append_messages(session, [{"role": "assistant", "tool_calls": {"id": "a"}}])
        assert (await db.get_messages(session))[0].tool_calls == [{"id": "a"}]
