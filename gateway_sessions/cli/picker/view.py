"""The lines of a picker: as many as the terminal has, none of them wider than it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from rich.cells import cell_len, chop_cells
from rich.text import Text

from gateway_sessions.cli.output.terminal import NONE, safe_line
from gateway_sessions.cli.picker.model import Picker
from gateway_sessions.core.notices.human_units import ago, counted
from gateway_sessions.core.sessions.record import SessionSummary

MARK: Final = "> "
GAP: Final = 2
LEAST: Final = 16
"""The least width of a conversation's name; columns are left out before it gets narrower."""
WITH_HEADINGS, WITH_DETAIL = 8, 6
"""The heights of a terminal from which headings and details are shown."""
COMMAND_HINTS: Final = ("Enter go on", "/ find", "q leave", "d delete", "↑↓ move")
FINDING_HINTS: Final = ("Enter go on", "Esc show all", "↑↓ move")
_EMOJI_STYLE: Final = "\ufe0f"
"""Selects the coloured form of a character, about whose width terminals disagree."""


@dataclass(frozen=True, slots=True)
class _PickerColumn:
    name: str
    width: int
    side: Literal["left", "right"] = "left"


# The last column is left out first.
_BESIDE: Final = (
    _PickerColumn("Active", 10),
    _PickerColumn("Source", 10),
    _PickerColumn("Messages", 8, "right"),
)
_SHOWN: Final = ("Messages", "Source", "Active")


def rows_that_fit(height: int) -> int:
    """Return how many rows of the list fit."""
    return max(height - 2 - (height >= WITH_DETAIL) - (height >= WITH_HEADINGS), 1)


def picker_lines(
    picker: Picker, now: datetime, width: int, height: int, *, of: str | None = None
) -> list[Text]:
    """Return all lines of the terminal; *of* is the source that the list is limited to."""
    columns = _columns_that_fit(width)
    lines = [_title_line(picker, of)]
    if height >= WITH_HEADINGS:
        lines.append(
            _padded_line(Text("Conversation"), [(one, Text(one.name)) for one in columns], width, "bold")
        )
    lines += _row_lines(picker, now, columns, width, rows_that_fit(height))
    foot = _status_lines(picker, width)
    if height >= WITH_DETAIL:
        # A long note takes the line of the details as well.
        lines.append(foot.pop(0) if len(foot) > 1 else _detail_line(picker.selected))
    lines.append(foot[0])
    return [_cut_to_width(line, width) for line in lines[-height:]]


def _columns_that_fit(width: int) -> list[_PickerColumn]:
    """Return the columns that fit beside a conversation's name, in the order in which they are shown."""
    room = width - len(MARK) - LEAST
    shown: set[str] = set()
    for one in _BESIDE:
        room -= one.width + GAP
        if room < 0:
            break
        shown.add(one.name)
    by_name = {one.name: one for one in _BESIDE}
    return [by_name[name] for name in _SHOWN if name in shown]


def _title_line(picker: Picker, of: str | None) -> Text:
    if picker.typed_text is None:
        what = f"Conversations of {safe_line(of)}" if of else "Conversations"
        return Text(what, style="bold")
    line = Text("Find: ", style="bold")
    line.append(picker.typed_text, style="not bold")
    line.append(" ", style="reverse")
    return line.append("" if picker.is_fresh else " …", style="dim not bold")


def _row_lines(
    picker: Picker, now: datetime, columns: list[_PickerColumn], width: int, room: int
) -> Iterable[Text]:
    seen = picker.rows[picker.first_shown : picker.first_shown + room]
    lines = [
        _session_line(one, now, columns, width, selected=picker.first_shown + place == picker.selected_index)
        for place, one in enumerate(seen)
    ]
    if not lines:
        lines.append(Text(_empty_list_text(picker), style="dim"))
    return lines + [Text() for _ in range(room - len(lines))]


