"""The embedded database: one connection writes and checkpoints, a few read, each on a thread of its own."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from enum import StrEnum
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Final, TypeVar
from urllib.parse import quote

from anyio.abc import TaskGroup

from gateway_sessions.core.news import News
from gateway_sessions.errors import StoreStoppedError
from gateway_sessions.ports import Reader, Statement, VerbFactory
from gateway_sessions.storage.drivers.sqlite_errors import translate
from gateway_sessions.storage.drivers.sqlite_run import drive
from gateway_sessions.storage.drivers.sqlite_schema import APPLICATION_ID, check_library, prepare
from gateway_sessions.storage.drivers.sqlite_worker import (
    MAX_VERBS,
    READ,
    WRITE,
    Errand,
    Queue,
    Request,
    Stop,
    Worker,
    refuse_all,
)
from gateway_sessions.storage.in_thread import in_thread
from gateway_sessions.storage.private_files import prepare_database_file
from gateway_sessions.storage.queries import Migration, Query, load_migrations, load_queries

ENGINE: Final = "sqlite"
BUSY_SECONDS: Final = 15.0
"""How long a transaction waits for a lock that somebody else holds on the file, a backup tool for example."""
READERS: Final = 2

T = TypeVar("T")


class Synchronous(StrEnum):
    """When a commit counts as done."""

    FULL = "FULL"  # when it would survive a power failure
    NORMAL = "NORMAL"  # when it would survive the end of this process


class SqliteDriver:
    """Runs verbs on one SQLite file. The caller makes sure that no other process writes it."""

    def __init__(
        self,
        path: Path,
        *,
        synchronous: Synchronous = Synchronous.FULL,
        busy_seconds: float = BUSY_SECONDS,
        migrations: Sequence[Migration] = (),
    ) -> None:
        self._path = path
        self._synchronous = synchronous
        self._busy_seconds = busy_seconds
        self._migrations = migrations
        self._queries: Mapping[str, Query] = {}
        self._writes: Queue = SimpleQueue()
        self._reads: Queue = SimpleQueue()
        self._writer: Worker | None = None
        self._serving = False
        self.on_change: Callable[[], None] = lambda: None
        """Called after a commit that has changed what sessions.json shows."""
        self.on_news: Callable[[Sequence[News]], None] = lambda _: None
        """Called with what commits have brought about, in their order; nobody is answered before."""

    async def start(self, tasks: TaskGroup, cleanup: AsyncExitStack) -> None:
        """Open the file, bring it up to date and begin to serve; *cleanup* closes everything again."""
        check_library()
        cleanup.callback(self._refuse_waiting)
        self._queries = await in_thread(partial(load_queries, ENGINE))
        migrations: Sequence[Migration] = self._migrations or await in_thread(
            partial(load_migrations, ENGINE)
        )
        try:
            await in_thread(partial(prepare_database_file, self._path, APPLICATION_ID))
        except OSError as error:
            raise translate(error, str(self._path)) from error
        self._writer = await self._open(self._writes, cleanup, read_only=False)
        self._writer.on_change, self._writer.on_news = self.on_change, self.on_news
        try:
            await self._writer.call(
                lambda raw: prepare(raw, self._path, migrations, synchronous=self._synchronous)
            )
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
            raise translate(error, str(self._path)) from error
        readers = [await self._open(self._reads, cleanup, read_only=True) for _ in range(READERS)]
        cleanup.callback(self._stop)
        self._serving = True
        for worker in (self._writer, *readers):
            tasks.start_soon(worker.run)

    @property
    def changes(self) -> int:
        """How often the truth behind sessions.json has changed since the file was opened."""
        return self._writer.changes if self._writer is not None else 0

    def end_with(self, verb: VerbFactory[None]) -> None:
        """Run that verb when nothing else will be run any more. Nobody learns whether it could be."""
        if self._writer is not None:
            self._writer.last = Request(verb, asyncio.get_running_loop().create_future())

    def write(self, verb: VerbFactory[T]) -> Awaitable[T]:
        """Run a verb in a transaction; when this is awaited, the outcome is durable.

        It stands in line at once. Cancelled while it waits there, it is withdrawn; cancelled while it runs,
        its outcome stands.
        """
        return self._ask(self._writes, verb)

    def change(self, statement: Statement) -> Awaitable[int]:
        """Run one changing statement, durably; how many rows it has changed. The shortest of verbs."""
        return self._ask(self._writes, statement)

    async def attend(self, errand: Callable[[sqlite3.Connection], T]) -> T:
        """Do something on the writing connection between two batches; writers wait until it is done."""
        if not self._serving:
            raise StoreStoppedError("database")
        request: Errand[T] = Errand(errand, asyncio.get_running_loop().create_future())
        self._writes.put(request)
        return await request.future

    async def read(self, verb: VerbFactory[T]) -> T:
        """Run a verb that changes nothing; it sees everything acknowledged before."""
        return await self._ask(self._reads, verb)

    @asynccontextmanager
    async def view(self) -> AsyncGenerator[Reader]:
        """A reader of its own whose verbs all see the same moment."""
        if not self._serving:
            raise StoreStoppedError("database")
        async with AsyncExitStack() as cleanup:
            worker = await self._open(SimpleQueue(), cleanup, read_only=True)
            try:
                await worker.call(_begin_to_read)
            except sqlite3.Error as error:
                raise translate(error, str(self._path)) from error
            yield _View(worker, self)

    async def run_in_view(self, worker: Worker, verb: VerbFactory[T]) -> T:
        """Run a verb on the connection of a view."""
        try:
            return await worker.call(lambda raw: drive(raw, self._queries, verb()))
        except sqlite3.Error as error:
            raise translate(error, str(self._path)) from error

    def _ask(self, queue: Queue, work: VerbFactory[T] | Statement) -> asyncio.Future[T]:
        if not self._serving:
            raise StoreStoppedError("database")
        request: Request[T] = Request(work, asyncio.get_running_loop().create_future())
        queue.put(request)
        return request.future

    async def _open(self, queue: Queue, cleanup: AsyncExitStack, *, read_only: bool) -> Worker:
        mode, begin = ("ro", READ) if read_only else ("rwc", WRITE)
        limit = 1 if read_only else MAX_VERBS  # a reader leaves what waits behind its verb to the others
        worker = Worker(str(self._path), self._queries, queue, begin=begin, max_verbs=limit)
        uri = f"file:{quote(str(self._path))}?mode={mode}"
        try:
            await worker.connect(uri, cleanup, busy_seconds=self._busy_seconds)
            if read_only:
                await worker.call(lambda raw: raw.execute("PRAGMA query_only = ON"))
        except sqlite3.Error as error:
            raise translate(error, str(self._path)) from error
        return worker

    def _stop(self) -> None:
        """Let every worker's thread go, so that its connection can be closed."""
        self._serving = False
        self._writes.put(Stop.STOP)
        for _ in range(READERS):
            self._reads.put(Stop.STOP)

    def _refuse_waiting(self) -> None:
        """Nobody serves the queues any more."""
        refuse_all(self._writes, "database")
        refuse_all(self._reads, "database")


def _begin_to_read(connection: sqlite3.Connection) -> None:
    """Begin a transaction and see what is there at once: by itself it would wait for the first verb."""
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM sqlite_master").fetchone()


class _View:
    """Reads on one connection whose transaction stays open."""

    def __init__(self, worker: Worker, driver: SqliteDriver) -> None:
        self._worker = worker
        self._driver = driver

    async def read(self, verb: VerbFactory[T]) -> T:
        """Run a verb that changes nothing."""
        return await self._driver.run_in_view(self._worker, verb)
