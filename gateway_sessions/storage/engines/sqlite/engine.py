"""The SQLite engine and its read-only form: one writing connection and several reading ones.

Each connection has a thread of its own. The writing connection also checkpoints: no other one does, which
keeps versions of SQLite safe that corrupt a write-ahead log when two connections checkpoint it. The engine
owns the directory around the file; a reader does not, and changes nothing.
"""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from enum import StrEnum
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Final, NoReturn, TypeVar
from urllib.parse import quote

from anyio.abc import TaskGroup

from gateway_sessions.core.committed_changes import CommittedChange
from gateway_sessions.core.search.stems import Stems
from gateway_sessions.errors import NoStoreError, StorageError, StoreStoppedError
from gateway_sessions.ports import Clock, Reader, Statement, TransactionFactory
from gateway_sessions.storage.engines.migrations import require_current_schema
from gateway_sessions.storage.engines.protocol import SharedDatabase, Upkeep, VacuumReport
from gateway_sessions.storage.engines.search_column import TokenLanguage
from gateway_sessions.storage.engines.sqlite import backup
from gateway_sessions.storage.engines.sqlite.backup import BACKUPS, back_up, keep_newest, newest_backup
from gateway_sessions.storage.engines.sqlite.errors import translate_error
from gateway_sessions.storage.engines.sqlite.schema import (
    APPLICATION_ID,
    check_sqlite_version,
    prepare_file,
    read_schema_version,
)
from gateway_sessions.storage.engines.sqlite.worker import (
    MAX_TRANSACTIONS,
    READ,
    WRITE,
    Queue,
    SqliteWorker,
    StopWorker,
    WorkerCall,
    WriteRequest,
    fail_waiting_requests,
    run_transaction,
)
from gateway_sessions.storage.files.private_files import prepare_database_file, prepare_sidecars_for_reader
from gateway_sessions.storage.files.threads import in_thread
from gateway_sessions.storage.home import own_home, prepare_home, refuse_unfinished_repair
from gateway_sessions.storage.tables.sql_files import Migration, Query, load_migrations, load_queries

ENGINE: Final = "sqlite"
BUSY_SECONDS: Final = 15.0
"""The time for which a transaction waits for a lock on the file that another program holds, for example a
backup tool."""
READERS: Final = 2
"""Two, so that a long read does not keep a short one waiting; each costs a thread and a page cache."""

T = TypeVar("T")


class Synchronous(StrEnum):
    """States when a commit counts as durable."""

    FULL = "FULL"  # when it would survive a power failure
    NORMAL = "NORMAL"  # when it would survive the end of this process


