"""SQL on the file of a store, past the package: tests look behind the store with it, and damage rows."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from gateway_sessions.storage.engines.sqlite.schema import split_statements
from gateway_sessions.storage.tables.sql_files import load_migrations


def execute_sql(database: Path, sql: str, *values: object) -> list[tuple[object, ...]]:
    """Return the rows of a query, or carry a change out."""
    with closing(sqlite3.connect(database, timeout=10)) as connection:
        rows = connection.execute(sql, values).fetchall()
        connection.commit()
        return rows


def change_rows(database: Path, sql: str, *values: object) -> None:
    """Change rows; a change of no row is a failure of the test."""
    with closing(sqlite3.connect(database, timeout=10)) as connection, connection:
        assert connection.execute(sql, values).rowcount > 0


def migrated_in_memory() -> sqlite3.Connection:
    """Return a database in memory that took all migrations and has no rows; whoever asks closes it."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    for step in load_migrations("sqlite"):
        for statement in split_statements(step.script):
            connection.execute(statement)
    return connection