def _empty_list_text(picker: Picker) -> str:
    if not picker.is_fresh:
        return "…"
    return f"Nothing holds “{picker.search_text}”." if picker.search_text else "There are no conversations."


def _session_line(
    one: SessionSummary, now: datetime, columns: list[_PickerColumn], width: int, *, selected: bool
) -> Text:
    values = {
        "Messages": f"{one.message_count:,}",
        "Source": _line_without_emoji_style(one.source),
        "Active": ago(one.last_active, now),
    }
    called = Text()
    if one.title:
        called.append(_line_without_emoji_style(one.title), style="bold")
    if one.preview or not one.title:
        said = _line_without_emoji_style(one.preview)
        called.append(f"  {said}" if one.title else said, style="dim" if one.title else "")
    beside = [(column, Text(values[column.name])) for column in columns]
    return _padded_line(called, beside, width, "reverse" if selected else "", mark=selected)


def _padded_line(
    first: Text, beside: Iterable[tuple[_PickerColumn, Text]], width: int, style: str, *, mark: bool = False
) -> Text:
    cells = list(beside)
    room = max(width - len(MARK) - sum(column.width + GAP for column, _ in cells), 0)
    line = Text(MARK if mark else " " * len(MARK), style=style)
    line.append_text(_cut_to_width(first, room)).append(" " * (room - first.cell_len))
    for column, value in cells:
        _cut_to_width(value, column.width).align(column.side, column.width)
        line.append(" " * GAP).append_text(value)
    return line


def _cut_to_width(text: Text, width: int) -> Text:
    """Return the text cut to a width; a wide character that does not fit is left out."""
    if width < 1:
        text.plain = ""
    else:
        text.truncate(width, overflow="ellipsis")
    return text


def _detail_line(one: SessionSummary | None) -> Text:
    if one is None:
        return Text()
    known = (one.session_id, one.session_key, one.model)
    return Text("  ".join(safe_line(part) for part in known if part), style="dim")


def _status_lines(picker: Picker, width: int) -> list[Text]:
    """Return the question, the note, or the key hints with the position: one or two lines."""
    if picker.to_confirm is not None:
        return [_deletion_question(picker.to_confirm, width)]
    if picker.deleting is not None:
        return [Text(f"Deleting {picker.deleting.session_id} …", style="bold")]
    if picker.note:
        return [
            Text(line, style="bold") for line in chop_cells(_line_without_emoji_style(picker.note), width)[:2]
        ]
    where = _position_text(picker)
    left = _hints_that_fit(
        FINDING_HINTS if picker.typed_text is not None else COMMAND_HINTS, width - cell_len(where) - GAP
    )
    gap = max(width - cell_len(left) - cell_len(where), 0)
    return [Text(f"{left}{' ' * gap}{where}", style="dim")]


def _deletion_question(one: SessionSummary, width: int) -> Text:
    """Return the whole question before a deletion; the name of the conversation is cut if needed."""
    called = _line_without_emoji_style(one.title or one.preview or one.session_id)
    question = f" with {counted(one.message_count, 'message')}? y/n"
    name = _cut_to_width(Text(called), width - len("Delete “”") - len(question))
    return Text(f"Delete “{name.plain}”{question}", style="bold")


def _position_text(picker: Picker) -> str:
    if not picker.rows or not picker.is_fresh:
        return ""
    return f"{picker.selected_index + 1:,} of {len(picker.rows):,}{'' if picker.has_all_rows else '+'}"


def _hints_that_fit(hints: Iterable[str], room: int) -> str:
    told = ""
    for one in hints:
        longer = f"{told} · {one}" if told else one
        if cell_len(longer) > room:
            break
        told = longer
    return told


def _line_without_emoji_style(text: str | None) -> str:
    """Return a stranger's text as one safe line whose width is the same on all terminals."""
    return safe_line(text).replace(_EMOJI_STYLE, "") or NONE
