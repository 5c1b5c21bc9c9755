"""Tables fit their room: what people copy is whole, the widest text gives way first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from gateway_sessions.cli.output.terminal import Column, fit_widths, rows_table, safe_line

GAP = 2


@pytest.mark.parametrize(
    ("widths", "least", "room", "shown"),
    [
        ([10, 40, 24], [6, 6, 24], 100, {0: 10, 1: 40, 2: 24}),
        ([10, 40, 24], [6, 6, 24], 60, {0: 10, 1: 22, 2: 24}),
        ([10, 40, 24], [6, 6, 24], 42, {0: 7, 1: 7, 2: 24}),
        ([10, 40, 24], [6, 6, 24], 36, {0: 10, 2: 24}),
        ([10, 40, 24], [6, 6, 24], 30, {2: 24}),
        ([24], [24], 10, {0: 24}),
    ],
)
def test_the_widest_gives_way_and_what_is_copied_stays(
    widths: list[int], least: list[int], room: int, shown: dict[int, int]
):
    assert fit_widths(least, widths, room, GAP) == shown


@given(st.lists(st.tuples(st.integers(1, 60), st.booleans()), min_size=1, max_size=6), st.integers(1, 200))
def test_it_fits_unless_only_what_is_copied_is_left(columns: list[tuple[int, bool]], room: int):
    widths = [width for width, _ in columns]
    least = [width if whole else min(width, 6) for width, whole in columns]
    shown = fit_widths(least, widths, room, GAP)
    fits = sum(shown.values()) + GAP * (len(shown) - 1) <= room
    assert fits or all(least[place] == widths[place] for place in shown)
    assert {place for place in range(len(widths)) if least[place] == widths[place]} <= shown.keys()
    assert all(least[place] <= width <= widths[place] for place, width in shown.items())


KEY = "agent:main:telegram:dm:1029384701"
COLUMNS = (
    Column("Lane", whole=True),
    Column("State"),
    Column("Waiting", right=True, leaves=1),
    Column("Lease", leaves=2),
)


@pytest.mark.parametrize(
    ("room", "shown"),
    [
        (120, f"{KEY} running 12 1.1"),
        (58, f"{KEY} running 12 1.1"),
        (57, f"{KEY} running 12"),
        (51, f"{KEY} running 12"),
        (50, f"{KEY} running"),
        (40, "agent:main:tele…m:dm:1029384701 running"),
        (24, "agent:m…9384701 running"),
    ],
)
def test_a_column_leaves_before_another_is_squeezed_and_a_key_keeps_both_ends(room: int, shown: str):
    console = Console(width=room)
    with console.capture() as capture:
        console.print(rows_table(COLUMNS, [(KEY, "running", "12", "1.1")]))
    head, row = capture.get().splitlines()
    assert " ".join(row.split()) == shown
    assert max(len(head.rstrip()), len(row.rstrip())) <= room


def test_what_strangers_wrote_is_one_harmless_line():
    assert safe_line("a\x1b[31m\nb\t c") == "a [31m b c"
    assert safe_line("") == safe_line(None) == "—"