class SqliteDriver:
    """Runs transactions on one SQLite file. The caller makes sure that no other process writes it."""

    index_language: TokenLanguage | None = None
    upkeep: Upkeep | None = None
    shared: SharedDatabase | None = None
    """None: only one process can open the file."""

    def __init__(
        self,
        path: Path,
        *,
        synchronous: Synchronous = Synchronous.FULL,
        busy_seconds: float = BUSY_SECONDS,
        migrations: Sequence[Migration] = (),
    ) -> None:
        self.path: Path = path
        self._synchronous = synchronous
        self._busy_seconds = busy_seconds
        self._migrations = migrations
        self._queries: Mapping[str, Query] = {}
        self._writes: Queue = SimpleQueue()
        self._reads: Queue = SimpleQueue()
        self._writer: SqliteWorker | None = None
        self._serving = False
        self.on_change: Callable[[], None] = lambda: None
        """Called after a commit that has changed what sessions.json shows."""
        self.on_news: Callable[[Sequence[CommittedChange]], None] = lambda _: None
        """Called with the changes of each commit, in order, before the callers of its transactions wake."""

    @property
    def place(self) -> str:
        """The database file as a text; an engine of another package may say something else."""
        return str(self.path)

    async def start(self, tasks: TaskGroup, cleanup: AsyncExitStack) -> None:
        """Open the file, migrate it and begin to serve; *cleanup* closes everything again."""
        check_sqlite_version()
        # Registered first, so it runs last: then no thread serves the queues any more.
        cleanup.callback(self._refuse_waiting)
        self._queries = await in_thread(partial(load_queries, ENGINE))
        migrations: Sequence[Migration] = self._migrations or await in_thread(
            partial(load_migrations, ENGINE)
        )
        try:
            await in_thread(partial(prepare_database_file, self.path, APPLICATION_ID))
        except OSError as error:
            raise translate_error(error, str(self.path)) from error
        self._writer = await self._open_worker(self._writes, cleanup, read_only=False)
        self._writer.on_change, self._writer.on_news = self.on_change, self.on_news
        try:
            await self._writer.call(
                lambda raw: prepare_file(raw, self.path, migrations, synchronous=self._synchronous)
            )
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
            raise translate_error(error, str(self.path)) from error
        readers = [await self._open_worker(self._reads, cleanup, read_only=True) for _ in range(READERS)]
        cleanup.callback(self._stop_workers)
        self._serving = True
        for worker in (self._writer, *readers):
            tasks.start_soon(worker.run)

    @property
    def changes(self) -> int:
        """Return how many commits since the start have changed what sessions.json shows."""
        return self._writer.changes if self._writer is not None else 0

    def end_with(self, transaction: TransactionFactory[None]) -> None:
        """Run that transaction last, when the engine stops. Its failure is not reported."""
        if self._writer is not None:
            self._writer.last = WriteRequest(transaction, asyncio.get_running_loop().create_future())

    def write(self, transaction: TransactionFactory[T]) -> Awaitable[T]:
        """Run a transaction; when the result is awaited, the outcome is durable.

        The transaction joins the queue at once. If its caller is cancelled while it waits there, it is
        withdrawn; if it runs already, its changes stand.
        """
        return self._enqueue(self._writes, transaction)

    def change(self, statement: Statement) -> Awaitable[int]:
        """Run one changing statement, durably; return how many rows it has changed."""
        return self._enqueue(self._writes, statement)

    def stem_with(self, stems: Stems) -> None:
        """Do nothing: the search index is a file beside this one, with stems of its own."""

    def begin_epoch(self, epoch: int, first_id: int) -> Iterator[int]:
        """Return the row ids from *first_id* on. The lock of the directory keeps other owners out."""
        del epoch
        return itertools.count(first_id)

    async def call_between_batches(self, call: Callable[[sqlite3.Connection], T]) -> T:
        """Call a function with the writing connection between two batches; writers wait until it ends."""
        if not self._serving:
            raise StoreStoppedError("database")
        request: WorkerCall[T] = WorkerCall(call, asyncio.get_running_loop().create_future())
        self._writes.put(request)
        return await request.future

    async def read(self, transaction: TransactionFactory[T]) -> T:
        """Run a transaction that changes nothing; it sees everything acknowledged before."""
        return await self._enqueue(self._reads, transaction)

    @asynccontextmanager
    async def view(self) -> AsyncGenerator[Reader]:
        """Lend a reader whose transactions all see the same snapshot."""
        if not self._serving:
            raise StoreStoppedError("database")
        async with AsyncExitStack() as cleanup:
            worker = await self._open_worker(SimpleQueue(), cleanup, read_only=True)
            try:
                await worker.call(_begin_snapshot)
            except sqlite3.Error as error:
                raise translate_error(error, str(self.path)) from error
            yield _SnapshotReader(worker, self)

    async def run_in_view(self, worker: SqliteWorker, transaction: TransactionFactory[T]) -> T:
        """Run a transaction on the connection of a view."""
        try:
            return await worker.call(lambda raw: run_transaction(raw, self._queries, transaction()))
        except sqlite3.Error as error:
            raise translate_error(error, str(self.path)) from error

    def _enqueue(self, queue: Queue, work: TransactionFactory[T] | Statement) -> asyncio.Future[T]:
        if not self._serving:
            raise StoreStoppedError("database")
        request: WriteRequest[T] = WriteRequest(work, asyncio.get_running_loop().create_future())
        queue.put(request)
        return request.future

    async def _open_worker(self, queue: Queue, cleanup: AsyncExitStack, *, read_only: bool) -> SqliteWorker:
        mode, begin = ("ro", READ) if read_only else ("rwc", WRITE)
        # A reader takes one transaction at a time: another reader can run the next one meanwhile.
        limit = 1 if read_only else MAX_TRANSACTIONS
        worker = SqliteWorker(str(self.path), self._queries, queue, begin=begin, max_transactions=limit)
        uri = f"file:{quote(str(self.path))}?mode={mode}"
        try:
            await worker.connect(uri, cleanup, busy_seconds=self._busy_seconds)
            if read_only:
                await worker.call(lambda raw: raw.execute("PRAGMA query_only = ON"))
        except sqlite3.Error as error:
            raise translate_error(error, str(self.path)) from error
        return worker

    def _stop_workers(self) -> None:
        """Let the threads of all workers end, so that their connections can be closed."""
        self._serving = False
        self._writes.put(StopWorker.STOP)
        for _ in range(READERS):
            self._reads.put(StopWorker.STOP)

    def _refuse_waiting(self) -> None:
        """Fail all requests that still wait, as no worker serves the queues any more."""
        fail_waiting_requests(self._writes, "database")
        fail_waiting_requests(self._reads, "database")


