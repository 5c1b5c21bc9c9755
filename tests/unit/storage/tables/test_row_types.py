"""The fields of each row type are the columns that SQLite reports for its queries."""

import importlib
import inspect
import pkgutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

import gateway_sessions.storage
from gateway_sessions.storage.engines.sqlite.schema import statements
from gateway_sessions.storage.tables.sql_files import ROW_TYPES, load_migrations, load_queries, row_of

QUERIES = load_queries("sqlite")
FEW = 2
"""So many columns are unpacked where they are read."""
GENERIC = ("move_out_", "forms_of_")
"""Whole tables, for moves and repairs: their code names no column, and treats all tables alike."""
NOT_YET = frozenset(
    {
        "accounts_owing",
        "all_owed_replies",
        "all_owed_to_lane",
        "changed_messages",
        "dead_item",
        "dead_items",
        "dead_replies",
        "dead_turn",
        "dead_turn_of_lane",
        "index_limits",
        "insight_usage",
        "insight_usage_of_owners",
        "items_of_person_until",
        "kept_event",
        "kept_items_of_person",
        "kept_replies_of_person",
        "lane_and_queue",
        "lane_row",
        "messages_as_taken_in",
        "messages_to_index",
        "messages_to_index_again",
        "open_commands",
        "open_items",
        "open_items_of_person",
        "owed_replies",
        "owed_replies_among",
        "ready_lanes",
        "recent_turn_heads",
        "said_around",
        "search_candidates",
        "search_hits",
        "session_as_taken_in",
        "texts_between",
        "unindexed_messages",
        "usage_of_session",
        "waiting_among",
        "waiting_item",
        "waiting_lanes",
        "whole_search_candidates",
    }
)
"""Queries whose rows are still read by places. None may be added."""


@pytest.fixture(scope="module")
def columns() -> Iterator[dict[str, list[str]]]:
    """The columns that each query answers with."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for step in load_migrations("sqlite"):
            for statement in statements(step.script):
                connection.execute(statement)
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
    assert wide - ROW_TYPES.keys() == NOT_YET


def test_the_fields_of_each_row_type_are_the_columns_of_its_queries(columns: dict[str, list[str]]):
    wrong = {}
    for name, row_type in ROW_TYPES.items():
        fields = list(inspect.signature(row_type).parameters.values())
        names = [one.name for one in fields]
        missing = fields[len(columns[name]) :]  # a query may leave out the last ones, if they have a default
        if names[: len(columns[name])] != columns[name] or any(one.default is one.empty for one in missing):
            wrong[name] = (names, columns[name])
    assert wrong == {}


def test_every_row_type_belongs_to_a_query_that_exists():
    assert ROW_TYPES.keys() <= QUERIES.keys()


def test_a_query_has_one_row_type():
    name, row_type = next(iter(ROW_TYPES.items()))
    assert row_of(name)(row_type) is row_type
    with pytest.raises(ValueError, match=name):
        row_of(name)(dict)
