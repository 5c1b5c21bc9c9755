"""Backups of a SQLite file, each verified by reading it back, and vacuum of the file.

A backup is taken while the file is in use. A vacuum needs the writing connection, outside any transaction.
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
from gateway_sessions.storage.engines.sqlite.errors import translate_error
from gateway_sessions.storage.engines.sqlite.schema import APPLICATION_ID
from gateway_sessions.storage.files.private_files import (
    fill_private_file,
    make_private_directory,
    prepare_sidecars_for_reader,
    replace_file,
)

BACKUPS: Final = "backups"
"""The folder of the backups, beside the database."""
BUSY_SECONDS: Final = 15.0
"""The time for which a reader waits for a lock on the file; as long as for the engine's own connections."""
_STAMP: Final = "sessions-%Y%m%dT%H%M%SZ"
_NAME = re.compile(r"sessions-\d{8}T\d{6}Z\.db")


def open_read_only(path: Path) -> sqlite3.Connection:
    """Return a connection to the file that changes nothing."""
    prepare_sidecars_for_reader(path)
    uri = f"file:{quote(str(path))}?mode=ro"
    return sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None)


def back_up(database: Path, folder: Path, taken_at: datetime) -> Path:
    """Write a backup of the database as it is at this moment; return its path once it was read back."""
    target = folder / f"{taken_at:{_STAMP}}.db"
    unfinished = target.with_suffix(".tmp")
    try:
        make_private_directory(folder)
        unfinished.unlink(missing_ok=True)
        with closing(open_read_only(database)) as connection:
            fill_private_file(unfinished, lambda new: connection.execute("VACUUM INTO ?", (str(new),)))
        if (problem := fault_of_backup(unfinished)) is not None:
            raise StorageCorruptError(str(database), f"its copy could not be read back ({problem})")
        flush_file(unfinished)
        replace_file(unfinished, target)
    except sqlite3.Error as error:
        raise translate_error(error, str(database)) from error
    except OSError as error:
        raise StorageError(str(folder), f"a backup could not be written ({error})") from error
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
    return target


def backups_in(folder: Path) -> list[Path]:
    """Return the paths of the backups, the newest first."""
    if not folder.is_dir():
        return []
    return sorted((one for one in folder.iterdir() if _NAME.fullmatch(one.name)), reverse=True)


def newest_backup(folder: Path) -> datetime | None:
    """Return when the newest backup was taken."""
    copies = backups_in(folder)
    return datetime.strptime(copies[0].stem, _STAMP).replace(tzinfo=UTC) if copies else None


def keep_newest(folder: Path, count: int) -> None:
    """Remove all backups but the *count* newest."""
    for path in backups_in(folder)[count:]:
        path.unlink(missing_ok=True)


def fault_of_backup(path: Path) -> str | None:
    """Return the fault of a backup; None if it is whole and ours."""
    try:
        with closing(open_read_only(path)) as connection:
            (application_id,) = connection.execute("PRAGMA application_id").fetchone()
            if application_id != APPLICATION_ID:
                return f"application id {application_id}"
            (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            connection.execute("SELECT value FROM meta WHERE name = 'schema_version'").fetchone()
    except sqlite3.Error as error:
        return str(error)
    return None if verdict == "ok" else str(verdict)


def flush_file(path: Path) -> None:
    """Flush a finished file and its directory, so that both survive a power cut."""
    for one in (path, path.parent):
        descriptor = os.open(one, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def vacuum(connection: sqlite3.Connection) -> VacuumReport:
    """Write the file anew without gaps, refresh the planner's statistics, and empty the write-ahead log."""
    before = _file_bytes(connection)
    connection.execute("VACUUM")
    optimise(connection)
    after = _file_bytes(connection)
    return VacuumReport(bytes_before=before, bytes_after=after, log_emptied=empty_log(connection))


def optimise(connection: sqlite3.Connection) -> None:
    """Refresh the statistics of the query planner where SQLite finds that worthwhile."""
    connection.execute("PRAGMA optimize").fetchall()


def empty_log(connection: sqlite3.Connection) -> bool:
    """Copy the write-ahead log into the file and truncate it; return False if a reader prevents that."""
    (patience,) = connection.execute("PRAGMA busy_timeout").fetchone()
    # Do not wait for a reader: it may itself wait for a writer, which waits for this connection.
    connection.execute("PRAGMA busy_timeout = 0").fetchone()
    try:
        (busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        connection.execute(f"PRAGMA busy_timeout = {patience}").fetchone()
    return not busy


def overwrite_deleted(connection: sqlite3.Connection, *, overwrite: bool) -> None:
    """Set whether the space of deleted rows is overwritten with zeros from now on."""
    connection.execute(f"PRAGMA secure_delete = {'ON' if overwrite else 'OFF'}").fetchone()


def _file_bytes(connection: sqlite3.Connection) -> int:
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (page_size,) = connection.execute("PRAGMA page_size").fetchone()
    return int(pages) * int(page_size)
