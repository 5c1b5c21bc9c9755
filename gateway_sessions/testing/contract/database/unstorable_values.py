"""Contract tests of values that no database or JSON can hold: replaced and reported, or refused."""

from __future__ import annotations

import logging
from typing import Any, Final

import pytest

from gateway_sessions import InvalidInputError, Message, SessionDB
from gateway_sessions.testing.contract.database.bench import DatabaseContract


def nested(depth: int) -> list[Any]:
    """Return lists that are nested so deep."""
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


class Markup(str):
    """A text of the kind that template engines return: it joins and prints in its own way."""

    __slots__ = ()

    def __str__(self) -> str:
        return "printed"

    def __add__(self, other: object) -> Markup:
        return Markup(f"{other!r}")


class Tokens(int):
    """A number of the kind that model libraries return: it tells how it was counted."""


class PoisonContract(DatabaseContract):
    """Tests values that would break a database or a file."""

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

    async def test_values_of_derived_classes_are_stored_as_what_they_hold(self, db: SessionDB) -> None:
        text = Markup("<b>")
        await db.create_session(
            Markup("s"), Markup("cli"), user_id=Markup("alice"), model=text, extra={"x": [text]}
        )
        await db.append_messages(
            Markup("s"),
            [
                Message(Markup("user"), text, platform_message_id=text, extra={text: text, "n": Tokens(3)}),
                {"role": "assistant", "content": [{"type": "text", "text": text}], "token_count": Tokens(7)},
            ],
        )
        await db.edit_message("s", text, Markup("<i>"))
        await db.set_session_title("s", text)
        await db.record_usage("s", Markup("e"), model=text, input_tokens=Tokens(5))
        first, second = await db.get_messages("s")
        assert (first.role, first.content, first.extra) == ("user", "<i>", {"<b>": "<b>", "n": 3})
        assert (second.content, second.token_count) == ([{"type": "text", "text": "<b>"}], 7)
        record = await db.get_session("s")
        assert record is not None
        assert (record.title, record.user_id, record.extra["x"]) == ("<b>", "alice", ["<b>"])
