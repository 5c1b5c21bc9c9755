"""Titles of sessions: how they are cleaned, and how a continuation is numbered.

A lineage is a title and its numbered continuations: `Trip`, `Trip #2`, `Trip #3`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable
from enum import StrEnum
from typing import Final

from gateway_sessions.core.untrusted import without_invisible
from gateway_sessions.errors import InvalidTitleError

MAX_TITLE: Final = 100
LONGEST_SUFFIX: Final = 16
"""A cut base leaves at least this much room for its number."""

_UNSHOWN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029]")
_NUMBERED = re.compile(r"(.+?) #([0-9]{1,9})", re.DOTALL)
_AFTER_EVERYTHING: Final = "\U0010ffff"


class TitledBy(StrEnum):
    """Who gave a session its title."""

    PERSON = "person"
    AUTOMATIC = "automatic"
    LINEAGE = "lineage"  # it goes on with the title of the session it came from


def one_line(text: str) -> str:
    """Return the text in composed form on one line, without anything invisible."""
    return " ".join(unicodedata.normalize("NFC", _UNSHOWN.sub("", without_invisible(text))).split())


def clean_title(text: str) -> str:
    """Return one line in composed form without anything invisible, or raise `InvalidTitleError`."""
    title = one_line(text)
    if not 0 < len(title) <= MAX_TITLE:
        raise InvalidTitleError(len(title), MAX_TITLE)
    return title


def base_title(title: str) -> tuple[str, int]:
    """Return the title its lineage began with and the number in it; the first one has the number 1."""
    numbered = _NUMBERED.fullmatch(title)
    return (numbered[1], int(numbered[2])) if numbered else (title, 1)


def next_title(title: str, taken: Collection[str]) -> str:
    """Return the next free title of the lineage: gaps are not filled, a base is cut to keep the limit."""
    base, _ = base_title(clean_title(title))
    return numbered(base, next_number(base, taken))


def next_number(base: str, taken: Collection[str]) -> int:
    """Return the number of the next free title of that lineage."""
    numbers = [number for one in taken if (number := _number_in(base, one)) is not None]
    if not numbers:
        return 1
    number = max(1, *numbers) + 1
    while numbered(base, number) in taken:
        number += 1
    return number


def numbered(base: str, number: int) -> str:
    """Return the title of that number in a lineage; the first one has none."""
    return base if number == 1 else _with_number(base, number)


def lineage_range(base: str) -> tuple[str, str]:
    """Return the least and the greatest text between which all numbered titles of a base stand in order.

    A long base is cut to make room for numbers, so other titles may stand there as well.
    """
    room = MAX_TITLE - LONGEST_SUFFIX
    stem = f"{base} #" if len(base) <= room else base[:room].rstrip()
    return stem, stem + _AFTER_EVERYTHING


def continuing(base: str, titles: Iterable[str]) -> list[str]:
    """Return the titles that are the base with a number."""
    return [one for one in titles if one != base and _number_in(base, one) is not None]


def _number_in(base: str, title: str) -> int | None:
    """Return the number of *title* in the lineage of *base*, or None if it belongs to another."""
    if title == base:
        return 1
    stem, number = base_title(title)
    return number if stem == base or title == _with_number(base, number) else None


def _with_number(base: str, number: int) -> str:
    suffix = f" #{number}"
    return base[: MAX_TITLE - len(suffix)].rstrip() + suffix
