"""Many rows for one statement."""

import pytest

from gateway_sessions.storage.engines.mysql.connection import (
    MOST_CHARACTERS,
    portions_of_rows,
    without_null_columns,
)

HALF = "x" * (MOST_CHARACTERS // 2)
SQL = "INSERT INTO t (a, b, c) VALUES (?, ?, ?)"


@pytest.mark.parametrize(
    ("rows", "sizes"),
    [
        ([], []),
        ([(1,)], [1]),
        ([(1, "a")] * 5, [5]),
        ([(HALF,)] * 5, [2, 2, 1]),
        ([(HALF + "x",)] * 2, [1, 1]),
        ([(1,), (HALF * 3,), (2,)], [1, 1, 1]),
    ],
)
def test_a_message_holds_what_it_can(rows: list[tuple[object, ...]], sizes: list[int]):
    made = list(portions_of_rows(rows))
    assert [len(one) for one in made] == sizes
    assert [row for one in made for row in one] == rows


def test_columns_that_are_always_empty_are_said():
    rows = [(1, None, None), (2, None, "x")]
    assert without_null_columns(SQL, rows) == (
        "INSERT INTO t (a, b, c) VALUES (?, NULL, ?)",
        [(1, None), (2, "x")],
    )


def test_where_nothing_is_empty_nothing_is_changed():
    rows = [(1, 2, 3), (4, None, 6)]
    assert without_null_columns(SQL, rows) == (SQL, rows)
