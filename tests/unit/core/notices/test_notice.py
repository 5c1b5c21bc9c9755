"""A notice carries a code and its arguments, and other words need nothing else."""

from __future__ import annotations

import copy
import pickle
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gateway_sessions
from gateway_sessions import InvalidInputError
from gateway_sessions.core.delivery.adapter_capabilities import AdapterCapabilities
from gateway_sessions.core.delivery.message_parts import cut_to_fit, split_message
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage
from gateway_sessions.core.notices.notice import Notice, notice_in, notice_message
from gateway_sessions.core.notices.notice_texts import FAILED, refusal_notice
from gateway_sessions.core.queue.inbound import RejectReason
from gateway_sessions.core.storable_text import record_as_json
from tests.unit.core.notices.every_notice import every_notice, words_of

PACKAGE = Path(gateway_sessions.__file__).parent
OF_PEOPLE = {
    *("title", "text", "first_text", "preview", "wanted", "user_name"),  # what people wrote
    *("doing", "model", "zone"),  # what a program or its configuration says
    *("summary", "usage"),  # what a command declares; its name stands beside it, for other words
}
EVERY = every_notice()
CODES = sorted({one.code for one in EVERY})
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def stored(notice: str) -> OutboundMessage:
    """The message that tells a notice, as the database gives it back."""
    return msgspec.json.decode(record_as_json("reply", notice_message(notice), {}), type=OutboundMessage)


@pytest.mark.parametrize("code", CODES)
def test_the_words_can_be_made_of_the_code_and_the_arguments(code: str):
    for notice in (one for one in EVERY if one.code == code):
        assert words_of(notice) == notice


def test_every_code_of_the_package_is_among_them():
    source = "".join(path.read_text("utf-8") for path in PACKAGE.rglob("*.py"))
    made = set(re.findall(r"\bNotice\(\s*\"([a-z_]+)\"", source))
    assert made <= set(CODES)


def test_no_argument_is_a_sentence_of_ours():
    found = {
        (notice.code, name, text)
        for notice in EVERY
        for name, text in texts_in(notice.arguments)
        if name not in OF_PEOPLE and len(text.split()) > 1
    }
    assert found == set(), "only a text of people may have more than one word"


def texts_in(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield all texts of arguments, each with the name of the member that it is."""
    for name, value in arguments.items():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict):
                yield from texts_in(one)
            elif isinstance(one, str):
                yield name, one


def test_code_words_and_arguments_survive_storing():
    for notice in EVERY:
        message = stored(notice)
        again = notice_in(message)
        assert again is not None
        assert (again, again.code, again.arguments) == (notice, notice.code, notice.arguments)
        assert message == notice_message(notice)
        assert message.is_notice


def test_the_arguments_of_a_code_have_the_same_names_each_time():
    names: dict[str, set[frozenset[str]]] = defaultdict(set)
    for notice in EVERY:
        names[notice.code].add(frozenset(notice.arguments))
    assert {code: found for code, found in names.items() if len(found) > 1} == {}


def test_the_code_of_a_refusal_is_its_reason():
    assert [refusal_notice(reason).code for reason in RejectReason] == list(RejectReason)


@given(st.text(), st.dictionaries(st.text(min_size=1), JSON, max_size=4))
def test_arguments_of_all_kinds_survive_storing(text: str, arguments: dict[str, Any]):
    notice = Notice("mine", text, **arguments)
    again = notice_in(stored(notice))
    assert again is not None
    assert again.arguments == notice.arguments


class Colour(StrEnum):
    RED = "red"


class Loud(str):
    """A text with methods of its own, as libraries have them."""

    __slots__ = ()

    def __str__(self) -> str:
        return "LOUD"


def test_arguments_become_values_of_json():
    at = datetime(2026, 6, 10, tzinfo=UTC)
    notice = Notice("mine", Loud("words"), at=at, pair=(1, 2), colour=Colour.RED, name=Loud("ann\x00"))
    assert notice == "words"
    assert notice.arguments == {
        "at": "2026-06-10T00:00:00Z",
        "pair": [1, 2],
        "colour": "red",
        "name": "ann\ufffd",
    }
    assert type(notice.arguments["name"]) is str


@pytest.mark.parametrize("given", [object(), {1: object()}, float("nan"), [float("inf")]])
def test_what_json_cannot_hold_is_refused_where_the_notice_is_made(given: object):
    with pytest.raises(InvalidInputError):
        Notice("mine", "words", given=given)


@pytest.mark.parametrize("code", ["", "two\nlines", "x" * 65])
def test_a_code_is_one_short_word(code: str):
    with pytest.raises(InvalidInputError):
        Notice(code, "words")


def test_an_argument_may_be_called_like_anything():
    notice = Notice("mine", "words", code=1, text=2, cls=3)
    assert notice.arguments == {"code": 1, "text": 2, "cls": 3}


def test_copies_are_the_same_notice():
    notice = Notice("mine", "words", length=timedelta(seconds=1).total_seconds())
    for again in (copy.copy(notice), copy.deepcopy(notice), pickle.loads(pickle.dumps(notice))):  # noqa: S301 -- our own
        assert (again, again.code, again.arguments) == (notice, notice.code, notice.arguments)
    assert repr(notice) == "Notice('mine', 'words', length=1.0)"


def test_a_text_of_the_program_is_a_notice_without_a_code():
    message = notice_message("pong", replaces="9")
    assert message == OutboundMessage(text="pong", is_notice=True, replaces="9")
    assert notice_in(message) is None


def test_what_is_sent_has_a_plain_text():
    assert type(notice_message(FAILED).text) is str
    assert type(OutboundMessage(text=FAILED).text) is str


def test_an_older_node_reads_a_notice_as_before():
    class Older(msgspec.Struct):
        text: str = ""
        is_notice: bool = False

    old = msgspec.json.decode(record_as_json("reply", notice_message(FAILED), {}), type=Older)
    assert (old.text, old.is_notice) == (FAILED, True)
    bare = msgspec.json.decode(record_as_json("reply", notice_message("pong"), {}))
    assert bare == {"text": "pong", "is_notice": True}


def test_parts_of_a_long_notice_keep_their_code_and_are_not_worded_again():
    able = AdapterCapabilities(max_length=64, idempotent_for=timedelta.max)
    parts = split_message(notice_message(FAILED), able)
    assert len(parts) > 1
    assert {(one.notice_code, one.worded, one.is_notice) for one in parts} == {("failed", True, True)}
    (whole,) = split_message(notice_message(FAILED), AdapterCapabilities())
    assert not whole.worded


def test_what_is_one_message_and_stays_one_is_cut():
    able = AdapterCapabilities(max_length=64, idempotent_for=timedelta.max)
    short = notice_message(FAILED, replaces="9")
    cut = cut_to_fit(short, able)
    assert 0 < len(cut.text) <= 64
    assert FAILED.startswith(cut.text)
    assert cut.replaces == "9"
    assert cut_to_fit(short, AdapterCapabilities()) is short
