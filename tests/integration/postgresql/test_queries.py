"""What is said to SQLite can be said to PostgreSQL: the same queries, on the same tables."""

import asyncio
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass

import asyncpg
import pytest

from gateway_sessions.storage.tables.sql_files import load_migrations, load_queries
from tests.postgresql import connected_migrated_database
from tests.raw_sql import migrated_in_memory

EMBEDDED = load_queries("sqlite")
SERVER = load_queries("postgresql")
SEARCH = load_queries("postgresql", "store", "search_column")
"""The same with what only a database is asked for that keeps the search index itself."""
TELLING = frozenset({"add_message", "add_text", "add_imported_message", "move_in_messages"})
"""Also tell the index of the messages they write: with tokens, and the session whose labels these get."""
FOUND_BY = ("messages", "tokens", "tsvector", "YES", None)
INDEXES_OF_SEARCH = frozenset({"messages_by_tokens", "messages_without_tokens"})
KINDS = {"TEXT": "text", "INTEGER": "bigint", "REAL": "double precision", "ANY": "text"}
COLUMNS = """
    SELECT table_name, column_name, data_type, is_nullable, collation_name FROM information_schema.columns
    WHERE table_schema = 'public' ORDER BY table_name, ordinal_position
"""
INDEXES = """
    SELECT indexname FROM pg_indexes WHERE schemaname = 'public'
    AND indexname NOT LIKE '%\\_pkey' AND indexname NOT LIKE '%\\_key'
"""
MACHINERY = """
    SELECT relname FROM pg_class WHERE relkind = 'S' UNION ALL SELECT tgname FROM pg_trigger
    UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    UNION ALL SELECT extname FROM pg_extension WHERE extname <> 'plpgsql'
"""


@dataclass(frozen=True)
class Prepared:
    """What the server makes of a query."""

    parameters: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    error: str | None = None


@dataclass(frozen=True)
class Server:
    """All that the tests ask one database for."""

    queries: Mapping[str, Prepared]
    columns: list[tuple[str, str, str, str, str | None]]
    indexes: set[str]
    machinery: list[str]


@pytest.fixture(scope="module")
def server() -> Server:
    return asyncio.run(_ask_server())


async def _ask_server() -> Server:
    async with connected_migrated_database() as connection:
        return Server(
            {name: await _prepare(connection, query.sql) for name, query in SEARCH.items()},
            [tuple(row) for row in await connection.fetch(COLUMNS)],
            {row[0] for row in await connection.fetch(INDEXES)},
            [row[0] for row in await connection.fetch(MACHINERY)],
        )


async def _prepare(connection: asyncpg.Connection, sql: str) -> Prepared:
    try:
        statement = await connection.prepare(sql)
    except asyncpg.PostgresError as error:
        return Prepared(error=str(error))
    return Prepared(
        tuple(parameter.name for parameter in statement.get_parameters()),
        tuple(column.type.name for column in statement.get_attributes()),
    )


@pytest.fixture(scope="module")
def embedded() -> Iterator[sqlite3.Connection]:
    with closing(migrated_in_memory()) as connection:
        yield connection


@pytest.mark.parametrize("name", EMBEDDED)
def test_the_server_understands_every_query(server: Server, name: str):
    prepared = server.queries[name]
    assert prepared.error is None
    assert len(prepared.parameters) == EMBEDDED[name].sql.count("?") + 2 * (name in TELLING)
    assert set(prepared.parameters) <= {"text", "int8", "int4", "float8", "jsonb"}


@pytest.mark.parametrize("name", EMBEDDED)
def test_answers_have_the_same_shape(server: Server, embedded: sqlite3.Connection, name: str):
    query = EMBEDDED[name]
    assert (query.reads, query.changes_snapshot) == (SERVER[name].reads, SERVER[name].changes_snapshot)
    # Nothing that Python would read as a decimal number or as a bool.
    assert set(server.queries[name].columns) <= {"text", "int8", "int4", "float8"}
    if query.reads:
        description = embedded.execute(query.sql, [0] * query.sql.count("?")).description
        assert len(server.queries[name].columns) == len(description)


@pytest.mark.parametrize("name", sorted(SEARCH.keys() - SERVER.keys()))
def test_the_server_understands_what_its_index_is_asked_for(server: Server, name: str):
    prepared = server.queries[name]
    assert prepared.error is None
    assert set(prepared.parameters) <= {"text", "int8", "int4", "jsonb"}
    assert set(prepared.columns) <= {"text", "int8", "int4"}


@pytest.mark.parametrize("name", SEARCH)
def test_parameters_are_numbered_as_they_come(name: str):
    numbers = [int(number) for number in re.findall(r"\$(\d+)", SEARCH[name].sql)]
    assert numbers == list(range(1, len(numbers) + 1))


def test_the_steps_of_the_schema_are_the_same():
    assert [step.name for step in load_migrations("postgresql")] == [
        step.name for step in load_migrations("sqlite")
    ]


def test_the_tables_are_the_same(server: Server, embedded: sqlite3.Connection):
    expected = [
        (table, name, KINDS[kind], "NO" if filled or key else "YES", "C" if KINDS[kind] == "text" else None)
        for (table,) in embedded.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        for _, name, kind, filled, _, key in embedded.execute(f"PRAGMA table_info({table})")
    ]
    place = expected.index(("messages", "extra", "text", "YES", "C")) + 1
    assert server.columns == [*expected[:place], FOUND_BY, *expected[place:]]


def test_the_indexes_are_the_same(server: Server, embedded: sqlite3.Connection):
    rows = embedded.execute("SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL")
    assert server.indexes == {row[0] for row in rows} | INDEXES_OF_SEARCH


def test_the_schema_asks_for_nothing_that_some_servers_lack(server: Server):
    assert server.machinery == []
