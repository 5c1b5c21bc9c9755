"""Making a SQLite file small and tidy again, on its writing connection, outside any transaction."""

from __future__ import annotations

import sqlite3

from gateway_sessions.storage.engine import VacuumReport


def vacuum(connection: sqlite3.Connection) -> VacuumReport:
    """Write the file anew without gaps, refresh what the planner knows, and empty the write-ahead log."""
    before = _size(connection)
    connection.execute("VACUUM")
    optimise(connection)
    after = _size(connection)
    return VacuumReport(bytes_before=before, bytes_after=after, log_emptied=empty_log(connection))


def optimise(connection: sqlite3.Connection) -> None:
    """Refresh what the planner knows, where that is worth it."""
    connection.execute("PRAGMA optimize").fetchall()


def empty_log(connection: sqlite3.Connection) -> bool:
    """Bring everything into the file itself and cut the write-ahead log to nothing, if nobody reads it."""
    (patience,) = connection.execute("PRAGMA busy_timeout").fetchone()
    # Whoever reads may be waiting for a writer, who would wait for us: better to come again later.
    connection.execute("PRAGMA busy_timeout = 0").fetchone()
    try:
        (busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        connection.execute(f"PRAGMA busy_timeout = {patience}").fetchone()
    return not busy


def overwrite_deleted(connection: sqlite3.Connection, *, overwrite: bool) -> None:
    """Whether, from now on, the room of what is deleted is overwritten with zeros."""
    connection.execute(f"PRAGMA secure_delete = {'ON' if overwrite else 'OFF'}").fetchone()


def _size(connection: sqlite3.Connection) -> int:
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (page_size,) = connection.execute("PRAGMA page_size").fetchone()
    return int(pages) * int(page_size)
