"""Check a store and repair a damaged one: the report says what was found, done and lost.

Nothing damaged is thrown away. The new database is complete and durable before the old one moves to the
quarantine, and the next repair finishes one that was interrupted.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final

from gateway_sessions._process.clock import SystemClock
from gateway_sessions.core.notices.human_units import counted
from gateway_sessions.core.progress import OnProgress, ProgressSteps, WorkProgress
from gateway_sessions.core.search.documents import IndexPosition
from gateway_sessions.errors import (
    ForeignDatabaseError,
    NoStoreError,
    StorageCorruptError,
    StorageError,
    StorageUnavailableError,
)
from gateway_sessions.ports import Clock
from gateway_sessions.storage.engines.sqlite.backup import (
    BACKUPS,
    backups_in,
    fault_of_backup,
    newest_backup,
    open_read_only,
)
from gateway_sessions.storage.engines.sqlite.errors import translate_error
from gateway_sessions.storage.engines.sqlite.salvage import RebuiltTable, rebuild_database
from gateway_sessions.storage.engines.sqlite.schema import APPLICATION_ID, prepare_file, stated_version
from gateway_sessions.storage.engines.sqlite.worker import run_transaction
from gateway_sessions.storage.engines.upgrade import EngineOpening, RunningEngine
from gateway_sessions.storage.files.atomic_file import QUARANTINE, file_name_time, move_to_quarantine
from gateway_sessions.storage.files.private_files import prepare_database_file
from gateway_sessions.storage.files.threads import called_from_thread, in_thread
from gateway_sessions.storage.home import REBUILT_SUFFIX, own_home
from gateway_sessions.storage.maintenance import unreadable
from gateway_sessions.storage.search.sqlite_file import (
    IndexFault,
    IndexFile,
    UnusableIndexError,
    remove_index,
)
from gateway_sessions.storage.search.sqlite_index import INDEX_FILE, SAMPLES
from gateway_sessions.storage.tables import meta
from gateway_sessions.storage.tables.sql_files import load_migrations, load_queries
from gateway_sessions.storage.transactions.search import scan
from gateway_sessions.storage.transactions.upkeep import consistency

DATABASE: Final = "sessions.db"
REBUILT: Final = f"{DATABASE}{REBUILT_SUFFIX}"
"""The name of a rebuilt database that is complete and durable, and not yet in the place of the damaged
one."""
UNFINISHED: Final = "sessions.db.rebuilding"
"""The name of a rebuilt database that is still being written; the next repair begins it anew."""
MOST_PROBLEMS: Final = 20
"""More faults of a file say nothing more."""
LOOKS: Final = 2
"""A fault of the index counts if it is found twice: its owner may be filling it meanwhile."""
READING: Final = "Reading {table}"
COMPARING: Final = "Comparing the tables"
_ENGINE: Final = "sqlite"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """Reports the faults of a store; `damaged` means that the file itself is damaged."""

    found: tuple[str, ...] = ()
    """The faults that were found, in words."""
    damaged: bool = False
    """Whether the database file itself is damaged."""

    @property
    def healthy(self) -> bool:
        """Return True if no fault was found."""
        return not self.found


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairReport:
    """Reports the faults that were found, the repairs that were done, and the rows that were lost."""

    found: tuple[str, ...] = ()
    """The faults that were found, in words."""
    done: tuple[str, ...] = ()
    """The repairs, in words."""
    lost: tuple[str, ...] = ()
    """The rows that could not be saved, in words."""
    quarantine: tuple[Path, ...] = ()
    """The damaged files in the quarantine."""


async def check_store(
    home: str | Path,
    *,
    server: str | None = None,
    prepared_statements: bool = True,
    progress: OnProgress | None = None,
) -> CheckReport:
    """Read the whole database of a store and report its faults. The store may be in use.

    *server* is the address of a database on a server, in which only the tables are compared, in one
    snapshot.
    """
    if server is not None:
        opening = EngineOpening(home=home, prepared_statements=prepared_statements)
        return await _check_server(server, opening, progress)
    return await in_thread(
        partial(_check_home, _home_directory(home) / DATABASE, called_from_thread(progress))
    )


async def repair_store(
    home: str | Path, *, clock: Clock | None = None, wait: float = 0.0, progress: OnProgress | None = None
) -> RepairReport:
    """Repair the faults that `check_store` finds; raise `StoreBusyError` if the store is in use."""
    path, time = _home_directory(home), clock or SystemClock()
    if not await in_thread(path.is_dir):
        raise NoStoreError(str(path))
    async with own_home(path, time, wait=wait):
        return await in_thread(partial(_repair_home, path, time.now(), called_from_thread(progress)))


async def _check_server(address: str, opening: EngineOpening, progress: OnProgress | None) -> CheckReport:
    steps, found = ProgressSteps(progress, len(unreadable.TABLES) + len(consistency.CHECKS)), list[str]()
    engine = await in_thread(partial(opening.reading_engine, address, patient=True))
    async with RunningEngine(engine):
        await engine.read(meta.refuse_unfinished_move)
        async with engine.view() as reader:
            for table in unreadable.TABLES:
                steps.begin_step(READING.format(table=table))
                found += await reader.read(partial(unreadable.find_unreadable_rows, table))
            for check in consistency.CHECKS:
                steps.begin_step(COMPARING)
                one = await reader.read(partial(consistency.find_one, check))
                found += [str(one)] if one is not None else []
    return CheckReport(found=tuple(found))


def newest_copy(home: Path) -> datetime | None:
    """Return when the newest backup of a store was taken, if there is one. Reads the disk."""
    return newest_backup(home / BACKUPS)


def _home_directory(home: str | Path) -> Path:
    return Path(home).expanduser().absolute()


def _check_home(database: Path, progress: OnProgress | None) -> CheckReport:
    if not database.exists():
        raise NoStoreError(str(database))
    steps = ProgressSteps(progress, len(unreadable.TABLES) + len(consistency.CHECKS) + 3)
    steps.begin_step("Reading the file")
    problems = _find_file_damage(database)
    if problems:
        return CheckReport(found=tuple(problems), damaged=True)
    try:
        with closing(open_read_only(database)) as connection:
            steps.begin_step("Reading all texts")
            if texts := unreadable.find_damaged_text(connection):
                return CheckReport(found=tuple(texts))  # other queries would fail on these texts
            found = _find_disagreements(connection, steps)
            steps.begin_step("Asking the search index")
            problem = _find_index_fault(database.with_name(INDEX_FILE), connection)
    except sqlite3.Error as error:
        raise translate_error(error, str(database)) from error
    return CheckReport(found=(*found, f"search index: {problem}") if problem is not None else tuple(found))


def _find_disagreements(connection: sqlite3.Connection, steps: ProgressSteps) -> list[str]:
    queries, found = load_queries(_ENGINE), list[str]()
    for table in unreadable.TABLES:
        steps.begin_step(READING.format(table=table))
        found += run_transaction(connection, queries, unreadable.find_unreadable_rows(table))
    for check in consistency.CHECKS:
        steps.begin_step(COMPARING)
        one = run_transaction(connection, queries, consistency.find_one(check))
        found += [str(one)] if one is not None else []
    return found


def _find_index_fault(path: Path, truth: sqlite3.Connection) -> str | None:
    """Return the fault of the search index, if it has one; a missing index is made anew by the store."""
    if not path.exists():
        return None
    queries = load_queries(_ENGINE)
    index, problem = IndexFile(path, read_only=True), None
    try:
        for _ in range(LOOKS):
            index.connect(run_transaction(truth, queries, scan.index_identity()), IndexPosition())
            samples = run_transaction(truth, queries, scan.sample_messages(index.position.watermark, SAMPLES))
            problem = index.find_fault(samples)
            index.close()
            if problem is None:
                break
    except StorageCorruptError:
        return None  # the damaged fact is reported as such; without it, the owner of the index is unknown
    except UnusableIndexError as error:
        return None if error.fault is IndexFault.GONE else str(error)
    return problem


def _repair_home(home: Path, now: datetime, progress: OnProgress | None) -> RepairReport:
    database, rebuilt = home / DATABASE, home / REBUILT
    if rebuilt.exists():
        kept = _replace_database(home, now)
        rest = _mend_content(database, now, progress)
        done = ("a repair that was cut off has been finished", *rest.done, *_remove_search_index(home))
        return replace(rest, done=done, quarantine=(*kept, *rest.quarantine))
    report = _check_home(database, progress)
    if not report.damaged:
        if not report.found:
            return RepairReport()
        mended = _mend_content(database, now, progress)
        return replace(mended, found=report.found, done=(*mended.done, *_remove_search_index(home)))
    backup = next((one for one in backups_in(home / BACKUPS) if fault_of_backup(one) is None), None)
    tables = _rebuild_database(home, backup, progress)
    kept = _replace_database(home, now)
    rest = _mend_content(database, now, progress)
    return RepairReport(
        found=(*report.found, *rest.found),
        done=(*_describe_rebuilt(tables, backup), *rest.done, *_remove_search_index(home)),
        lost=(*_describe_losses(tables), *rest.lost),
        quarantine=(*kept, *rest.quarantine),
    )


def _find_file_damage(database: Path) -> list[str]:
    """Return the faults that SQLite reports of the file itself."""
    try:
        with closing(open_read_only(database)) as connection:
            (application_id,) = connection.execute("PRAGMA application_id").fetchone()
            if application_id not in (0, APPLICATION_ID):
                raise ForeignDatabaseError(str(database), f"application id {application_id}")
            rows = connection.execute(f"PRAGMA integrity_check({MOST_PROBLEMS})").fetchall()
            known = stated_version(connection) is not None
    except UnicodeDecodeError:
        return ["the file is damaged where it describes itself"]
    except sqlite3.Error as error:
        translated = translate_error(error, str(database))
        if isinstance(translated, StorageUnavailableError):
            raise translated from error
        return [str(error)]
    told = [str(row[0]) for row in rows if row[0] != "ok"]
    return told or ([] if known else ["the file does not know its own version"])


def _rebuild_database(home: Path, backup: Path | None, progress: OnProgress | None) -> list[RebuiltTable]:
    unfinished = home / UNFINISHED
    try:
        tables = rebuild_database(home / DATABASE, unfinished, backup, load_migrations(_ENGINE), progress)
    except sqlite3.Error as error:
        raise StorageError(
            str(home / DATABASE), f"could not be rebuilt ({error}); it was left as it is"
        ) from error
    unfinished.replace(home / REBUILT)
    return tables


def _replace_database(home: Path, now: datetime) -> tuple[Path, ...]:
    """Move the damaged files to the quarantine, the log first: it must never meet the new database."""
    damaged = [home / f"{DATABASE}{suffix}" for suffix in ("-wal", "-shm", "")]
    kept = tuple(
        move_to_quarantine(one, home / QUARANTINE, file_name_time(now)) for one in damaged if one.exists()
    )
    (home / REBUILT).replace(home / DATABASE)
    return kept


def _mend_content(database: Path, now: datetime, progress: OnProgress | None) -> RepairReport:
    """Mend unreadable rows and tables that disagree, in one transaction of the database.

    Unreadable rows are in the quarantine before the commit changes them.
    """
    if progress is not None:
        progress(WorkProgress(doing="Making the tables agree"))
    queries = load_queries(_ENGINE)
    try:
        prepare_database_file(database, APPLICATION_ID)
        with closing(sqlite3.connect(database, isolation_level=None)) as connection:
            prepare_file(connection, database, load_migrations(_ENGINE), synchronous="FULL")
            connection.execute("BEGIN IMMEDIATE")
            mended = unreadable.mend_unreadable_rows(connection, queries, database.parent, now)
            wrong = run_transaction(connection, queries, consistency.mend_all())
            left = run_transaction(connection, queries, consistency.find_all())
            kept = mended.write_originals(database.with_name(QUARANTINE), file_name_time(now))
            connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise translate_error(error, str(database)) from error
    remaining = {one.check for one in left}
    return RepairReport(
        found=(*mended.found, *map(str, wrong)),
        done=(*mended.done, *(f"mended: {one}" for one in wrong if one.check not in remaining)),
        lost=(*mended.lost, *map(str, left)),
        quarantine=() if kept is None else (kept,),
    )


def _remove_search_index(home: Path) -> tuple[str, ...]:
    """Remove the search index: it may not agree with the repaired database, and is made anew."""
    index = home / INDEX_FILE
    if not index.exists():
        return ()
    remove_index(index)
    return ("search index: removed, it is made anew when the store is opened",)


def _describe_rebuilt(tables: list[RebuiltTable], backup: Path | None) -> list[str]:
    done = [
        f"{one.name}: {counted(one.salvaged, 'row')} read from the damaged file"
        for one in tables
        if one.salvaged
    ]
    if backup is not None:
        done += [
            f"{one.name}: {counted(one.from_backup, 'row')} from {backup.name}"
            for one in tables
            if one.from_backup
        ]
    return done


def _describe_losses(tables: list[RebuiltTable]) -> list[str]:
    losses: list[str] = []
    for one in tables:
        gone = one.unreadable + one.unusable - one.from_backup
        if gone > 0:
            losses.append(f"{one.name}: {counted(gone, 'row')} could not be read")
        elif not one.complete and not one.from_backup:
            losses.append(f"{one.name}: rows may be missing; nobody knows how many there were")
    return losses
