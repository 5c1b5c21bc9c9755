"""A SQLite file that another process may own: read, and nothing else."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import NoReturn

from anyio.abc import TaskGroup

from gateway_sessions.errors import NoStoreError, StorageError
from gateway_sessions.ports import Statement, VerbFactory
from gateway_sessions.storage.drivers.sqlite import ENGINE, READERS, SqliteDriver, T
from gateway_sessions.storage.drivers.sqlite_errors import translate
from gateway_sessions.storage.drivers.sqlite_schema import check_library, inspect
from gateway_sessions.storage.in_thread import in_thread
from gateway_sessions.storage.migrations import require_ready
from gateway_sessions.storage.private_files import prepare_to_read
from gateway_sessions.storage.queries import load_migrations, load_queries


class SqliteReader(SqliteDriver):
    """Runs reading verbs. It takes no lock that the owner would wait for, and never checkpoints."""

    async def start(self, tasks: TaskGroup, cleanup: AsyncExitStack) -> None:
        """Open the file as it is and begin to serve; *cleanup* closes everything again."""
        check_library()
        if not await in_thread(self._path.exists):
            raise NoStoreError(str(self._path))
        await in_thread(partial(prepare_to_read, self._path))
        cleanup.callback(self._refuse_waiting)
        self._queries = await in_thread(partial(load_queries, ENGINE))
        await in_thread(partial(load_migrations, ENGINE))
        readers = [await self._open(self._reads, cleanup, read_only=True) for _ in range(READERS)]
        try:
            await readers[0].call(self._check)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise translate(error, str(self._path)) from error
        cleanup.callback(self._stop)
        self._serving = True
        for worker in readers:
            tasks.start_soon(worker.run)

    async def write(self, verb: VerbFactory[T]) -> T:
        """Nothing can be written here."""
        self._refuse()

    async def attend(self, errand: Callable[[sqlite3.Connection], T]) -> T:
        """Nothing can be tidied up here."""
        self._refuse()

    async def change(self, statement: Statement) -> int:
        """Nothing can be changed here."""
        self._refuse()

    def _check(self, connection: sqlite3.Connection) -> None:
        require_ready(str(self._path), inspect(connection, self._path), load_migrations(ENGINE))

    def _refuse(self) -> NoReturn:
        raise StorageError(str(self._path), "was opened for reading; ask its owner to change something")
