"""Schema versions: which migrations a database needs, and when it is too new or too old to use.

A schema carries the version it has and the oldest program version that can still read it. Steps expand first
and contract one release later, so two neighbouring releases can share a database.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gateway_sessions.errors import NoStoreError, SchemaTooNewError, SchemaTooOldError
from gateway_sessions.storage.tables.sql_files import Migration


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """States which schema a database has, and which programs can read it."""

    version: int
    readable_from: int
    """The oldest schema that a program must know to work with this database."""


def plan_migrations(
    path: str, found: SchemaVersion | None, known: Sequence[Migration]
) -> tuple[Migration, ...]:
    """Return the migrations that are due; raise `SchemaTooNewError` if the database is too new.

    A newer schema that this program can still read is used as it is: no migration is due, and none is
    undone.
    """
    ours = known[-1].version
    if found is None:
        return tuple(known)
    if found.readable_from > ours:
        raise SchemaTooNewError(path, readable_from=found.readable_from, ours=ours)
    return tuple(step for step in known if step.version > found.version)


def require_current_schema(path: str, found: SchemaVersion | None, known: Sequence[Migration]) -> None:
    """Raise an error unless this program can read the database without a migration."""
    if found is None:
        raise NoStoreError(path)
    if plan_migrations(path, found, known):
        raise SchemaTooOldError(path, found=found.version, ours=known[-1].version)
