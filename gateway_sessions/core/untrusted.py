"""Names are data: whatever people call themselves and their chats reaches an agent as one inert line.

Display names, topics and titles are typed by strangers. Each rendering here is bounded, stays on its line and
shows every character it holds, so that a name can neither pose as an instruction nor hide one.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Final

MAX_SHOWN: Final = 240
NAMELESS: Final = "unnamed"

# Bidirectional controls, zero-width characters, fillers, variation selectors (except the one that makes an
# emoji), annotations and tags: characters that show nothing and can carry, or turn around, what is shown.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffc\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
_LINE_END = re.compile("\r\n?|[\x85\u2028\u2029]")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_ROUND: Final = str.maketrans("[]", "()")
_LIKE_A_PREFIX = re.compile(r"\[[^\]]*\]\s")


def without_invisible(text: str) -> str:
    """Return the text without characters that show nothing, and without halves of characters."""
    return _SURROGATE.sub("\ufffd", _INVISIBLE.sub("", text))


def visible(text: str) -> str:
    """Return what a person sees of the text: line feeds and tabs stay, other controls become spaces."""
    return _CONTROL.sub(" ", _LINE_END.sub("\n", without_invisible(text))).strip()


def shortened(text: str, limit: int) -> str:
    """Return at most *limit* characters, the last three of them dots if anything was cut."""
    return text if len(text) <= limit else text[: limit - 3] + "..."


def inert(text: str, limit: int = MAX_SHOWN) -> str:
    """Return the text as a JSON string on one line: what a prompt shows of a name."""
    return json.dumps(shortened(visible(text), limit), ensure_ascii=False)


def inline_name(name: str | None, limit: int = MAX_SHOWN) -> str:
    """Return the name for a `[name] text` prefix: one line, no square brackets, never empty."""
    folded = visible(unicodedata.normalize("NFKC", name or "")).translate(_ROUND)
    return shortened(" ".join(folded.split()), limit) or NAMELESS


def attributed(name: str | None, text: str) -> str:
    """Return the text as a shared session shows it: `[name] text`.

    Later lines that look like such a prefix are quoted with `> `, so that nobody speaks for somebody else.
    """
    first, *rest = _LINE_END.sub("\n", text).split("\n")
    return "\n".join([f"[{inline_name(name)}] {first}", *map(_quoted_if_prefixed, rest)])


def anonymous(name: str | None, text: str) -> str:
    """Return what `attributed` made of a text as if nobody had told the name, whatever stands before it."""
    prefix = re.compile(rf"^\[{re.escape(inline_name(name))}\](?= |$)", re.MULTILINE)
    return prefix.sub(f"[{NAMELESS}]", text, count=1)


def _quoted_if_prefixed(line: str) -> str:
    shown = unicodedata.normalize("NFKC", visible(line))
    return f"> {line}" if _LIKE_A_PREFIX.match(shown) else line
