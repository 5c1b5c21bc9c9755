"""Of a damaged file, everything is read that can be, and what cannot is counted."""

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gateway_sessions.storage.engines.sqlite.salvage import SalvagedCount, columns_of, read_salvageable_rows

PAGE = 4096
ROWS = 3_000
SCHEMA = """
CREATE TABLE notes (note_id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, text TEXT) STRICT;
CREATE TABLE names (name TEXT PRIMARY KEY, number INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX names_by_number ON names (number);
"""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA page_size = {PAGE}")
        connection.executescript(SCHEMA)
        rows = [(n * 7, f"name {n:05}", "x" * 60) for n in range(ROWS)]
        connection.executemany("INSERT INTO notes VALUES (?, ?, ?)", rows)
        connection.executemany("INSERT INTO names VALUES (?, ?)", [(row[1], row[0]) for row in rows])
        connection.commit()
    return path


def spoil(path: Path, page: int) -> None:
    content = bytearray(path.read_bytes())
    content[(page - 1) * PAGE : page * PAGE] = random.Random(page).randbytes(PAGE)
    path.write_bytes(content)


def pages_of(path: Path, table: str) -> list[int]:
    """The pages that hold the rows of a table: where one of its texts stands."""
    content = path.read_bytes()
    mark = {"notes": b"x" * 60, "names": b"name 0"}[table]
    pages = [content[start : start + PAGE] for start in range(0, len(content), PAGE)]
    others = {"notes": (), "names": (b"x" * 60,)}[table]
    return [
        number
        for number, page in enumerate(pages, 1)
        if mark in page and not any(other in page for other in others)
    ]


def read(path: Path, table: str) -> tuple[list[tuple[object, ...]], SalvagedCount]:
    rows: list[tuple[object, ...]] = []
    with closing(sqlite3.connect(path)) as connection:
        outcome = read_salvageable_rows(connection, table, columns_of(connection, table), rows.append)
    return rows, outcome


@pytest.mark.parametrize("table", ["notes", "names"])
def test_a_whole_table_is_read_completely(database: Path, table: str):
    rows, outcome = read(database, table)
    assert len(set(rows)) == len(rows) == ROWS
    assert outcome == SalvagedCount(rows=ROWS, complete=True, unreadable=0)


@pytest.mark.parametrize("where", [0.2, 0.5, 0.8])
def test_only_the_rows_of_a_damaged_page_are_lost_and_they_are_counted(database: Path, where: float):
    whole, _ = read(database, "notes")
    pages = pages_of(database, "notes")
    spoil(database, pages[int(len(pages) * where)])
    rows, outcome = read(database, "notes")
    assert not outcome.complete
    assert 0 < outcome.unreadable < 60
    assert set(rows) < set(whole)
    assert len(set(rows)) == len(rows) == outcome.rows == ROWS - outcome.unreadable


def test_two_damaged_pages_cost_nothing_of_what_lies_between_them(database: Path):
    pages = pages_of(database, "notes")
    for where in (0.3, 0.6):
        spoil(database, pages[int(len(pages) * where)])
    rows, outcome = read(database, "notes")
    assert 0 < outcome.unreadable < 120
    assert len(rows) == ROWS - outcome.unreadable


def test_a_table_without_row_ids_is_read_from_both_ends(database: Path):
    whole, _ = read(database, "names")
    pages = [page for page in pages_of(database, "names") if page > 3]
    spoil(database, pages[len(pages) // 2])
    rows, outcome = read(database, "names")
    assert set(rows) <= set(whole)
    assert len(set(rows)) == len(rows)
    assert outcome.complete or len(rows) + outcome.unreadable > ROWS * 0.9


def test_a_table_that_is_not_there_has_no_columns(database: Path):
    with closing(sqlite3.connect(database)) as connection:
        assert columns_of(connection, "nothing") == ()


def test_a_file_that_is_no_database_has_no_tables(tmp_path: Path):
    path = tmp_path / "a.db"
    path.write_bytes(bytes(8 * PAGE))
    with closing(sqlite3.connect(path)) as connection:
        assert columns_of(connection, "notes") == ()
