"""Tables fit their room: what people copy is whole, the widest text gives way first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_sessions.cli.screen import fitted, inline

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
    assert fitted(least, widths, room, GAP) == shown


@given(st.lists(st.tuples(st.integers(1, 60), st.booleans()), min_size=1, max_size=6), st.integers(1, 200))
def test_it_fits_unless_only_what_is_copied_is_left(columns: list[tuple[int, bool]], room: int):
    widths = [width for width, _ in columns]
    least = [width if whole else min(width, 6) for width, whole in columns]
    shown = fitted(least, widths, room, GAP)
    fits = sum(shown.values()) + GAP * (len(shown) - 1) <= room
    assert fits or all(least[place] == widths[place] for place in shown)
    assert {place for place in range(len(widths)) if least[place] == widths[place]} <= shown.keys()
    assert all(least[place] <= width <= widths[place] for place, width in shown.items())


def test_what_strangers_wrote_is_one_harmless_line():
    assert inline("a\x1b[31m\nb\t c") == "a [31m b c"
    assert inline("") == inline(None) == "—"
