"""A new database from what a damaged one and its newest copy still hold."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gateway_sessions.core.work_progress import OnProgress, Steps
from gateway_sessions.storage.drivers.sqlite_backup import make_durable, read_only
from gateway_sessions.storage.drivers.sqlite_salvage import (
    READ_ERRORS,
    Row,
    Salvaged,
    columns_of,
    quoted,
    salvage,
)
from gateway_sessions.storage.drivers.sqlite_schema import APPLICATION_ID, prepare
from gateway_sessions.storage.drivers.sqlite_text import tables_of
from gateway_sessions.storage.private_files import prepare_database_file
from gateway_sessions.storage.queries import Migration
from gateway_sessions.storage.verbs.importing import IMPORTED

OWN_FACTS: Final = frozenset({"schema_version", "readable_from"})
"""What the new database knows by itself."""


@dataclass(frozen=True, slots=True)
class RebuiltTable:
    """Where the rows of one table came from, and how many are known to be lost."""

    name: str
    salvaged: int
    from_backup: int
    unusable: int
    unreadable: int
    complete: bool


def rebuild(
    damaged: Path,
    target: Path,
    backup: Path | None,
    known: Sequence[Migration],
    progress: OnProgress | None = None,
) -> list[RebuiltTable]:
    """Write a new database to *target*; the other files stay as they are.

    The copy only fills tables that could not be read whole: it is older, and what was deleted since has gone
    on purpose.
    """
    target.unlink(missing_ok=True)
    prepare_database_file(target, APPLICATION_ID)
    with closing(sqlite3.connect(target, isolation_level=None)) as new:
        prepare(new, target, known, synchronous="OFF")
        names = tables_of(new)
        new.execute("BEGIN IMMEDIATE")
        steps, tables = Steps(progress, len(names)), list[RebuiltTable]()
        with closing(read_only(damaged)) as old:
            for name in names:
                steps.begin(f"Saving table {name}")
                tables.append(_refill(new, old, name, backup))
        if not all(table.complete for table in tables if table.name in ("entries", "clocks")):
            # The next start takes the lanes that are missing from sessions.json.
            new.execute("DELETE FROM meta WHERE name = ?", (IMPORTED,))
        new.execute("COMMIT")
    make_durable(target)
    return tables


def _refill(new: sqlite3.Connection, old: sqlite3.Connection, name: str, backup: Path | None) -> RebuiltTable:
    first = _Refill(new, old, name)
    second: _Refill | None = None
    if backup is not None and not first.outcome.complete:
        with closing(read_only(backup)) as copy:
            second = _Refill(new, copy, name)
    return RebuiltTable(
        name=name,
        salvaged=first.written,
        from_backup=second.written if second is not None else 0,
        unusable=first.outcome.rows - first.written,
        unreadable=first.outcome.unreadable,
        complete=first.outcome.complete,
    )


class _Refill:
    """Takes the rows of one table over; one that is there already, or fits no more, is left out."""

    def __init__(self, new: sqlite3.Connection, source: sqlite3.Connection, name: str) -> None:
        wanted = columns_of(new, name)
        present = columns_of(source, name)
        columns = tuple(column for column in wanted if column in present)
        self.written = 0
        self._new = new
        self._keeps_own_facts = name == "meta"
        self._insert = (
            f"INSERT OR IGNORE INTO {quoted(name)} ({', '.join(map(quoted, columns))}) "  # noqa: S608 -- our schema
            f"VALUES ({', '.join('?' * len(columns))})"
        )
        self.outcome = salvage(source, name, columns, self._take) if columns else Salvaged(complete=False)

    def _take(self, row: Row) -> None:
        if self._keeps_own_facts and row[0] in OWN_FACTS:
            self.written += 1
            return
        try:
            self.written += self._new.execute(self._insert, row).rowcount
        except READ_ERRORS:
            return  # a value that the column cannot hold: the page was damaged, and read all the same
