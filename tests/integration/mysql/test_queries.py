"""What is said to SQLite can be said to MySQL and MariaDB: the same queries, on the same tables."""

import asyncio
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest

from gateway_sessions.storage.engines.mysql.asyncmy_types import MySQLError
from gateway_sessions.storage.tables.sql_files import Query, load_migrations, load_queries
from tests.mysql import lend_pool, migrated_database_at, open_connection
from tests.raw_sql import migrated_in_memory

EMBEDDED = load_queries("sqlite")
SERVER = load_queries("mysql")
SEARCH = load_queries("mysql", "store", "search_column")
"""The same with what only a database is asked for that keeps the search index itself."""
TELLING = frozenset({"add_message", "add_text", "add_imported_message", "move_in_messages"})
"""Also tell the index of the messages they write."""
FOUND_BY = ("messages", "tokens", "longtext", "YES", "ascii_bin")
INDEXES_OF_SEARCH = frozenset({"messages_by_tokens", "messages_without_tokens"})
KINDS = {
    "TEXT": {"varbinary", "varchar", "longtext"},
    "INTEGER": {"bigint"},
    "REAL": {"double"},
    "ANY": {"longtext"},
}
TEXTS = {6, 249, 250, 251, 252, 253}
NUMBERS = {3, 5, 8}
"""What asyncmy calls the kinds of columns that Python reads as str, int and float."""
FITS_EVERYWHERE = "0"
"""A text, a number, and JSON."""
NOT_FOR_THESE_VALUES = {1048, 1062}
"""A row lacks something, or is there already."""
COLUMNS = """
    SELECT table_name, column_name, data_type, is_nullable, collation_name FROM information_schema.columns
    WHERE table_schema = database() AND coalesce(generation_expression, '') = '' AND table_name <> 'locks'
    ORDER BY CAST(table_name AS BINARY), ordinal_position
"""
INDEXES = """
    SELECT DISTINCT index_name FROM information_schema.statistics
    WHERE table_schema = database() AND index_name NOT IN ('PRIMARY', 'session_id', 'session_key')
"""
"""Without those that a column or a key has by itself."""
UNBOUNDED = """
    SELECT table_name, column_name FROM information_schema.statistics
    WHERE table_schema = database() AND sub_part IS NOT NULL AND (non_unique = 0 OR index_name = 'PRIMARY')
"""
MACHINERY = """
    SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = database()
    UNION ALL SELECT routine_name FROM information_schema.routines WHERE routine_schema = database()
    UNION ALL SELECT event_name FROM information_schema.events WHERE event_schema = database()
    UNION ALL SELECT table_name FROM information_schema.tables
        WHERE table_schema = database() AND (table_type <> 'BASE TABLE' OR engine <> 'InnoDB')
"""


@dataclass(frozen=True)
class Answer:
    """What the server makes of a query."""

    parameters: int = 0
    columns: tuple[int, ...] = ()
    error: str | None = None


@dataclass(frozen=True)
class Server:
    """All that the tests ask one database for."""

    queries: Mapping[str, Answer]
    columns: list[tuple[str, str, str, str, str | None]]
    indexes: set[str]
    cut_keys: list[object]
    machinery: list[object]


@pytest.fixture(scope="module")
def server() -> Server:
    return asyncio.run(_ask_server())


async def _ask_server() -> Server:
    async with (
        migrated_database_at() as address,
        lend_pool(address) as pool,
        open_connection(address) as link,
    ):
        connection = await pool.acquire()
        try:
            await connection.query("START TRANSACTION")
            queries = {name: await _try(connection, query) for name, query in SEARCH.items()}
        finally:
            connection.close()
            pool.release(connection)
        return Server(
            queries,
            [tuple(row) for row in await link.fetch(COLUMNS)],
            {row[0] for row in await link.fetch(INDEXES)},
            list(await link.fetch(UNBOUNDED)),
            list(await link.fetch(MACHINERY)),
        )


async def _try(connection: Any, query: Query) -> Answer:
    try:
        statement = await connection.prepare(query.sql)
        parameters = statement.parameter_count
        result = await statement.execute((FITS_EVERYWHERE,) * parameters)
        await statement.close()
    except MySQLError as error:
        if error.args[0] in NOT_FOR_THESE_VALUES:
            return Answer(parameters)
        return Answer(error=str(error))
    return Answer(parameters, tuple(column[1] for column in result.description or ()))


@pytest.fixture(scope="module")
def embedded() -> Iterator[sqlite3.Connection]:
    with closing(migrated_in_memory()) as connection:
        yield connection


@pytest.mark.parametrize("name", EMBEDDED)
def test_the_server_understands_every_query(server: Server, name: str):
    answer = server.queries[name]
    assert answer.error is None
    assert answer.parameters == EMBEDDED[name].sql.count("?") + (name in TELLING)


@pytest.mark.parametrize("name", sorted(SEARCH.keys() - SERVER.keys()))
def test_the_server_understands_what_its_index_is_asked_for(server: Server, name: str):
    assert server.queries[name].error is None
    assert set(server.queries[name].columns) <= TEXTS | NUMBERS


@pytest.mark.parametrize("name", EMBEDDED)
def test_answers_have_the_same_shape(server: Server, embedded: sqlite3.Connection, name: str):
    query = EMBEDDED[name]
    assert (query.reads, query.changes_snapshot) == (SERVER[name].reads, SERVER[name].changes_snapshot)
    assert bool(server.queries[name].columns) == query.reads
    # Nothing that Python would read as a decimal number or as a date.
    assert set(server.queries[name].columns) <= TEXTS | NUMBERS
    if query.reads:
        description = embedded.execute(query.sql, [0] * query.sql.count("?")).description
        assert len(server.queries[name].columns) == len(description)


def test_the_steps_of_the_schema_are_the_same():
    assert [step.name for step in load_migrations("mysql")] == [
        step.name for step in load_migrations("sqlite")
    ]


def test_the_tables_are_the_same(server: Server, embedded: sqlite3.Connection):
    expected = [
        (table, name, kind, "NO" if filled or key else "YES")
        for (table,) in embedded.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        for _, name, kind, filled, _, key in embedded.execute(f"PRAGMA table_info({table})")
    ]
    assert FOUND_BY in server.columns
    columns = [column for column in server.columns if column != FOUND_BY]
    assert [(column[0], column[1], column[3]) for column in columns] == [
        (table, name, empty) for table, name, _, empty in expected
    ]
    for column, (_, _, kind, _) in zip(columns, expected, strict=True):
        assert column[2] in KINDS[kind]
        assert column[4] == ("utf8mb4_bin" if column[2] in {"varchar", "longtext"} else None)


def test_the_indexes_are_the_same(server: Server, embedded: sqlite3.Connection):
    rows = embedded.execute("SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL")
    assert server.indexes == {row[0] for row in rows} | INDEXES_OF_SEARCH


def test_no_key_is_compared_by_its_beginning_only(server: Server):
    assert server.cut_keys == []


def test_the_schema_asks_for_nothing_that_some_servers_lack(server: Server):
    assert server.machinery == []
