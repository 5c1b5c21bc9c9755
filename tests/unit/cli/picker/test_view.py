"""What a picker shows fits its terminal, whatever strangers wrote, and says where one is."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from gateway_sessions.cli.picker.model import (
    PageRequest,
    Picker,
    PickerKey,
    Typed,
    after_page,
    after_press,
    after_resize,
)
from gateway_sessions.cli.picker.view import MARK, picker_lines, rows_that_fit
from gateway_sessions.sessions import SessionSummary

NOW = datetime(2026, 1, 10, tzinfo=UTC)


def row(number: int = 0, **told: object) -> SessionSummary:
    given = {
        "session_id": f"20260101_000000_{number:08x}",
        "source": "telegram",
        "title": None,
        "preview": f"said {number}",
        "last_active": NOW - timedelta(hours=2),
        "started_at": NOW,
        "lineage_root": "",
        "message_count": 1234,
    }
    return SessionSummary(**(given | told))  # type: ignore[arg-type]


def over(*rows: SessionSummary, height: int = 10, whole: bool = True) -> Picker:
    return after_page(after_resize(Picker(), rows_that_fit(height)), PageRequest("", None), rows, whole=whole)


def shown(picker: Picker, width: int = 80, height: int = 10, of: str | None = None) -> list[str]:
    return [line.plain.rstrip() for line in picker_lines(picker, NOW, width, height, of=of)]


def test_a_conversation_is_a_line_of_what_people_know_it_by():
    first, headings, titled, untitled, *_ = shown(over(row(title="my trip"), row(1), row(2)))
    assert first == "Conversations"
    assert headings.split() == ["Conversation", "Messages", "Source", "Active"]
    assert titled.split() == [">", "my", "trip", "said", "0", "1,234", "telegram", "2h", "ago"]
    assert untitled.split()[:2] == ["said", "1"]
    assert shown(over(), of="slack")[0] == "Conversations of slack"


def test_what_is_selected_is_marked_and_named_whole():
    lines = shown(after_press(over(row(), row(1, session_key="agent:main:telegram:dm:1")), PickerKey.DOWN))
    assert [line.startswith(MARK) for line in lines[2:4]] == [False, True]
    assert lines[-2] == "20260101_000000_00000001  agent:main:telegram:dm:1"
    assert lines[-1].endswith("2 of 2")
    assert shown(over(row(), whole=False))[-1].endswith("1 of 1+")


@pytest.mark.parametrize(
    ("width", "columns"),
    [
        (80, ["Messages", "Source", "Active"]),
        (52, ["Messages", "Source", "Active"]),
        (51, ["Source", "Active"]),
        (42, ["Source", "Active"]),
        (40, ["Active"]),
        (29, []),
    ],
)
def test_in_a_narrow_terminal_the_least_important_columns_go(width: int, columns: list[str]):
    assert shown(over(row()), width)[1].split() == ["Conversation", *columns]


@pytest.mark.parametrize(
    ("height", "rows"), [(24, 20), (8, 4), (7, 4), (6, 3), (5, 3), (3, 1), (2, 1), (1, 1)]
)
def test_in_a_low_terminal_rows_come_first(height: int, rows: int):
    assert rows_that_fit(height) == rows
    lines = shown(over(*map(row, range(30)), height=height), height=height)
    assert len(lines) == height
    assert sum("said" in line for line in lines) == (rows if height > 1 else 0)


def test_wide_characters_are_cut_as_a_whole():
    for width in range(1, 60):
        for line in picker_lines(over(row(title="火车几点出发" * 5, preview="🚂" * 40)), NOW, width, 10):
            assert line.cell_len <= width
    line = shown(over(row(title="a火火火火火火火火火火火火火火火火", preview="")), 40)[2]
    assert line.startswith("> a火火火火火火火火火火火")
    assert "…" in line


@pytest.mark.parametrize(
    ("preview", "seen"),
    [("a\x1b[31mred\nline", "a [31mred line"), ("[bold]x", "[bold]x"), ("❤\ufe0f!", "❤!"), ("", "—")],
)
def test_what_strangers_wrote_is_a_harmless_line(preview: str, seen: str):
    assert shown(over(row(preview=preview)))[2].startswith(f"> {seen}  ")


def test_what_is_looked_for_is_shown_and_whether_that_is_still_going_on():
    typed = after_press(after_press(over(row()), Typed("x")), Typed("y"))
    assert shown(typed)[0] == "Find: xy  …"
    assert "said 0" in shown(typed)[2], "what was there stays until there is something else"
    nothing = after_page(typed, PageRequest("xy", None), (), whole=True)
    assert shown(nothing)[0] == "Find: xy"
    assert shown(nothing)[2] == "Nothing holds “xy”."
    assert "Esc show all" in shown(nothing)[-1]


def test_an_empty_store_says_so_and_one_that_was_not_read_yet_does_not():
    assert "There are no conversations." in shown(over())
    assert "…" in shown(after_resize(Picker(), 6))


def test_the_last_line_asks_tells_or_helps():
    asked = after_press(over(row(title="my trip")), PickerKey.DELETE)
    assert shown(asked)[-1] == "Delete “my trip” with 1,234 messages? y/n"
    assert shown(asked, 35)[-1] == "Delete “…” with 1,234 messages? y/n"
    assert shown(after_press(asked, Typed("y")))[-1].startswith("Deleting 2026")
    assert shown(replace(over(row()), note="it is\nin use"))[-1] == "it is in use"
    long = shown(replace(over(row()), note="a word " * 20), 80)
    assert (long[-2], long[-1]) == (("a word " * 20)[:80].rstrip(), ("a word " * 20)[80:].rstrip())
    assert "/ find · q leave · d delete" in shown(over(row()))[-1]
    assert shown(over(row()), 30)[-1].split() == ["Enter", "go", "on", "·", "/", "find", "1", "of", "1"]
    assert shown(over(row()), 12)[-1].split() == ["1", "of", "1"]


@given(
    st.lists(st.text(max_size=60), max_size=5),
    st.text(max_size=30),
    st.integers(1, 120),
    st.integers(1, 30),
    st.sampled_from([None, PickerKey.DELETE, PickerKey.FIND, PickerKey.END]),
)
def test_every_picture_fits_its_terminal(
    texts: list[str], note: str, width: int, height: int, key: PickerKey | None
):
    rows = [row(number, title=text, preview=text[::-1], source=text) for number, text in enumerate(texts)]
    picker = over(*rows, height=height)
    picker = replace(picker if key is None else after_press(picker, key), note=note)
    lines: list[Text] = picker_lines(picker, NOW, width, height)
    assert len(lines) == height
    assert all(line.cell_len <= width for line in lines)
    assert all(category(character) != "Cc" for line in lines for character in line.plain)
