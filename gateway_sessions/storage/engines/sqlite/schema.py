"""Creation and migration of a SQLite file, and checks whether a file is ours."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from gateway_sessions._process.failpoints import failpoint
from gateway_sessions.errors import (
    ForeignDatabaseError,
    HermesDatabaseError,
    StorageCorruptError,
    UnsupportedStorageError,
)
from gateway_sessions.storage.engines.migrations import SchemaVersion, plan_migrations
from gateway_sessions.storage.files.private_files import fill_private_file
from gateway_sessions.storage.tables.sql_files import Migration

APPLICATION_ID: Final = 0x67736573
"""Marks the file as ours: "gses"."""
OLDEST_SQLITE: Final = (3, 37, 0)
"""The first version with STRICT tables."""
CACHE_KIB: Final = 4 * 1024
"""Enough for the inner pages of the indexes of many lanes, and for most of their clocks."""
_OF_HERMES: Final = {
    "sessions": frozenset({"id", "source", "started_at"}),
    "messages": frozenset({"id", "session_id", "role"}),
}
"""Tables that all versions of Hermes have, with some of their columns."""
READABLE_FROM: Final = 1
"""The oldest schema that a program must know to work with this one."""


def check_sqlite_version(version: tuple[int, ...] = sqlite3.sqlite_version_info) -> None:
    """Raise `UnsupportedStorageError` if the SQLite library is too old.

    Versions up to 3.51.2 can corrupt a write-ahead log that two connections write or checkpoint at once.
    Here one connection does both, and no other process writes, so these versions are safe.
    """
    if version < OLDEST_SQLITE:
        wanted, found = (".".join(map(str, one)) for one in (OLDEST_SQLITE, version))
        problem = f"version {found} is too old, {wanted} or newer is needed"
        raise UnsupportedStorageError("SQLite", problem)


def prepare_file(
    connection: sqlite3.Connection, path: Path, known: Sequence[Migration], *, synchronous: str
) -> None:
    """Claim the file or check that it is ours, configure it, and run the migrations that are due."""
    found = read_schema_version(connection, path)
    due = plan_migrations(str(path), found, known)
    _configure(connection, path, synchronous)
    if found is not None and due:
        _copy_before_migration(connection, path, found)
    if due:
        _run_migrations(connection, due)


def split_statements(script: str) -> Iterator[str]:
    """Yield the single statements of a script; a transaction cannot run it as a whole."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""


def read_schema_version(connection: sqlite3.Connection, path: Path) -> SchemaVersion | None:
    """Return the schema; None if the file is empty; raise `ForeignDatabaseError` if it is not ours."""
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application_id == APPLICATION_ID:
        if (stated := stated_version(connection)) is None:
            raise StorageCorruptError(str(path), "does not say any more which version it has; repair it")
        return stated
    if application_id != 0 or tables:
        if is_of_hermes(connection):
            raise HermesDatabaseError(str(path))
        raise ForeignDatabaseError(str(path), f"application id {application_id}, {tables} tables and indexes")
    return None


def is_of_hermes(connection: sqlite3.Connection) -> bool:
    """Return True if the file has the tables of Hermes, of any version."""
    for table, wanted in _OF_HERMES.items():
        found = {row[0] for row in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))}
        if not found >= wanted:
            return False
    return True


def stated_version(connection: sqlite3.Connection) -> SchemaVersion | None:
    """Return the schema that a file of ours states; None if the statement is lost."""
    wanted = ("schema_version", "readable_from")
    values = dict(connection.execute("SELECT name, value FROM meta WHERE name IN (?, ?)", wanted))
    versions = [one for one in map(values.get, wanted) if isinstance(one, int)]
    return SchemaVersion(*versions) if len(versions) == len(wanted) else None


def _configure(connection: sqlite3.Connection, path: Path, synchronous: str) -> None:
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise UnsupportedStorageError(
            str(path), f"this place does not support write-ahead logging (got {mode})"
        )
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    # Pages: SQLite's usual value, set here because a build of the library may have another one.
    connection.execute("PRAGMA wal_autocheckpoint = 1000")
    connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA trusted_schema = OFF")


def _copy_before_migration(connection: sqlite3.Connection, path: Path, found: SchemaVersion) -> None:
    """Copy the database before a migration to `sessions.db.v1.bak`, in place of an older copy."""
    copy = path.with_name(f"{path.name}.v{found.version}.bak")
    copy.unlink(missing_ok=True)
    fill_private_file(copy, lambda new: connection.execute("VACUUM INTO ?", (str(new),)))
    failpoint("backed_up")


def _run_migrations(connection: sqlite3.Connection, due: Sequence[Migration]) -> None:
    """Run all migrations in one transaction of the database: they stand together or not at all."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in due:
            for statement in split_statements(step.script):
                connection.execute(statement)
            failpoint("during_migration")
        versions = (("schema_version", due[-1].version), ("readable_from", READABLE_FROM))
        connection.executemany("INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)", versions)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
