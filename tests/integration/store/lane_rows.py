"""All rows that a database file has of one lane, to see whether somebody has left it alone."""

import sqlite3
from contextlib import closing
from pathlib import Path

SESSIONS_OF = "session_id IN (SELECT session_id FROM sessions WHERE session_key = ?)"


def rows_of_lane(home: Path, session_key: str) -> dict[str, list[tuple[object, ...]]]:
    """The rows of each table that are about a lane or one of its sessions."""
    found: dict[str, list[tuple[object, ...]]] = {}
    with closing(sqlite3.connect(home / "sessions.db")) as database:
        tables = database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        for (table,) in tables:
            columns = {row[1] for row in database.execute(f"PRAGMA table_info({table})")}
            of_lane = "session_key = ?" if "session_key" in columns else SESSIONS_OF
            if columns & {"session_key", "session_id"}:
                rows = database.execute(f"SELECT * FROM {table} WHERE {of_lane}", (session_key,))  # noqa: S608 -- ours
                found[table] = sorted(rows.fetchall(), key=repr)
    assert found["entries"], f"nothing is kept of {session_key}"
    return found
