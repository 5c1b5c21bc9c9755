"""A text in Markdown as a tree: blocks, and within them runs of text."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class TextRun:
    """Plain text without a line break."""

    text: str


@dataclass(frozen=True, slots=True)
class CodeSpan:
    """Code within a line."""

    text: str


@dataclass(frozen=True, slots=True)
class LineBreak:
    """The end of a line within a paragraph."""


@dataclass(frozen=True, slots=True)
class Strong:
    """Text of strong emphasis."""

    children: tuple[Inline, ...]


@dataclass(frozen=True, slots=True)
class Emphasis:
    """Emphasised text."""

    children: tuple[Inline, ...]


@dataclass(frozen=True, slots=True)
class Strike:
    """Text that is struck through."""

    children: tuple[Inline, ...]


@dataclass(frozen=True, slots=True)
class Link:
    """A link, or an image, which is shown as a link to it."""

    href: str
    children: tuple[Inline, ...]


Inline: TypeAlias = TextRun | CodeSpan | LineBreak | Strong | Emphasis | Strike | Link


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Lines of text."""

    children: tuple[Inline, ...]


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of level 1 to 6."""

    level: int
    children: tuple[Inline, ...]


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """Lines of code; the last one has no line break."""

    text: str
    language: str = ""


@dataclass(frozen=True, slots=True)
class Quote:
    """Quoted blocks."""

    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class ListItem:
    """The blocks of one item of a list."""

    blocks: tuple[Block, ...]
    checked: bool | None = None
    """Whether the item of a list of tasks is done; None: the list is none."""


@dataclass(frozen=True, slots=True)
class ListBlock:
    """A list."""

    items: tuple[ListItem, ...]
    first: int | None = None
    """The number of the first item; None: the items have bullets."""
    tight: bool = True
    """Whether no blank lines stand between the items."""


class Align(StrEnum):
    """The side to which a column of a table is aligned."""

    LEFT = "left"
    CENTRE = "center"
    RIGHT = "right"


@dataclass(frozen=True, slots=True)
class TableBlock:
    """A table; each row has as many cells as there are columns."""

    columns: tuple[Align, ...]
    header: tuple[tuple[Inline, ...], ...]
    rows: tuple[tuple[tuple[Inline, ...], ...], ...]


@dataclass(frozen=True, slots=True)
class Divider:
    """A line between blocks."""


Block: TypeAlias = Paragraph | Heading | CodeBlock | Quote | ListBlock | TableBlock | Divider


def plain_text(children: tuple[Inline, ...]) -> str:
    """Return the text that people see of some runs, without their looks."""
    return "".join(_plain(one) for one in children)


def _plain(one: Inline) -> str:
    match one:
        case TextRun(text) | CodeSpan(text):
            return text
        case LineBreak():
            return "\n"
        case _:
            return plain_text(one.children)
