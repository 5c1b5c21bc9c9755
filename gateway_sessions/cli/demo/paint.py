"""How the demo looks: 80 columns, colours only where there is a terminal that shows them."""

from __future__ import annotations

import os
import re
import sys
import textwrap
import time
import unicodedata
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TypeAlias
from zoneinfo import ZoneInfo

Style: TypeAlias = Callable[[str], str]

NEW_YORK = ZoneInfo("America/New_York")
WIDTH = 78
SECONDS_PER_LINE = 0.05
COLOUR = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"

_STYLE = re.compile("\x1b\\[[0-9;]*m")
_SESSION_ID = re.compile(r"(\d{8}_\d{6})_[0-9a-f]{8}")


def say(*lines: str) -> None:
    """Print lines, each at once; where somebody looks on, not faster than the eye can follow."""
    for line in lines:
        print(f"  {line}".rstrip(), flush=True)
        if sys.stdout.isatty():
            time.sleep(SECONDS_PER_LINE)


def begin_scene(number: int, title: str, *remarks: str) -> None:
    """Begin a scene."""
    heading = f"{number}. {title}"
    print(f"\n{painted(heading, '1')}\n{dim('─' * len(heading))}", flush=True)
    for remark in remarks:
        note(remark)
    print(flush=True)


def note(text: str) -> None:
    """A remark between the lines."""
    say(*wrapped(text, WIDTH - 2, dim))


def wrapped(text: str, width: int, style: Style) -> list[str]:
    """The text in lines of that width, each in that style."""
    return [style(line) for line in textwrap.wrap(text, width)]


def in_columns(*cells: str, widths: Iterable[int]) -> str:
    """Cells in columns; the last one takes what it needs."""
    padded = [pad_to_width(cell, width) for cell, width in zip(cells, widths, strict=False)]
    return " ".join([*padded, *cells[len(padded) :]]).rstrip()


def pad_to_width(text: str, width: int) -> str:
    """The text with spaces up to a width, as a terminal counts it."""
    return text + " " * (width - width_of(text))


def width_of(text: str) -> int:
    """How wide a terminal shows a text."""
    return sum(1 + (unicodedata.east_asian_width(one) in "WF") for one in _STYLE.sub("", text))


def painted(text: str, style: str) -> str:
    """The text in a style, where that can be shown."""
    return f"\x1b[{style}m{text}\x1b[0m" if COLOUR and text else text


def good(text: str) -> str:
    """What went well."""
    return painted(text, "32")


def bad(text: str) -> str:
    """What went wrong."""
    return painted(text, "1;31")


def strong(text: str) -> str:
    """What the eye should find."""
    return painted(text, "1")


def code(text: str) -> str:
    """What the program says."""
    return painted(text, "36")


def told(text: str) -> str:
    """What people are told by the gateway itself."""
    return painted(text, "33")


def dim(text: str) -> str:
    """What may be overlooked."""
    return painted(text, "2")


def without_random_part(text: str) -> str:
    """Session ids without their random part, so that each run prints the same."""
    return _SESSION_ID.sub(r"\1", text)


def new_york_time(instant: datetime) -> str:
    """An instant on the clocks of New York."""
    return f"{instant.astimezone(NEW_YORK):%a %H:%M %Z}"
