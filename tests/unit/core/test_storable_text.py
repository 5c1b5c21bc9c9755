"""What may be stored, and what becomes of the rest."""

from __future__ import annotations

import enum
import json
from typing import Any

import pytest

from gateway_sessions import InvalidInputError
from gateway_sessions.core.damaged_json import MAX_DEPTH
from gateway_sessions.core.storable_text import MAX_TEXT_BYTES, StorableEncoder, check_choice, check_word
from gateway_sessions.sessions import Relation


def nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("text", ["", "a", "grüß", "語", "😀", "a\nb\t", "\x01\x7f\u2028"])
def test_a_text_is_stored_as_it_is_and_counted_in_bytes(text: str):
    intake = StorableEncoder()
    assert intake.text("content", text) == text
    assert (intake.size, intake.replaced) == (len(text.encode()), False)


@pytest.mark.parametrize(
    ("text", "stored"), [("\x00", "\ufffd"), ("a\ud800ä", "a\ufffdä"), ("\udfff\x00\ud800", "\ufffd" * 3)]
)
def test_what_no_database_can_hold_is_replaced(text: str, stored: str):
    intake = StorableEncoder()
    assert intake.text("content", text) == stored
    assert intake.json("content", {text: [text]}) == json.dumps(
        {stored: [stored]}, ensure_ascii=False, separators=(",", ":")
    )
    assert intake.replaced


def test_nothing_is_stored_as_nothing():
    intake = StorableEncoder()
    assert intake.text("content", None) is None
    assert intake.json("content", None) is None
    assert intake.size == 0


def test_a_text_becomes_a_plain_one():
    class Word(enum.StrEnum):
        A = "a"

    assert type(StorableEncoder().text("content", Word.A)) is str


@pytest.mark.parametrize("value", [5, b"x", ["x"], True])
def test_what_is_no_text_is_refused(value: object):
    with pytest.raises(InvalidInputError, match="content must be text"):
        StorableEncoder().text("content", value)


def test_a_text_has_sixteen_megabytes_at_most():
    assert StorableEncoder().text("content", "x" * MAX_TEXT_BYTES)
    for text in ("x" * (MAX_TEXT_BYTES + 1), "ä" * (MAX_TEXT_BYTES // 2 + 1)):
        with pytest.raises(InvalidInputError, match="16777216 are allowed"):
            StorableEncoder().text("content", text)


def test_json_may_be_nested_so_deep_and_no_deeper():
    assert StorableEncoder().json("content", nested(MAX_DEPTH))
    for depth in (MAX_DEPTH + 1, 100_000):
        with pytest.raises(InvalidInputError, match="more than 64 deep"):
            StorableEncoder().json("content", nested(depth))


def test_many_brackets_side_by_side_or_in_texts_are_not_deep():
    value = [[], {}] * 100
    assert StorableEncoder().json("content", value)
    assert StorableEncoder().json("content", "[{" * 100)


@pytest.mark.parametrize("value", [{(1, 2): 3}, {1, 2}, object(), float("nan"), [float("-inf")]])
def test_what_json_cannot_say_is_refused(value: object):
    with pytest.raises(InvalidInputError, match="content cannot be said in JSON"):
        StorableEncoder().json("content", value)


@pytest.mark.parametrize("word", ["", "a\nb", "x" * 257, "\ud800", 5, None])
def test_a_word_is_one_short_line(word: object):
    with pytest.raises(InvalidInputError, match="source must be one line"):
        check_word("source", word)
    assert check_word("source", "Grüße 😀") == "Grüße 😀"


def test_a_choice_is_one_of_its_words():
    assert check_choice("relation", "branch", Relation) is Relation.BRANCH
    with pytest.raises(InvalidInputError, match="relation must be one of succession, continuation"):
        check_choice("relation", "cousin", Relation)
