"""Markdown that is cut into messages: each fits, each is whole markup by itself, and no word is lost."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_sessions.core.markdown import dialects
from gateway_sessions.core.markdown.dialect import MarkupDialect
from gateway_sessions.core.markdown.packing import LEAST_LIMIT
from gateway_sessions.core.markdown.rendering import render_markdown
from gateway_sessions.errors import InvalidInputError
from tests.unit.core.markdown.strict_html import shown_text

ALL = [
    value
    for name, value in sorted(vars(dialects).items())
    if isinstance(value, MarkupDialect) and name.isupper()
]
TELEGRAM_TAGS = ("b", "i", "s", "code", "pre", "a", "blockquote")
MATRIX_TAGS = (
    *(
        "strong",
        "em",
        "del",
        "code",
        "pre",
        "a",
        "blockquote",
        "p",
        "ul",
        "ol",
        "li",
        "table",
        "tr",
        "th",
        "td",
    ),
    *(f"h{level}" for level in range(1, 7)),
)
FRAGMENTS = st.sampled_from(
    [
        *(
            "word",
            "two words",
            "snake_case",
            "a*b",
            "2 * 3",
            "*em*",
            "**strong**",
            "~~gone~~",
            "`code`",
            "``a`b``",
        ),
        *(
            "***",
            "**",
            "_",
            "[",
            "](",
            "[text](https://example.org/a_(b)?x=1&y=2)",
            "<https://auto.example/x_y>",
        ),
        *(
            "![image](https://example.org/i.png)",
            "[x](javascript:alert)",
            "[x](tg://user?id=1)",
            "<b>",
            "&amp;",
        ),
        *("\n", "\n\n", "\n- ", "\n  - ", "\n1. ", "\n> ", "\n> > ", "\n# ", "\n### ", "\n---\n"),
        *(
            "\n```python\n",
            "\n```\n",
            "\n~~~\n",
            "    indented",
            "\n| a | b |\n|---|--:|\n| 1 | **2** |\n",
            "<br>",
        ),
        *(
            "- [ ] ",
            "\n- [x] done",
            "@everyone",
            "<@U123>",
            "<!here>",
            "مرحبا بالعالم",
            "日本語",
            "👩‍👩‍👧‍👦",
            "e\u0301" * 3,
            "\U0001d518\U0001d52b",
        ),
        *("x" * 150, "\\*", "\\", "|", "&", "<", ">", '"', "`", "\u200b", "\t", "#", "+", "1."),
    ]
)
TEXTS = st.lists(FRAGMENTS, max_size=40).map(" ".join) | st.lists(FRAGMENTS, max_size=40).map("".join)
PHRASES = st.sampled_from(
    [
        *(
            "word",
            "two words",
            "snake_case",
            "2 * 3",
            "*em*",
            "**strong**",
            "~~gone~~",
            "`code`",
            "``a`b``",
            "\\*",
        ),
        *("[text](https://example.org/a_(b)?x=1&y=2)", "<https://auto.example/x_y>", "[x](javascript:alert)"),
        *(
            "a & b",
            "a < b",
            "#",
            "1.",
            "-",
            "+",
            ">",
            "|",
            "_",
            "***",
            "!",
            "\\\\",
            "[",
            "]",
            "&amp;",
            "مرحبا",
            "\n",
        ),
    ]
)
LINES = st.lists(PHRASES, min_size=1, max_size=8).map(" ".join)
BLOCKS = st.one_of(
    LINES,
    LINES.map(lambda line: f"## {line.replace(chr(10), ' ')}"),
    LINES.map(lambda line: f"> {line.replace(chr(10), ' ')}"),
    LINES.map(lambda line: f"- {line.replace(chr(10), ' ')}\n  - inner\n\n    second\n- last"),
    LINES.map(lambda line: f"```python\n{line}\n```"),
    LINES.map(
        lambda line: f"| a | b |\n|---|--:|\n| {line.replace('|', '').replace(chr(10), ' ')} | **2** |"
    ),
)
WELL_FORMED = st.lists(BLOCKS, max_size=5).map("\n\nbetween\n\n".join)
LIMITS = st.integers(LEAST_LIMIT, 400)


def words(text: str) -> str:
    """Return a text without its blanks."""
    return re.sub(r"\s+", "", text)


def boundless(dialect: MarkupDialect) -> MarkupDialect:
    return replace(dialect, limit=10**7, most_marks=None)


def costs(markup: str, plain: str, dialect: MarkupDialect) -> int:
    return dialect.unit.length(markup if dialect.counts_markup else shown_text(markup, TELEGRAM_TAGS))


@pytest.mark.parametrize("dialect", ALL, ids=lambda one: one.name)
@given(text=TEXTS, limit=LIMITS)
def test_each_message_fits_and_no_word_is_lost(dialect: MarkupDialect, text: str, limit: int):
    whole = "".join(part.plain for part in render_markdown(text, boundless(dialect)))
    parts = render_markdown(text, dialect, limit=limit)
    assert all(costs(*part, dialect) <= limit for part in parts)
    assert words("".join(part.plain for part in parts)) == words(whole)
    assert all(part.plain.strip() for part in parts)


@given(text=TEXTS, limit=LIMITS)
def test_each_message_is_whole_html(text: str, limit: int):
    for part in render_markdown(text, dialects.TELEGRAM, limit=limit):
        assert words(shown_text(part.markup, TELEGRAM_TAGS)) in words(part.plain) or "(" in part.plain
    for part in render_markdown(text, dialects.MATRIX, limit=limit):
        shown_text(part.markup, MATRIX_TAGS, voids=("br", "hr"))


@given(text=WELL_FORMED)
def test_markdown_that_is_written_again_says_the_same(text: str):
    once = "".join(part.markup for part in render_markdown(text, boundless(dialects.COMMONMARK)))
    assert said(once) == said(text)


def said(text: str) -> str:
    """Return what people see of a text in Markdown."""
    shown = words("".join(part.plain for part in render_markdown(text, boundless(dialects.COMMONMARK))))
    return re.sub("[•◦▪☐☑─]", "", shown)


@pytest.mark.parametrize("limit", [0, LEAST_LIMIT - 1])
def test_a_limit_without_room_is_refused(limit: int):
    with pytest.raises(InvalidInputError, match=f"messages of {limit}, at least 64"):
        render_markdown("text", dialects.TELEGRAM, limit=limit)