def _begin_snapshot(connection: sqlite3.Connection) -> None:
    """Begin a transaction of the database that sees the file as it is now.

    SQLite takes the snapshot at the first query, so one is run here.
    """
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM sqlite_master").fetchone()


class _SnapshotReader:
    """Runs reading transactions in one transaction of the database, which stays open."""

    def __init__(self, worker: SqliteWorker, driver: SqliteDriver) -> None:
        self._worker = worker
        self._driver = driver

    async def read(self, transaction: TransactionFactory[T]) -> T:
        """Run a transaction that changes nothing."""
        return await self._driver.run_in_view(self._worker, transaction)


class SqliteReadingEngine(SqliteDriver):
    """Reads a file that another process may own, without a lock that it would wait for or a checkpoint."""

    @asynccontextmanager
    async def owned(self, clock: Clock, *, wait: float) -> AsyncGenerator[None]:
        """Own nothing: a reader has no home."""
        del clock, wait
        yield

    async def start(self, tasks: TaskGroup, cleanup: AsyncExitStack) -> None:
        """Open the file without a migration and begin to serve; *cleanup* closes everything again."""
        check_sqlite_version()
        if not await in_thread(self.path.exists):
            raise NoStoreError(str(self.path))
        await in_thread(partial(prepare_sidecars_for_reader, self.path))
        cleanup.callback(self._refuse_waiting)
        self._queries = await in_thread(partial(load_queries, ENGINE))
        await in_thread(partial(load_migrations, ENGINE))
        readers = [await self._open_worker(self._reads, cleanup, read_only=True) for _ in range(READERS)]
        try:
            await readers[0].call(self._check_schema)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise translate_error(error, str(self.path)) from error
        cleanup.callback(self._stop_workers)
        self._serving = True
        for worker in readers:
            tasks.start_soon(worker.run)

    async def write(self, transaction: TransactionFactory[T]) -> T:
        """Raise `StorageError`: a reader changes nothing."""
        self._refuse_change()

    async def call_between_batches(self, call: Callable[[sqlite3.Connection], T]) -> T:
        """Raise `StorageError`: a reader has no writing connection."""
        self._refuse_change()

    async def change(self, statement: Statement) -> int:
        """Raise `StorageError`: a reader changes nothing."""
        self._refuse_change()

    def _check_schema(self, connection: sqlite3.Connection) -> None:
        require_current_schema(
            str(self.path), read_schema_version(connection, self.path), load_migrations(ENGINE)
        )

    def _refuse_change(self) -> NoReturn:
        raise StorageError(str(self.path), "was opened for reading; ask its owner to change something")


BEYOND = (1 << 63) - 1


class FileUpkeep:
    """Does the upkeep of a SQLite file, on the writing connection between two batches."""

    def __init__(self, path: Path, driver: SqliteDriver) -> None:
        self._path = path
        self._driver = driver

    async def vacuum(self) -> VacuumReport:
        """Write the file anew without gaps. Writers wait meanwhile, and the disk needs room for both."""
        return await self._driver.call_between_batches(backup.vacuum)

    async def optimise(self) -> None:
        """Refresh the statistics of the query planner."""
        await self._driver.call_between_batches(backup.optimise)

    async def empty_log(self) -> bool:
        """Truncate the write-ahead log; return False if a reader in an older snapshot prevents that."""
        return await self._driver.call_between_batches(backup.empty_log)

    async def overwrite_deleted(self, *, overwrite: bool) -> None:
        """Set whether the space of deleted rows is overwritten with zeros from now on."""
        await self._driver.call_between_batches(partial(backup.overwrite_deleted, overwrite=overwrite))

    def newest_backup(self) -> datetime | None:
        """Return when the newest backup was taken. Reads the disk."""
        return newest_backup(self._path.parent / BACKUPS)

    async def back_up(self, now: datetime, *, keep: int | None) -> Path:
        """Write a verified backup of the database as it is now, and remove all but the newest *keep*."""
        folder = self._path.parent / BACKUPS
        copy = await in_thread(partial(back_up, self._path, folder, now))
        if keep is not None:
            await in_thread(partial(keep_newest, folder, keep))
        return copy


class SqliteEngine(SqliteDriver):
    """Owns a database file, with the directory around it."""

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

    @asynccontextmanager
    async def owned(self, clock: Clock, *, wait: float) -> AsyncGenerator[None]:
        """Own the directory until the end of the block."""
        home = self.path.parent
        await in_thread(partial(prepare_home, home, allow_network=self._allow_network))
        async with own_home(home, clock, wait=wait):
            await in_thread(partial(refuse_unfinished_repair, self.path))
            yield
