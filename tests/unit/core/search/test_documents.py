"""Messages as the search index sees them."""

from __future__ import annotations

import json

import pytest

from gateway_sessions.core.search.documents import (
    LONGEST_INDEXED,
    LONGEST_LISTED,
    UNLISTED,
    IndexedMessage,
    document_of,
    label,
    labels_of,
    listed_words,
    month_label,
    searched_texts,
    tokens_of,
    tool_calls_text,
    year_label,
)
from gateway_sessions.core.search.tokenizer import GAP

MARCH = 1_772_323_200_000_000


def message(**values: object) -> IndexedMessage:
    fields = {
        "message_id": 1,
        "session_id": "s",
        "role": "tool",
        "content": "Hello",
        "tool_name": "read_file",
        "tool_calls": None,
        "sent_at": MARCH,
        "owner": "alice",
        "session_key": None,
        "source": "cli",
    }
    return IndexedMessage(**{**fields, **values})  # type: ignore[arg-type]


def test_text_tool_and_calls_are_searched_apart_from_each_other():
    calls = json.dumps([{"function": {"name": "grep", "arguments": "{}"}}])
    expected = ["hello", GAP, "read", "file", GAP, "function", "name", "grep", "arguments"]
    assert tokens_of(message(tool_calls=calls)) == expected
    assert searched_texts(None, None, None) == ()


@pytest.mark.parametrize(
    ("calls", "words"),
    [
        ('[{"name": "a", "n": 5, "b": true, "c": null}]', ["name", "a", "n", "5", "b", "c"]),
        (r'[{"arguments": "{\"path\": \"/x\\ny\"}"}]', ["arguments", "path", "/x\ny"]),
        (r'["[not json", "[1.5]"]', ["[not json", "1.5"]),
        ("not json", ["not json"]),
    ],
)
def test_calls_are_read_as_deep_as_they_go(calls, words):
    assert tool_calls_text(calls).split("\n") == "\n".join(words).split("\n")


def test_the_rest_of_a_very_long_text_is_left_out():
    assert [len(text) for text in searched_texts("x" * (LONGEST_INDEXED + 5), "t", None)] == [
        LONGEST_INDEXED,
        1,
    ]


def test_labels_are_single_tokens_that_tell_values_and_kinds_apart():
    labels = labels_of(message(session_key="lane")).split()
    assert labels == [
        label("owner", "alice"),
        label("lane", "lane"),
        label("session", "s"),
        label("source", "cli"),
        label("role", "tool"),
        year_label(2026),
        month_label(2026, 3),
    ]
    assert label("lane", "lane") not in labels_of(message())
    assert len({label(kind, "x") for kind in ("owner", "lane", "session", "source", "role")}) == 5
    assert label("owner", "a") != label("owner", "b")
    assert all(one.isascii() and one.isalnum() for one in (*labels, label("owner", "\udc80 \0")))


def test_words_are_listed_as_a_whole_but_for_those_that_are_files():
    name, file = "x" * 70, "y" * (LONGEST_LISTED + 1)
    short, long, longest = (document_of(message(content=text)) for text in ("Hello, 机器", name, file))
    assert (short.long_words, long.long_words, longest.long_words) == (set(), {name}, set())
    assert [UNLISTED in one.labels for one in (short, long, longest)] == [False, False, True]
    assert listed_words([short]) == {"hello", "read", "file"}
    assert listed_words([short, long]) == {"hello", "read", "file", name, name[64:]}
    assert listed_words([]) == set()
