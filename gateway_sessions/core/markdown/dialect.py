"""What a platform's markup looks like: marks around text, the escapes, and the platform's limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from gateway_sessions.core.markdown.document import CodeBlock
from gateway_sessions.core.text_length import LengthUnit


class TextMark(NamedTuple):
    """What stands before and after a marked text, and before each of its lines but the first."""

    opening: str = ""
    closing: str = ""
    prefix: str = ""
    flush: bool = False
    """Whether the lines within it stand at the margin, whatever list they are part of."""
    within_words: bool = False
    """Whether it is a mark also on a platform that shows other marks within words as letters."""


NO_MARK = TextMark()
"""A platform that has no markup for something shows the text alone."""


QUOTED = TextMark("> ", prefix="> ")


class TableStyle(StrEnum):
    """The ways in which a table is shown."""

    ALIGNED = "aligned"
    """As lines of code whose columns are aligned; a wide table as a list, a row an item."""
    HTML = "html"
    PIPES = "pipes"
    """As Markdown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkupDialect:
    """The markup of one platform."""

    name: str
    limit: int
    """The longest message, in `unit`."""
    unit: LengthUnit
    counts_markup: bool = True
    """Whether marks and escapes count towards the limit, or only what people see."""
    most_marks: int | None = None
    """The most marked pieces of one message; the platform ignores further ones. None: no limit."""
    escape: Callable[[str, bool], str]
    """Return a word so that it is shown as it is; the second argument: whether it begins a line."""
    escape_code: Callable[[str], str]
    """Return a line of code so that it is shown as it is."""
    strong: TextMark = NO_MARK
    emphasis: TextMark = NO_MARK
    strike: TextMark = NO_MARK
    code: Callable[[str], TextMark] = lambda _: NO_MARK
    """Return the mark for code within a line; none if the platform cannot show this code as such."""
    link: Callable[[str], TextMark] = lambda _: NO_MARK
    """Return the mark of a link to an address; none if it cannot be one: the address is shown as text."""
    headings: tuple[TextMark, ...] = ()
    """The marks of the levels of headings; further levels look like the last one."""
    code_block: Callable[[CodeBlock], TextMark] = lambda _: NO_MARK
    quote: TextMark = QUOTED
    nested_quotes: bool = True
    marks_within_words: bool = True
    """Whether every mark is one too if a letter stands directly before or behind the marked text."""
    line_break: str = "\n"
    paragraph: TextMark = NO_MARK
    between_blocks: str = "\n\n"
    list_of: Callable[[int | None], TextMark] = lambda _: NO_MARK
    """Return the mark around a whole list whose first number is given; None: bullets."""
    item: TextMark | None = None
    """The mark of an item; None: the item begins with its bullet or number, as text."""
    bullets: tuple[str, ...] = ("• ", "◦ ", "▪ ")
    """The bullets by depth; deeper items have the last one."""
    box_is_bullet: bool = True
    """Whether the box of a task stands in the place of its bullet."""
    divider: str = "———"
    table: TableStyle = TableStyle.ALIGNED
    table_width: int = 48
    """The widest aligned table, in columns of a screen; a wider one is shown as a list."""
