"""Bringing a PostgreSQL database up to date, before anything else runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from gateway_sessions.errors import ForeignDatabaseError, UnsupportedStorageError
from gateway_sessions.failpoints import failpoint
from gateway_sessions.storage.drivers.postgresql_errors import WHAT
from gateway_sessions.storage.migrations import SchemaVersion, plan_migrations
from gateway_sessions.storage.queries import Migration

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

OLDEST_SERVER: Final = 15
"""The oldest that is tested."""
READABLE_FROM: Final = 1
"""The oldest schema a program must know to work with what this one writes."""
_LOCK: Final = 0x67736573
"""Who holds this lock brings the database up to date; the others wait and find it done."""
_OURS: Final = frozenset({"meta", "lanes", "entries", "clocks"})
_TABLES: Final = """
    SELECT relname::text FROM pg_class
    WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')
"""
_VERSIONS: Final = "SELECT name, value FROM meta WHERE name IN ('schema_version', 'readable_from')"
_SET_VERSION: Final = """
    INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""


async def prepare(connection: PoolConnectionProxy, known: Sequence[Migration]) -> None:
    """Check that the database can be ours, and take the migrations that are due, all or none."""
    await _check_server(connection)
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
        due = plan_migrations(WHAT, await inspect(connection), known)
        for step in due:
            await connection.execute(step.script)
            failpoint("during_migration")
        if due:
            versions = (("schema_version", due[-1].version), ("readable_from", READABLE_FROM))
            await connection.executemany(_SET_VERSION, [(name, str(version)) for name, version in versions])


async def inspect(connection: PoolConnectionProxy) -> SchemaVersion | None:
    """The version of the schema; None if nothing is there; `ForeignDatabaseError` if it is not ours."""
    tables = {row[0] for row in await connection.fetch(_TABLES)}
    if not tables:
        return None
    rows = await connection.fetch(_VERSIONS) if tables >= _OURS else []
    values: dict[str, str] = {row[0]: row[1] for row in rows}
    if len(values) < len(("schema_version", "readable_from")):
        raise ForeignDatabaseError(WHAT, f"{len(tables)} tables of another program")
    return SchemaVersion(int(values["schema_version"]), int(values["readable_from"]))


async def _check_server(connection: PoolConnectionProxy) -> None:
    found = connection.get_server_version().major
    if found < OLDEST_SERVER:
        raise UnsupportedStorageError(WHAT, f"version {found} is too old, {OLDEST_SERVER} or newer is needed")
    encoding = await connection.fetchval("SHOW server_encoding")
    if encoding != "UTF8":
        raise UnsupportedStorageError(WHAT, f"a database in {encoding} cannot hold what people say; use UTF8")
