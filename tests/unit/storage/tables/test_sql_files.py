"""The SQL files are complete, described, and each statement is one that SQLite understands."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gateway_sessions.storage.tables.sql_files import ROOT, load_migrations, load_queries
from tests.raw_sql import migrated_in_memory

QUERIES = load_queries("sqlite")
ENGINES = ("sqlite", "postgresql", "mysql")
OF_AN_INDEX_IN_THE_DATABASE = frozenset(
    {"what_it_says", "fits", "must_be_looked_at", "all_that", "forget_noted"}
)
HEAD = re.compile(r"^-- (name|fragment): (\w+).*\n(.*)$", re.MULTILINE)


@pytest.fixture(scope="module")
def database() -> Iterator[sqlite3.Connection]:
    with closing(migrated_in_memory()) as connection:
        yield connection


@pytest.mark.parametrize("name", QUERIES)
def test_every_query_is_one_statement_that_fits_the_schema(database: sqlite3.Connection, name: str):
    query = QUERIES[name]
    assert query.sql
    assert ";" not in query.sql.rstrip(";")
    parameters = [None] * query.sql.count("?")
    database.execute(f"EXPLAIN {query.sql}", parameters)


def heads_in(folder: str) -> Iterator[tuple[str, str, str]]:
    """What every part of a folder is, its name, and the line below."""
    for file in (ROOT / folder).iterdir():
        if file.name.endswith(".sql"):
            yield from HEAD.findall(file.read_text("utf-8"))


@pytest.mark.parametrize("folder", ["store", *ENGINES, "search_index", "search_column"])
def test_every_query_and_fragment_says_what_it_is_for(folder: str):
    heads = list(heads_in(folder))
    assert heads
    assert [name for _, name, below in heads if not below.startswith("-- ")] == []


def test_engines_differ_in_the_same_fragments_only():
    differing = [
        sorted((kind, name) for kind, name, _ in heads_in(engine) if name not in OF_AN_INDEX_IN_THE_DATABASE)
        for engine in ENGINES
    ]
    assert not OF_AN_INDEX_IN_THE_DATABASE & {name for _, name, _ in heads_in("sqlite")}
    assert all(others == differing[0] for others in differing)
    assert {kind for kind, _ in differing[0]} == {"fragment"}


def test_every_fragment_is_used():
    folders = ("store", *ENGINES, "search_index", "search_column")
    files = [file for folder in folders for file in (ROOT / folder).iterdir() if file.name.endswith(".sql")]
    used = {name for file in files for name in re.findall(r"\{(\w+)[:}]", file.read_text("utf-8"))}
    assert {name for folder in folders for kind, name, _ in heads_in(folder) if kind == "fragment"} == used


def assignments(sql: str) -> Iterator[tuple[str, str]]:
    """The columns that an UPDATE sets, and what to."""
    depth, parts = 0, [""]
    for token in re.findall(r"[(),]|[^(),]+", sql[sql.index("SET ") + len("SET ") :]):
        depth += (token == "(") - (token == ")")
        if depth == 0 and token == ",":
            parts.append("")
            continue
        before_where, *behind = re.split(r"\bWHERE\b", token, maxsplit=1) if depth == 0 else [token]
        parts[-1] += before_where
        if behind:
            break
    for part in parts:
        column, _, value = part.partition("=")
        yield column.strip().rpartition(".")[2], value


@pytest.mark.parametrize(
    "name", [name for name, query in load_queries("mysql").items() if query.sql.startswith("UPDATE")]
)
def test_no_change_reads_what_it_has_just_written(name: str):
    """MySQL would find the new value there, all others the old one."""
    written: set[str] = set()
    for column, value in assignments(load_queries("mysql")[name].sql):
        assert re.fullmatch(r"\w+", column)
        assert not written & set(re.findall(r"(?<![.\w])\w+", value))
        written.add(column)


def test_migrations_are_numbered_without_gaps():
    steps = load_migrations("sqlite")
    assert [step.version for step in steps] == list(range(1, len(steps) + 1))


def test_an_unknown_engine_is_an_error():
    with pytest.raises(FileNotFoundError):
        load_queries("no-such-engine")


def test_a_dialect_says_some_things_otherwise_and_the_rest_as_its_engine_does(tmp_path: Path):
    (tmp_path / "ours.sql").write_text(
        "-- fragment: greater\n-- The greater one of two.\nbigger_of\n\n"
        "-- name: known_event\n-- Whether it was accepted before.\n"
        "SELECT session_key, seq FROM heard WHERE event = ?\n"
    )
    usual, other = load_queries("postgresql"), load_queries("postgresql", dialect=tmp_path)
    assert other["known_event"].sql == "SELECT session_key, seq FROM heard WHERE event = $1"
    assert "bigger_of(media, $2)" in other["extend_item"].sql
    changed = {name for name in usual if usual[name] != other[name]}
    assert changed == {name for name in usual if "greatest" in usual[name].sql} | {"known_event"}
    assert load_migrations("postgresql", tmp_path) == load_migrations("postgresql")


def test_a_dialect_may_have_tables_of_its_own(tmp_path: Path):
    (tmp_path / "migrations").mkdir()
    (tmp_path / "migrations" / "0001_first.sql").write_text("CREATE TABLE meta (name text)")
    (step,) = load_migrations("postgresql", tmp_path)
    assert (step.version, step.name, step.script) == (1, "0001_first", "CREATE TABLE meta (name text)")
