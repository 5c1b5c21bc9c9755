"""The pieces of a rendered text in order: words, marks that open and close, and places for cuts."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple, TypeAlias

from gateway_sessions.core.markdown.dialect import TextMark


class CutRank(IntEnum):
    """The places where a text may be cut, the best first."""

    BLOCK = 0
    LINE = 1
    LINE_OF_CODE = 2
    WORD = 3


class Word(NamedTuple):
    """A word as people see it; `code` escapes it as code is escaped."""

    text: str
    code: bool = False


class Inserted(NamedTuple):
    """What the renderer adds: its markup, and what people see of it."""

    markup: str
    shown: str


class Cut(NamedTuple):
    """A place where a message may end; in the middle of one, it is shown as a space or a line break."""

    rank: CutRank
    markup: str
    shown: str


class Open(NamedTuple):
    """The beginning of a marked text."""

    mark: TextMark


class Close(NamedTuple):
    """The end of the text that was marked last."""


Piece: TypeAlias = Word | Inserted | Cut | Open | Close
