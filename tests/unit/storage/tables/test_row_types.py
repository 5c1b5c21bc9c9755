"""The fields of each row type are the columns that SQLite reports for its queries."""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from contextlib import closing

import pytest

import gateway_sessions.storage
from gateway_sessions.storage.tables.sql_files import (
    RECORD_TYPES,
    ROW_TYPES,
    Columns,
    load_queries,
    row_of,
)
from tests.raw_sql import migrated_in_memory

QUERIES = load_queries("sqlite")
FEW = 2
"""So many columns are unpacked where they are read."""
GENERIC = ("move_out_", "move_in_", "forms_of_")
"""Whole tables, for moves and repairs: their code names no column, and treats all tables alike."""
WIDE_INSERT = 6
"""A statement that writes more columns than these takes a record with their names."""


@pytest.fixture(scope="module")
def columns() -> Iterator[dict[str, list[str]]]:
    """The columns that each query answers with."""
    with closing(migrated_in_memory()) as connection:
        found = {}
        for name, query in QUERIES.items():
            if query.reads or "RETURNING" in query.sql:
                answer = connection.execute(query.sql, [1] * query.sql.count("?"))
                found[name] = [one[0] for one in answer.description]
        yield found


@pytest.fixture(scope="module", autouse=True)
def every_row_type_is_registered() -> None:
    for module in pkgutil.walk_packages(gateway_sessions.storage.__path__, "gateway_sessions.storage."):
        if ".engines." not in module.name:  # drivers of servers need not be installed
            importlib.import_module(module.name)


def test_every_query_of_more_than_two_columns_has_its_row_type(columns: dict[str, list[str]]):
    wide = {name for name, names in columns.items() if len(names) > FEW and not name.startswith(GENERIC)}
    assert wide <= ROW_TYPES.keys()


def names_in(columns: Columns) -> list[str]:
    return [*columns.in_front, *inspect.signature(columns.fields).parameters]


def test_the_fields_of_each_row_type_are_the_columns_of_its_queries(columns: dict[str, list[str]]):
    wrong = {}
    for name, row_type in ROW_TYPES.items():
        names, found = names_in(row_type), columns[name]
        fields = list(inspect.signature(row_type.fields).parameters.values())
        missing = fields[len(found) - len(row_type.in_front) :]
        # a query may leave out the last ones, if they have a default
        if names[: len(found)] != found or any(one.default is one.empty for one in missing):
            wrong[name] = (names, found)
    assert wrong == {}


def parts_of(text: str) -> list[str]:
    """Split a list at its commas, except those inside of brackets, up to the bracket that closes the list."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            break
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def columns_written(sql: str) -> list[str]:
    """Return the columns to which an `INSERT` gives a parameter of its own."""
    told = re.match(r"INSERT INTO \w+\s*\((.*?)\)\s*VALUES \((.*)", sql, re.DOTALL)
    if told is None:
        return []
    return [
        column for column, value in zip(parts_of(told[1]), parts_of(told[2]), strict=True) if value == "?"
    ]


def test_every_insert_of_many_columns_takes_a_record_with_their_names():
    written = {name: columns_written(query.sql) for name, query in QUERIES.items()}
    wide = {name for name, names in written.items() if len(names) > WIDE_INSERT}
    assert {name for name in wide if not name.startswith(GENERIC)} == RECORD_TYPES.keys()
    assert {name: names_in(record) for name, record in RECORD_TYPES.items()} == {
        name: written[name] for name in RECORD_TYPES
    }


def test_every_row_type_belongs_to_a_query_that_exists():
    assert ROW_TYPES.keys() | RECORD_TYPES.keys() <= QUERIES.keys()


def test_a_query_has_one_row_type():
    name, columns = next(iter(ROW_TYPES.items()))
    assert row_of(name, in_front=columns.in_front)(columns.fields) is columns.fields
    with pytest.raises(ValueError, match=name):
        row_of(name)(dict)
