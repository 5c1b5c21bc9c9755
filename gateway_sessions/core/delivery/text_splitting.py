"""Cutting of a text that exceeds a platform's limit at paragraphs, lines and words, code blocks intact.

Cuts between paragraphs come before cuts between lines, then words, then letters. A code block that is cut is
closed in one part and opened again in the next, because each part is shown by itself.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from enum import IntEnum
from typing import Final, NamedTuple

from gateway_sessions.core.text_length import LengthUnit, character_boundary
from gateway_sessions.errors import InvalidInputError

LEAST_LIMIT: Final = 40
"""The least limit: room for a fence that is opened and closed again, and for some text between."""

_FENCE: Final = re.compile(r" {0,3}(`{3,6}|~{3,6})([^`\n]*)")
_LANGUAGE: Final = re.compile(r"[\w+#.-]{1,14}", re.ASCII)
_CLOSING: Final = len("\n``````")
_BLANK_LINES: Final = re.compile(r"[ \t]*\n(?:[ \t]*\n)*|[ \t]+|")


class _Kind(IntEnum):
    """The places where a text may be cut, the best first."""

    PARAGRAPH = 0
    LINE = 1
    LINE_OF_CODE = 2
    WORD = 3


class _Fence(NamedTuple):
    """An open code block."""

    mark: str
    opening: str


class _Cut(NamedTuple):
    """A place for a cut, and the code block that is open there."""

    at: int
    fence: _Fence | None = None


def split_text(text: str, limit: int, unit: LengthUnit = LengthUnit.CHARACTERS) -> tuple[str, ...]:
    """Return the parts of a text in order, none longer than *limit*; only blanks between them are dropped."""
    if limit < LEAST_LIMIT:
        problem = f"a text cannot be cut into parts of {limit}, at least {LEAST_LIMIT} are needed"
        raise InvalidInputError(problem)
    parts: list[str] = []
    start, fence = 0, None
    while start < len(text):
        opening = f"{fence.opening}\n" if fence else ""
        room = limit - len(opening)
        end = _last_end(text, start, room, unit)
        if end == len(text):
            parts.append(opening + text[start:])
            break
        if fence or "```" in text[start:end] or "~~~" in text[start:end]:
            end = _last_end(text, start, room - _CLOSING, unit)
        cut = _best_cut(text, start, end, fence)
        piece = text[start : cut.at]
        parts.append(f"{opening}{piece}\n{cut.fence.mark}" if cut.fence else f"{opening}{piece}".rstrip())
        start, fence = _next_start(text, cut)
    return tuple(part for part in parts if part.strip())


def _last_end(text: str, start: int, room: int, unit: LengthUnit) -> int:
    """Return the end of the longest piece of the text from *start* that fits into the room."""
    farthest = range(start, min(start + room, len(text)) + 1)
    if unit.length(text[start : farthest[-1]]) <= room:
        return farthest[-1]
    return farthest[bisect_right(farthest, room, key=lambda end: unit.length(text[start:end])) - 1]


def _best_cut(text: str, start: int, end: int, fence: _Fence | None) -> _Cut:
    """Return the last place of the best kind in the second half, else of any kind, else the end of the room.

    The first half is left alone, so that a paragraph early in the text does not make a tiny part.
    """
    last: dict[_Kind, _Cut] = {}
    line = start
    while (newline := text.find("\n", line, end + 1)) != -1:
        after = _fence_after(text[line:newline], fence)
        if after is None or fence is not None:  # never directly after the line that opens a block
            last[_kind_of_cut(text, line, newline, after)] = _Cut(newline, after)
        _note_last_blank(last, text, line, newline, fence)
        line, fence = newline + 1, after
    _note_last_blank(last, text, line, end + 1, fence)
    found = [cut for _, cut in sorted(last.items()) if cut.at > start]
    good = [cut for cut in found if cut.at - start >= (end - start) // 2]
    if good:
        return good[0]
    return max(found, default=_Cut(character_boundary(text, start, end), fence), key=lambda cut: cut.at)


def _kind_of_cut(text: str, line: int, newline: int, fence: _Fence | None) -> _Kind:
    if fence is not None:
        return _Kind.LINE_OF_CODE
    is_blank = text[line:newline].strip() == "" or text[newline + 1 : newline + 2] == "\n"
    return _Kind.PARAGRAPH if is_blank else _Kind.LINE


def _note_last_blank(last: dict[_Kind, _Cut], text: str, line: int, end: int, fence: _Fence | None) -> None:
    """Note the last blank of a line as a cut, unless the line opens or closes a code block."""
    at = max(text.rfind(" ", line, end), text.rfind("\t", line, end))
    if at > line and text[line:at].strip() and not _FENCE.match(text, line):
        last[_Kind.WORD] = _Cut(at, fence)


def _fence_after(line: str, fence: _Fence | None) -> _Fence | None:
    """Return the code block that is open after a line."""
    found = _FENCE.fullmatch(line)
    if found is None:
        return fence
    mark, language = found[1], found[2].strip()
    if fence is None:
        return _Fence(mark, mark + language if _LANGUAGE.fullmatch(language) else mark)
    closes = not language and mark.startswith(fence.mark)
    return None if closes else fence


def _next_start(text: str, cut: _Cut) -> _Cut:
    """Return the place where the next part begins, and the code block that is open there."""
    at, fence = cut
    if fence is not None:
        at += text[at : at + 1].isspace()
        newline = text.find("\n", at)
        line_end = newline if newline != -1 else len(text)
        if _fence_after(text[at:line_end], fence) is not None:
            return _Cut(at, fence)
        at = line_end  # the block was closed by the cut already
    blank = _BLANK_LINES.match(text, at)
    return _Cut(blank.end() if blank else at)
