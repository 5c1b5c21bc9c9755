"""A SQLite file as the whole database of a store: it owns the directory around it, and sees to the file."""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from pathlib import Path

from gateway_sessions.core.search_stems import Stems
from gateway_sessions.ports import Clock
from gateway_sessions.storage.drivers import sqlite_upkeep
from gateway_sessions.storage.drivers.sqlite import BUSY_SECONDS, SqliteDriver, Synchronous
from gateway_sessions.storage.drivers.sqlite_backup import BACKUPS, back_up, keep_newest, newest_backup
from gateway_sessions.storage.drivers.sqlite_reader import SqliteReader
from gateway_sessions.storage.engine import Upkeep, VacuumReport
from gateway_sessions.storage.home import owned, prepare_home, refuse_unfinished_repair
from gateway_sessions.storage.in_thread import in_thread
from gateway_sessions.storage.queries import Migration
from gateway_sessions.storage.search_column.languages import Language

BEYOND = (1 << 63) - 1


class FileUpkeep:
    """What the owner of a SQLite file does for it, on the writing connection between two batches."""

    def __init__(self, path: Path, driver: SqliteDriver) -> None:
        self._path = path
        self._driver = driver

    async def vacuum(self) -> VacuumReport:
        """Write the file anew without gaps. Writers wait meanwhile, and the disk needs room for both."""
        return await self._driver.attend(sqlite_upkeep.vacuum)

    async def optimise(self) -> None:
        """Let the database learn what its tables hold by now."""
        await self._driver.attend(sqlite_upkeep.optimise)

    async def empty_log(self) -> bool:
        """Cut the write-ahead log to nothing; False if somebody reads an old moment."""
        return await self._driver.attend(sqlite_upkeep.empty_log)

    async def overwrite_deleted(self, *, overwrite: bool) -> None:
        """Whether the room of deleted rows is overwritten with zeros from now on."""
        await self._driver.attend(partial(sqlite_upkeep.overwrite_deleted, overwrite=overwrite))

    def newest_backup(self) -> datetime | None:
        """When the newest copy was taken. Looks at the disk."""
        return newest_backup(self._path.parent / BACKUPS)

    async def back_up(self, now: datetime, *, keep: int | None) -> Path:
        """Copy the database as it is now, read the copy back, and remove all but the newest *keep*."""
        folder = self._path.parent / BACKUPS
        copy = await in_thread(partial(back_up, self._path, folder, now))
        if keep is not None:
            await in_thread(partial(keep_newest, folder, keep))
        return copy


class SqliteEngine(SqliteDriver):
    """A file that this process owns, with the directory around it."""

    index_language: Language | None = None

    def __init__(
        self,
        path: Path,
        *,
        synchronous: Synchronous = Synchronous.FULL,
        busy_seconds: float = BUSY_SECONDS,
        migrations: Sequence[Migration] = (),
        allow_network: bool = False,
    ) -> None:
        super().__init__(path, synchronous=synchronous, busy_seconds=busy_seconds, migrations=migrations)
        self._allow_network = allow_network
        self.upkeep: Upkeep | None = FileUpkeep(path, self)

    def stem_with(self, stems: Stems) -> None:
        """The index is a file beside this one."""

    @property
    def path(self) -> Path:
        """The database file."""
        return self._path

    @property
    def place(self) -> str:
        """The same in words."""
        return str(self._path)

    @asynccontextmanager
    async def owned(self, clock: Clock, *, wait: float) -> AsyncGenerator[None]:
        """Own the directory until the end of the block."""
        home = self._path.parent
        await in_thread(partial(prepare_home, home, allow_network=self._allow_network))
        async with owned(home, clock, wait=wait):
            await in_thread(partial(refuse_unfinished_repair, self._path))
            yield

    @property
    def shared(self) -> None:
        """Nobody else has it open."""

    def begin_epoch(self, epoch: int, first_id: int) -> Iterator[int]:
        """Ids for rows. The lock of the directory sees to it that there is no later owner."""
        del epoch
        return itertools.count(first_id)


class SqliteReadingEngine(SqliteReader):
    """A file that another process may own: nothing of it is changed."""

    upkeep: Upkeep | None = None
    index_language: Language | None = None

    def stem_with(self, stems: Stems) -> None:
        """The index is a file beside this one."""

    @property
    def path(self) -> Path:
        """The database file."""
        return self._path

    @property
    def place(self) -> str:
        """The same in words."""
        return str(self._path)

    @asynccontextmanager
    async def owned(self, clock: Clock, *, wait: float) -> AsyncGenerator[None]:
        """Readers own nothing."""
        del clock, wait
        yield

    @property
    def shared(self) -> None:
        """Nobody else has it open."""

    def begin_epoch(self, epoch: int, first_id: int) -> Iterator[int]:
        """Nobody takes an id here."""
        del epoch
        return itertools.count(first_id)
