"""Titles for sessions that nobody has named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_sessions.core.sessions.titles import (
    MAX_AUTOMATIC,
    MAX_WORDS,
    clean_suggested_title,
    clean_title,
    title_from_messages,
)


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("fix the docker build", "Fix the docker build"),
        (
            "Hi! Can you please fix the docker build on my machine? It fails.",
            "Fix the docker build on my machine",
        ),
        ("hello there, I want to plan a trip to Rome", "Plan a trip to Rome"),
        ("[Alice] where is the invoice of March", "Where is the invoice of March"),
        ("@helper /ask", None),
        ("/ask what is the capital of Peru", "What is the capital of Peru"),
        ("one two three four five six seven eight nine", "One two three four five six seven"),
        ('"quoted words, all of them"', "Quoted words, all of them"),
        ("**Bold plans** for June", "Bold plans for June"),
        ("> you said no\nand I say yes", "And I say yes"),
        ("```py\nprint(1)\n```\nwhat does this print", "What does this print"),
        ("summarise https://www.example.org/a/b?c=d for me", "Summarise example.org for me"),
        ("iPhone does not charge", "iPhone does not charge"),
        ("ok", None),
        ("thanks!", None),
        ("", None),
        (" \n\u200b", None),
        ("one two three four five six seven - eight", "One two three four five six seven"),
        ("帮我把这个文件翻译成英文\uff0c然后发给我。谢谢", "帮我把这个文件翻译成英文"),
        ("東京の天気を教えてください", "東京の天気を教えてください"),
        (
            "这是一个非常非常长的句子没有任何标点符号也没有空格所以必须被截断",
            "这是一个非常非常长的句子没有任何标点符号",
        ),
        ("รบกวนช่วยแปลเอกสารนี้", "รบกวนช่วยแปลเอกสารนี"),
        ("도커 빌드를 고쳐 주세요", "도커 빌드를 고쳐 주세요"),
        ("好", None),
    ],
)
def test_a_session_is_called_what_its_first_sentence_says(said: str, title: str | None):
    assert title_from_messages([said]) == title


def test_after_a_greeting_the_next_message_counts():
    assert title_from_messages(["hi", "fix the build"]) == "Fix the build"
    assert title_from_messages([]) is None


@pytest.mark.parametrize(
    ("proposed", "title"),
    [
        ("Docker Build Fix", "Docker Build Fix"),
        ('Title: "Docker Build Fix."', "Docker Build Fix"),
        ('"Title: Docker Build Fix"', "Docker Build Fix"),
        ("## Docker Build Fix\nbecause you asked", "Docker Build Fix"),
        ("\n\n  \u201eReise nach K\u00f6ln\u201c", "Reise nach K\u00f6ln"),
        (
            "\u6807\u9898\uff1a\u4e1c\u4eac\u65c5\u884c\u8ba1\u5212\u3002",
            "\u4e1c\u4eac\u65c5\u884c\u8ba1\u5212",
        ),
        ("", None),
        ('""', None),
        ("x" * 200, "x" * 80),
        ("word " * 40, ("word " * 16).strip()),
    ],
)
def test_a_proposed_title_loses_its_label_and_quotes(proposed: str, title: str | None):
    assert clean_suggested_title(proposed) == title


@given(st.text(max_size=300))
def test_whatever_is_said_the_title_is_clean_and_short(said: str):
    for title in (title_from_messages([said]), clean_suggested_title(said)):
        if title is not None:
            assert clean_title(title) == title
            assert len(title) <= MAX_AUTOMATIC
    plain = title_from_messages([said])
    assert plain is None or len(plain.split()) <= MAX_WORDS
