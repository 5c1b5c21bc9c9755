"""What people read of a text in Google Chat: its marks, links and mentions, as Google describes them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

_CODE: Final = re.compile(r"```(?:\n)?(.*?)(?:\n)?```|`([^`\n]+)`", re.DOTALL)
_CONTROL: Final = re.compile(
    r"<(users/[\w-]+)>|<((?:https?|mailto|tel):[^|>\s]+)(?:\|([^>]*))?>", re.IGNORECASE
)
# A zero-width blank behind a mark keeps it from being one, like any blank.
_MARKS: Final = re.compile(
    r"(?<![\w*_~])(?P<mark>[*_~])(?P<text>(?=[^\s\u200b])[^\n]*?(?<=\S))(?P=mark)(?![\w])",
)
_BULLET: Final = re.compile(r"^( *)[*-] ", re.MULTILINE)
_KEPT: Final = re.compile("\0(\\d+)\0")


class ShownText(NamedTuple):
    """A text as people read it, and the people whom it calls."""

    text: str
    mentions: tuple[str, ...] = ()
    """The names of the users; `users/all` is everybody."""


def read_chat_syntax(text: str, names: Mapping[str, str] | None = None) -> ShownText:
    """Return what people read of a text in the syntax of Chat; *names* are those of users by their ids."""
    kept: list[str] = []
    mentions: list[str] = []

    def keep(shown: str) -> str:
        kept.append(shown)
        return f"\0{len(kept) - 1}\0"

    def control(found: re.Match[str]) -> str:
        if (user := found[1]) is not None:
            mentions.append(user)
            return keep(f"@{(names or {}).get(user, user)}")
        return found[3] if found[3] else keep(found[2])

    text = _CODE.sub(lambda found: keep(found[1] if found[1] is not None else found[2]), text)
    text = _CONTROL.sub(control, text)
    text = re.sub(r"https?://\S+", lambda found: keep(found[0]), text)
    text = _BULLET.sub(r"\1• ", text)
    while (plain := _MARKS.sub(r"\g<text>", text)) != text:
        text = plain
    while (plain := _KEPT.sub(lambda found: kept[int(found[1])], text)) != text:
        text = plain
    return ShownText(text, tuple(mentions))
