"""Backups of a SQLite file, each verified by reading it back, and vacuum of the file.

Copies of a SQLite database: taken while it is in use, and worth nothing until they were read back.

Making a SQLite file small and tidy again, on its writing connection, outside any transaction.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import quote

from gateway_sessions.errors import StorageCorruptError, StorageError
from gateway_sessions.storage.engines.protocol import VacuumReport
from gateway_sessions.storage.engines.sqlite.errors import translate
from gateway_sessions.storage.engines.sqlite.schema import APPLICATION_ID
from gateway_sessions.storage.files.private_files import (
    fill_private_file,
    make_private_directory,
    prepare_to_read,
    replace_file,
)

BACKUPS: Final = "backups"
"""The folder of the copies, beside the database."""
BUSY_SECONDS: Final = 15.0
_STAMP: Final = "sessions-%Y%m%dT%H%M%SZ"
_NAME = re.compile(r"sessions-\d{8}T\d{6}Z\.db")


def read_only(path: Path) -> sqlite3.Connection:
    """A connection that changes nothing."""
    prepare_to_read(path)
    uri = f"file:{quote(str(path))}?mode=ro"
    return sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None)


def back_up(database: Path, folder: Path, taken_at: datetime) -> Path:
    """Copy the database as it is at this moment, and return the copy once it was read back."""
    target = folder / f"{taken_at:{_STAMP}}.db"
    unfinished = target.with_suffix(".tmp")
    try:
        make_private_directory(folder)
        unfinished.unlink(missing_ok=True)
        with closing(read_only(database)) as connection:
            fill_private_file(unfinished, lambda new: connection.execute("VACUUM INTO ?", (str(new),)))
        if (problem := problem_of(unfinished)) is not None:
            raise StorageCorruptError(str(database), f"its copy could not be read back ({problem})")
        make_durable(unfinished)
        replace_file(unfinished, target)
    except sqlite3.Error as error:
        raise translate(error, str(database)) from error
    except OSError as error:
        raise StorageError(str(folder), f"a backup could not be written ({error})") from error
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
    return target


def backups_in(folder: Path) -> list[Path]:
    """The copies there are, the newest first."""
    if not folder.is_dir():
        return []
    return sorted((one for one in folder.iterdir() if _NAME.fullmatch(one.name)), reverse=True)


def newest_backup(folder: Path) -> datetime | None:
    """When the newest copy was taken."""
    copies = backups_in(folder)
    return datetime.strptime(copies[0].stem, _STAMP).replace(tzinfo=UTC) if copies else None


def keep_newest(folder: Path, count: int) -> None:
    """Remove all copies but the newest."""
    for path in backups_in(folder)[count:]:
        path.unlink(missing_ok=True)


def problem_of(path: Path) -> str | None:
    """What is wrong with a copy; None: it is whole and ours."""
    try:
        with closing(read_only(path)) as connection:
            (application_id,) = connection.execute("PRAGMA application_id").fetchone()
            if application_id != APPLICATION_ID:
                return f"application id {application_id}"
            (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            connection.execute("SELECT value FROM meta WHERE name = 'schema_version'").fetchone()
    except sqlite3.Error as error:
        return str(error)
    return None if verdict == "ok" else str(verdict)


def make_durable(path: Path) -> None:
    """Return when a finished file would survive a power cut."""
    for one in (path, path.parent):
        descriptor = os.open(one, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


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
