"""Migrations of a PostgreSQL database, all in one transaction, and checks of the server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import asyncpg

from gateway_sessions._process.failpoints import failpoint
from gateway_sessions.errors import (
    ForeignDatabaseError,
    MissingRightError,
    StorageLockedError,
    UnsupportedStorageError,
)
from gateway_sessions.storage.engines.migrations import SchemaVersion, plan_migrations
from gateway_sessions.storage.engines.postgresql.errors import WHAT
from gateway_sessions.storage.engines.postgresql.locks import MIGRATING, TAKE, who_holds_locks
from gateway_sessions.storage.tables.sql_files import Migration

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

OLDEST_SERVER: Final = 15
"""The oldest version that is tested."""
MIGRATION_SECONDS: Final = 3600.0
"""A migration may take that long on a large database."""
LOCK_SECONDS: Final = 10
"""The time for which a migration waits for a lock. It must be short: while a migration waits for a table,
all later transactions wait behind it."""
READABLE_FROM: Final = 5
"""The oldest schema that a program must know to work with this one: earlier programs know no nodes."""
_WITHOUT_LOCKS: Final = ("CockroachDB", "-YB-")
"""Servers with PostgreSQL's protocol and no advisory locks, by a word of their version."""
_OURS: Final = frozenset({"meta", "lanes", "entries", "clocks"})
_TABLES: Final = """
    SELECT relname::text FROM pg_class
    WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')
"""
_VERSIONS: Final = "SELECT name, value FROM meta WHERE name IN ('schema_version', 'readable_from')"
_SET_VERSION: Final = """
    INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""


async def migrate_database(connection: PoolConnectionProxy, known: Sequence[Migration]) -> None:
    """Check that the database is ours or empty, and run all migrations that are due, or none."""
    await _check_server_version(connection)
    try:
        await _migrate_if_due(connection, known)
    except asyncpg.InsufficientPrivilegeError as error:
        role = await connection.fetchval("SELECT current_user")
        problem = f"the role {role} lacks a right: {error.args[0]}; grant it"
        raise MissingRightError.at_opening(WHAT, problem) from error


async def _migrate_if_due(connection: PoolConnectionProxy, known: Sequence[Migration]) -> None:
    if not plan_migrations(WHAT, await read_schema_version(connection), known):
        return  # without the lock: a process that hangs in its migration must not stop those that need none
    try:
        await _run_due_migrations(connection, known)
    except asyncpg.LockNotAvailableError as error:
        who = await who_holds_locks(connection)
        raise StorageLockedError(WHAT, f"its tables cannot be brought up to date now; {who}") from error


async def _run_due_migrations(connection: PoolConnectionProxy, known: Sequence[Migration]) -> None:
    async with connection.transaction():
        await connection.execute(f"SET LOCAL lock_timeout = {LOCK_SECONDS * 1000}")
        await connection.execute(TAKE, MIGRATING, timeout=MIGRATION_SECONDS)
        # Read again under the lock: another process may have migrated meanwhile.
        due = plan_migrations(WHAT, await read_schema_version(connection), known)
        for step in due:
            await connection.execute(step.script, timeout=MIGRATION_SECONDS)
            failpoint("during_migration")
        if due:
            versions = (("schema_version", due[-1].version), ("readable_from", READABLE_FROM))
            await connection.executemany(_SET_VERSION, [(name, str(version)) for name, version in versions])


async def read_schema_version(connection: PoolConnectionProxy) -> SchemaVersion | None:
    """Return the schema; None if the database is empty; raise `ForeignDatabaseError` if it is not ours."""
    tables = {row[0] for row in await connection.fetch(_TABLES)}
    if not tables:
        return None
    rows = await connection.fetch(_VERSIONS) if tables >= _OURS else []
    values: dict[str, str] = {row[0]: row[1] for row in rows}
    if len(values) < len(("schema_version", "readable_from")):
        raise ForeignDatabaseError(WHAT, f"{len(tables)} tables of another program")
    return SchemaVersion(int(values["schema_version"]), int(values["readable_from"]))


async def _check_server_version(connection: PoolConnectionProxy) -> None:
    found = connection.get_server_version().major
    if found < OLDEST_SERVER:
        raise UnsupportedStorageError(WHAT, f"version {found} is too old, {OLDEST_SERVER} or newer is needed")
    version = str(await connection.fetchval("SELECT version()"))
    if any(name in version for name in _WITHOUT_LOCKS):
        raise UnsupportedStorageError(WHAT, "this server takes advisory locks and does not keep them")
    encoding = await connection.fetchval("SHOW server_encoding")
    if encoding != "UTF8":
        raise UnsupportedStorageError(WHAT, f"a database in {encoding} cannot hold what people say; use UTF8")
