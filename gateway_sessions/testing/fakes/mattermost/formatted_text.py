"""What people read of a post: Markdown with tables, in which each line break is one, and mentions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

_MENTION: Final = re.compile(r"(?<![\w@/])@([a-z0-9][a-z0-9._-]*)", re.IGNORECASE)
EVERYBODY: Final = frozenset({"all", "channel", "here"})


class ShownPost(NamedTuple):
    """The text of a post as people read it, and the names that it calls."""

    text: str
    mentions: tuple[str, ...] = ()
    """The names behind an @, in lower case; one of `EVERYBODY` calls a whole channel."""


@lru_cache(maxsize=1)
def _markdown() -> MarkdownIt:
    options = {"html": False, "linkify": False, "breaks": True}
    return MarkdownIt("commonmark", options).enable(["table", "strikethrough"])


def read_post_text(text: str) -> ShownPost:
    """Return what people read of a post, and whom it calls; nobody is called from within code."""
    tokens = _markdown().parse(text)
    shown = list(_shown(tokens))
    said = "".join(words for words, is_code in shown if not is_code)
    names = (found[1].rstrip("._-").lower() for found in _MENTION.finditer(said))
    return ShownPost("".join(words for words, _ in shown).strip(), tuple(names))


def _shown(tokens: Sequence[Token]) -> Iterator[tuple[str, bool]]:
    """Yield the words that are shown, and whether they are code."""
    for token in tokens:
        if token.type == "inline":
            yield from _shown(token.children or ())
        elif token.type in ("fence", "code_block", "code_inline"):
            yield token.content, True
        elif token.type in ("softbreak", "hardbreak", "hr") or (token.block and token.nesting == -1):
            yield "\n", False
        elif token.type in ("th_close", "td_close"):
            yield " ", False
        else:
            yield token.content, False
