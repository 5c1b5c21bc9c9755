"""The routing table of a Hermes home: newer versions keep the index there and mirror it in sessions.json.

The database is opened read-only and left as it was. An entry in the table wins over the one in the file.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from datetime import tzinfo
from pathlib import Path
from typing import Final
from urllib.parse import quote

from gateway_sessions.core.entry_codec import entry_from_json
from gateway_sessions.core.session import SessionEntry
from gateway_sessions.core.snapshot import RejectedEntry, SnapshotContent
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.storage.drivers.sqlite_errors import translate

DATABASE: Final = "state.db"
_TABLE: Final = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'gateway_routing'"
_ROWS: Final = (
    "SELECT CAST(session_key AS TEXT), CAST(entry_json AS BLOB) FROM gateway_routing"
    " WHERE scope = ? ORDER BY session_key"
)


def with_routing_table(content: SnapshotContent, sessions_dir: Path, zone: tzinfo) -> SnapshotContent:
    """The file's entries, replaced and completed by those of the table beside or above it, if any."""
    return completed(content, _routing_rows(sessions_dir), zone)


def completed(content: SnapshotContent, rows: Iterable[tuple[str, bytes]], zone: tzinfo) -> SnapshotContent:
    """The file's entries, replaced and completed by keys and entries from a table."""
    entries = {entry.session_key: entry for entry in content.entries}
    rejected = list(content.rejected)
    for key, text in rows:
        try:
            entries[key] = entry_from_json(key, text, zone)
        except InvalidInputError as error:
            rejected.append(RejectedEntry(key, f"in {DATABASE}: {error}", text))
    ordered: tuple[SessionEntry, ...] = tuple(entries[key] for key in sorted(entries))
    return SnapshotContent(ordered, tuple(rejected), content.meta, content.intact)


def _routing_rows(sessions_dir: Path) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for directory in (sessions_dir.parent, sessions_dir):
        database = directory / DATABASE
        if database.is_file():
            found += _read(database, str(sessions_dir.resolve()))
    return found


def _read(database: Path, scope: str) -> list[tuple[str, bytes]]:
    uri = f"file:{quote(str(database))}?mode=ro"
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=5)) as connection:
            connection.text_factory = _readable
            if connection.execute(_TABLE).fetchone() is None:
                return []
            return [(key or "", text or b"") for key, text in connection.execute(_ROWS, (scope,))]
    except sqlite3.Error as error:
        # To go on without it would lose the lanes that only it knows.
        raise translate(error, str(database)) from error


def _readable(text: bytes) -> str:
    return text.decode("utf-8", "backslashreplace")
