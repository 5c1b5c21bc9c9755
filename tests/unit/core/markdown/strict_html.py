"""A strict reader of HTML as platforms take it: known tags only, closed in order, nothing unescaped."""

from __future__ import annotations

import html
import re
from collections.abc import Collection

PIECE = re.compile(r"<(/?)([a-z0-9]+)((?: [a-z]+=\"[^\"<>]*\")*)>|&(?:lt|gt|amp|quot|#x27);|[^<>&]")


def shown_text(markup: str, tags: Collection[str], *, voids: Collection[str] = ()) -> str:
    """Return what people see; AssertionError if a platform would not take the markup."""
    shown: list[str] = []
    opened: list[str] = []
    at = 0
    while at < len(markup):
        piece = PIECE.match(markup, at)
        assert piece is not None, f"not allowed: {markup[at : at + 40]!r}"
        at = piece.end()
        if piece[2] is None:
            shown.append(html.unescape(piece[0]))
        elif piece[2] in voids:
            shown.append("\n")
        elif piece[1]:
            assert opened[-1:] == [piece[2]], f"closed out of order: {piece[0]}"
            opened.pop()
        else:
            assert piece[2] in tags, f"unknown tag: {piece[0]}"
            opened.append(piece[2])
    assert not opened, f"not closed: {opened}"
    return "".join(shown)
