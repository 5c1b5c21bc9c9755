"""Each platform's own rules, as its fake has them, accept what the corpus of Markdown becomes.

Messages are cut to a tenth of the platform's limit as well, so that marks are closed and opened again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import pytest

from gateway_sessions.core.markdown.packing import Part
from gateway_sessions.core.markdown.rendering import render_markdown
from gateway_sessions.testing.fakes.google_chat.formatted_text import read_chat_syntax
from gateway_sessions.testing.fakes.matrix.custom_html import html_problems
from gateway_sessions.testing.fakes.mattermost.formatted_text import EVERYBODY, read_post_text
from gateway_sessions.testing.fakes.slack.blocks import shown_text, unescaped_in
from gateway_sessions.testing.fakes.teams.connector import check_activity
from gateway_sessions.testing.fakes.telegram.entities import parse_html
from tests.unit.core.markdown import golden

SHORT: Final = 400


def _on_telegram(part: Part) -> None:
    text, _ = parse_html(part.markup)
    assert _words(part.plain) - _words(text) == set()


def _on_matrix(part: Part) -> None:
    assert html_problems(part.markup) == []


def _on_slack(part: Part) -> None:
    assert unescaped_in(part.markup) == ""
    seen = shown_text(part.markup)
    assert _words(part.plain) - _words(seen) == set()


def _on_teams(part: Part) -> None:
    check_activity({"type": "message", "text": part.markup, "textFormat": "markdown"})


def _on_google_chat(part: Part) -> None:
    seen, mentions = read_chat_syntax(part.markup)
    assert _letters(seen) == _letters(part.plain)
    assert mentions == (), "only a program calls people, never a text"


def _on_mattermost(part: Part) -> None:
    seen, mentions = read_post_text(part.markup)
    assert _letters(seen) == _letters(part.plain)
    assert EVERYBODY.isdisjoint(mentions)


def _letters(text: str) -> str:
    """Return what people see of a text, but for bullets, rules, boxes and the addresses of links."""
    without_addresses = re.sub(r" \((?:https?://|[\w.]+@)\S*\)", "", text)
    return re.sub(r"\d+\. |[\s\u200b`•◦▪☐☑─—|>*+-]", "", without_addresses)


def _words(text: str) -> set[str]:
    """Return the words of a text, without the addresses that a plain text has behind the words of a link."""
    return set(re.findall(r"[^\W_]+", re.sub(r"\S+(?:://|@)\S+", "", text)))


PLATFORMS: Final[Mapping[str, Callable[[Part], None]]] = MappingProxyType(
    {
        "google_chat": _on_google_chat,
        "matrix": _on_matrix,
        "mattermost": _on_mattermost,
        "slack": _on_slack,
        "teams": _on_teams,
        "telegram": _on_telegram,
    }
)


@pytest.mark.parametrize("limit", [None, SHORT])
@pytest.mark.parametrize("text", golden.TEXTS)
@pytest.mark.parametrize("platform", PLATFORMS)
def test_the_corpus_is_accepted(platform: str, text: str, limit: int | None):
    dialect = golden.DIALECTS[platform]
    source = (golden.FOLDER / f"{text}.md").read_text("utf-8")
    parts = render_markdown(source, dialect, limit=limit)
    assert parts
    for part in parts:
        PLATFORMS[platform](part)
        counted = part.markup if dialect.counts_markup else part.plain
        assert dialect.unit.length(counted) <= (limit or dialect.limit)


@pytest.mark.parametrize("limit", [None, SHORT])
@pytest.mark.parametrize("text", golden.TEXTS)
@pytest.mark.parametrize("platform", ["discord", "whatsapp"])
def test_where_everything_is_accepted_the_length_is_not_exceeded(platform: str, text: str, limit: int | None):
    dialect = golden.DIALECTS[platform]
    parts = render_markdown((golden.FOLDER / f"{text}.md").read_text("utf-8"), dialect, limit=limit)
    assert all(0 < dialect.unit.length(part.markup) <= (limit or dialect.limit) for part in parts)
    assert all(part.markup.count("```") % 2 == 0 for part in parts)
