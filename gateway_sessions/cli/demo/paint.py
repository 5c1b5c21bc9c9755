"""The look of the demo: 80 columns, and colours only on a terminal."""

from __future__ import annotations

import os
import re
import sys
import textwrap
import time
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from typing import TypeAlias
from zoneinfo import ZoneInfo

from rich.cells import cell_len

Style: TypeAlias = Callable[[str], str]

NEW_YORK = ZoneInfo("America/New_York")
WIDTH = 78
SECONDS_PER_LINE = 0.05
COLOUR = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"

_STYLE = re.compile("\x1b\\[[0-9;]*m")
_SESSION_ID = re.compile(r"(\d{8}_\d{6})_[0-9a-f]{8}")


def say(*lines: str) -> None:
    """Print lines, on a terminal not faster than the eye can follow."""
    for line in lines:
        print(f"  {line}".rstrip(), flush=True)
        if sys.stdout.isatty():
            time.sleep(SECONDS_PER_LINE)


def begin_scene(number: int, title: str, *remarks: str) -> None:
    """Print the heading of a scene, and remarks below it."""
    heading = f"{number}. {title}"
    print(f"\n{strong(heading)}\n{dim('─' * len(heading))}", flush=True)
    for remark in remarks:
        note(remark)
    print(flush=True)


def note(text: str) -> None:
    """Print a remark between the lines."""
    say(*wrapped(text, WIDTH - 2, dim))


def wrapped(text: str, width: int, style: Style) -> list[str]:
    """Return the text in lines of that width and style."""
    return [style(line) for line in textwrap.wrap(text, width)]


def in_columns(*cells: str, widths: Iterable[int]) -> str:
    """Return cells in columns, as wide as a terminal shows them; the last one takes what it needs."""
    padded = [
        cell + " " * (width - cell_len(_STYLE.sub("", cell)))
        for cell, width in zip(cells, widths, strict=False)
    ]
    return " ".join([*padded, *cells[len(padded) :]]).rstrip()


def painted(style: str, text: str) -> str:
    """Return the text in a style, on a terminal that can show it."""
    return f"\x1b[{style}m{text}\x1b[0m" if COLOUR and text else text


good: Style = partial(painted, "32")
bad: Style = partial(painted, "1;31")
strong: Style = partial(painted, "1")
dim: Style = partial(painted, "2")
code: Style = partial(painted, "36")  # output of the program
told: Style = partial(painted, "33")  # notices of the gateway


def without_random_part(text: str) -> str:
    """Return the text with shortened session ids, so that each run prints the same."""
    return _SESSION_ID.sub(r"\1", text)


def new_york_time(instant: datetime) -> str:
    """Return an instant on the clocks of New York."""
    return f"{instant.astimezone(NEW_YORK):%a %H:%M %Z}"
