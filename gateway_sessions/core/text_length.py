"""The length of a text in a platform's unit, and the places where a cut tears no visible character."""

from __future__ import annotations

import re
import unicodedata
from enum import StrEnum
from typing import Final

LONGEST_CLUSTER: Final = 32
"""The most characters that stay together as one visible character; it bounds the search for a cut."""

_JOINER: Final = "\u200d"
_EXTENDING: Final = re.compile(
    "[\ufe00-\ufe0f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f\u200d\u20e3\udc00-\udfff]"
)
_REGIONAL: Final = re.compile("[\U0001f1e6-\U0001f1ff]")


class LengthUnit(StrEnum):
    """The unit in which a platform limits the length of a text."""

    CHARACTERS = "characters"
    UTF16 = "utf16"
    BYTES = "bytes"

    def length(self, text: str) -> int:
        """Return the length of a text in this unit."""
        if self is LengthUnit.CHARACTERS:
            return len(text)
        if self is LengthUnit.UTF16:
            return len(text.encode("utf-16-le", "surrogatepass")) // 2
        return len(text.encode("utf-8", "surrogatepass"))


def place_of_utf16(text: str, offset: int, length: int) -> tuple[int, int]:
    """Return the first character, and the one behind the last, of a place told in UTF-16 units."""
    units = text.encode("utf-16-le", "surrogatepass")
    first, behind = max(offset, 0), max(offset + length, 0)
    return _characters(units[: 2 * first]), _characters(units[: 2 * behind])


def _characters(units: bytes) -> int:
    return len(units.decode("utf-16-le", "ignore"))


def character_boundary(text: str, start: int, end: int) -> int:
    """Return the last place before *end* that does not tear a visible character apart."""
    for at in range(end, max(start, end - LONGEST_CLUSTER), -1):
        if not _belong_together(text, at):
            return at
    return end


def _belong_together(text: str, at: int) -> bool:
    """Return whether the characters before and at a place are one visible character."""
    before, after = text[at - 1], text[at]
    if _REGIONAL.match(after) and _REGIONAL.match(before):
        return _flags_before(text, at) % 2 == 1
    return before == _JOINER or bool(_EXTENDING.match(after)) or unicodedata.combining(after) != 0


def _flags_before(text: str, at: int) -> int:
    """Return the number of halves of flags that stand in a row before a place."""
    first = at
    while first > 0 and _REGIONAL.match(text[first - 1]):
        first -= 1
    return at - first
