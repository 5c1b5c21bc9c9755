"""Copies of a SQLite database: taken while it is in use, and worth nothing until they were read back."""

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
from gateway_sessions.storage.drivers.sqlite_errors import translate
from gateway_sessions.storage.drivers.sqlite_schema import APPLICATION_ID
from gateway_sessions.storage.private_files import (
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
