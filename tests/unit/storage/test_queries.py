"""The SQL files are complete, described, and each statement is one that SQLite understands."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from gateway_sessions.storage.drivers.sqlite_schema import statements
from gateway_sessions.storage.queries import ROOT, load_migrations, load_queries

QUERIES = load_queries("sqlite")


@pytest.fixture
def database() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        for step in load_migrations("sqlite"):
            for statement in statements(step.script):
                connection.execute(statement)
        yield connection


@pytest.mark.parametrize("name", QUERIES)
def test_every_query_is_one_statement_that_fits_the_schema(database: sqlite3.Connection, name: str):
    query = QUERIES[name]
    assert query.sql
    assert ";" not in query.sql.rstrip(";")
    parameters = [None] * query.sql.count("?")
    database.execute(f"EXPLAIN {query.sql}", parameters)


def test_every_query_says_what_it_does():
    for file in (ROOT / "sqlite").iterdir():
        if file.name.endswith(".sql"):
            lines = file.read_text("utf-8").splitlines()
            heads = [number for number, line in enumerate(lines) if line.startswith("-- name: ")]
            assert heads
            assert all(lines[number + 1].startswith("-- ") for number in heads), file.name


def test_migrations_are_numbered_without_gaps():
    steps = load_migrations("sqlite")
    assert [step.version for step in steps] == list(range(1, len(steps) + 1))


def test_an_unknown_engine_is_an_error():
    with pytest.raises(FileNotFoundError):
        load_queries("no-such-engine")
