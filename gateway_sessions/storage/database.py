"""`SessionDB`: opens a database by its URL and runs transactions, with the methods of `storage/api`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from anyio.abc import TaskGroup

from gateway_sessions._process.background import Resource
from gateway_sessions._process.clock import SystemClock
from gateway_sessions.core.cluster import POOL_SIZE, ClusterRules
from gateway_sessions.core.search.stems import Stemming
from gateway_sessions.errors import OperatorsTaskError
from gateway_sessions.ports import Clock, Reader, Statement, Transaction, TransactionFactory
from gateway_sessions.storage.api.erasure import Eraser, ErasureMethods
from gateway_sessions.storage.api.metadata import MetadataMethods
from gateway_sessions.storage.api.retention import RetentionMethods, TransferMethods
from gateway_sessions.storage.api.search import SearchMethods
from gateway_sessions.storage.api.sessions import (
    LineageMethods,
    ListingMethods,
    SessionRowMethods,
    TitleMethods,
)
from gateway_sessions.storage.api.transcripts import TranscriptMethods
from gateway_sessions.storage.api.usage import UsageMethods
from gateway_sessions.storage.engines.protocol import Engine, Upkeep, VacuumReport
from gateway_sessions.storage.engines.registry import engine_at, reading_engine_at
from gateway_sessions.storage.listener import DatabaseListener
from gateway_sessions.storage.ownership import Ownership
from gateway_sessions.storage.search.protocol import SearchIndex
from gateway_sessions.storage.search.search import Search
from gateway_sessions.storage.search.server_index import ServerIndexReader, ServerSearchIndex
from gateway_sessions.storage.search.sqlite_index import INDEX_FILE, SqliteIndexReader, SqliteSearchIndex
from gateway_sessions.storage.search.stemming import ReadersStems, StoreStems
from gateway_sessions.storage.tables import meta

T = TypeVar("T")

ALONE: Final = ClusterRules()
IGNORING: Final = DatabaseListener()
LARGEST_GENERATION: Final = 1 << 62
"""The largest generation that is taken over from a file: counting must be able to go on above it."""


class Generation:
    """Counts the changes that sessions.json shows, and wakes its writer after each."""

    def __init__(self, engine: Engine) -> None:
        self.changed: asyncio.Event = asyncio.Event()
        """Set whenever a commit has changed what sessions.json shows."""
        self._engine = engine
        self._counted_from = 0

    @property
    def current(self) -> int:
        """Return the generation, which rises with every change that sessions.json shows."""
        return self._counted_from + self._engine.changes

    def go_on_from(self, generation: int) -> None:
        """Count from the generation that the store has when it is opened."""
        self._counted_from = generation

    def go_on_above(self, generation: int) -> None:
        """Let the generation go on above that of a file that was found."""
        self._counted_from = max(self._counted_from, min(generation, LARGEST_GENERATION) + 1)

    def count_change_elsewhere(self) -> None:
        """Count a change of another process, which sessions.json may have to show."""
        self._counted_from += 1
        self.changed.set()


class SessionDB(
    Resource,
    SessionRowMethods,
    TranscriptMethods,
    LineageMethods,
    TitleMethods,
    ListingMethods,
    UsageMethods,
    ErasureMethods,
    SearchMethods,
    TransferMethods,
    RetentionMethods,
    MetadataMethods,
):
    """Runs transactions on a database. Open it with `async with SessionDB.open(path)`."""

    def __init__(
        self,
        engine: Engine,
        clock: Clock,
        *,
        wait: float,
        cluster: ClusterRules = ALONE,
        stemming: Stemming | str | None = None,
        listener: DatabaseListener = IGNORING,
    ) -> None:
        super().__init__("database")
        self.path: Path = engine.path
        self.place: str = engine.place
        self._engine = engine
        self._clock = clock
        self.generation: Generation = Generation(engine)
        engine.on_change, engine.on_news = self.generation.changed.set, listener.hear_news
        self._index = self._index_of(engine, listener)
        self._stems = self._stems_of(stemming)
        self._search = Search(engine, self._index)
        self.ownership: Ownership = Ownership(
            engine, clock, cluster, wait=wait, listener=listener, on_joined=self._stems.use_stems_of
        )
        self.writes_begun: int = 0
        """The number of writing transactions that this process has begun."""
        self.before_writes: list[Callable[[], object]] = []
        """Called before each write: a write that they begin shares its commit."""
        self._eraser = Eraser(self, self.ownership, clock, engine.upkeep, self._index, listener)

    @classmethod
    def open(
        cls,
        url_or_path: str | Path,
        *,
        clock: Clock | None = None,
        wait: float = 0.0,
        survives_power_cut: bool = True,
        allow_network: bool = False,
        home: str | Path | None = None,
        cluster: ClusterRules = ALONE,
        prepared_statements: bool = True,
        pool_size: int = POOL_SIZE,
        pool: object | None = None,
        stemming: Stemming | str | None = None,
    ) -> SessionDB:
        """Return the database at a path, `sqlite:///path`, `postgresql://…`, `mysql://…` or another URL.

        If another process owns it, or a server is away, opening is tried for up to *wait* seconds. Files
        beside a database on a server are kept in *home*; without *home*, in a directory for that database in
        the user's data directory. Many processes may have that database open, each with a *home* of its own;
        *cluster* has the rules for them, and *pool_size* is the number of connections for the work of this
        process. On PostgreSQL a *pool* of asyncpg, made for that address by the program, can take the place
        of our own; it stays open afterwards. Without *prepared_statements* no statement is prepared on a
        connection.

        *stemming* is the language whose words searches find in all their forms, or "off"; None keeps the
        present one. After a change the search index is made again in the background. While other processes
        have the database open, it is not changed.
        """
        engine = engine_at(
            url_or_path,
            home=home,
            survives_power_cut=survives_power_cut,
            allow_network=allow_network,
            cluster=cluster,
            prepared_statements=prepared_statements,
            pool_size=pool_size,
            pool=pool,
        )
        return cls(engine, clock or SystemClock(), wait=wait, cluster=cluster, stemming=stemming)

    @classmethod
    def open_reader(
        cls,
        url_or_path: str | Path,
        *,
        clock: Clock | None = None,
        home: str | Path | None = None,
        prepared_statements: bool = True,
        pool_size: int = POOL_SIZE,
    ) -> SessionDB:
        """Return the same database for reading only, also if another process owns it; writes are refused."""
        engine = reading_engine_at(
            url_or_path, home=home, prepared_statements=prepared_statements, pool_size=pool_size
        )
        return _ReadingDB(engine, clock or SystemClock())

    async def write(self, transaction: TransactionFactory[T]) -> T:
        """Run a transaction; when this returns, its commit is durable."""
        self._count_write()
        try:
            if (retry := self.ownership.retry).is_opening:
                return await retry.run_with_retries(partial(self._engine.write, transaction))
            return await self._engine.write(transaction)
        finally:  # the index may have been waiting for this commit
            self._index.woken.set()

    def begin_write(self, transaction: TransactionFactory[T]) -> Awaitable[T]:
        """Begin a transaction whose result is awaited later; an engine with a queue enters it at once."""
        self._check_running()
        self.writes_begun += 1
        self._index.woken.set()
        return self._engine.write(transaction)

    def change(self, statement: Statement) -> Awaitable[int]:
        """Run one writing statement durably; return the number of changed rows."""
        self._count_write()
        return self._engine.change(statement)

    def _count_write(self) -> None:
        """Count a write, and let others begin theirs that shall share its commit."""
        self._check_running()
        self.writes_begun += 1
        for about_to_write in self.before_writes:
            about_to_write()

    async def read(self, transaction: TransactionFactory[T]) -> T:
        """Run a transaction that changes nothing; it sees everything acknowledged before."""
        self._check_running()
        if (retry := self.ownership.retry).is_opening:
            return await retry.run_with_retries(partial(self._engine.read, transaction))
        return await self._engine.read(transaction)

    @asynccontextmanager
    async def view(self) -> AsyncGenerator[Reader]:
        """Yield a reader of its own, whose transactions all see the same moment."""
        self._check_running()
        async with self._engine.view() as reader:
            yield reader

    async def vacuum(self) -> VacuumReport:
        """Rewrite the database file without gaps. Writers wait, and the disk needs room for both files."""
        self._check_running()
        return await self._require_upkeep("be vacuumed").vacuum()

    async def optimise(self) -> None:
        """Update the statistics that the database plans queries by; `vacuum` does so as well."""
        self._check_running()
        await self._require_upkeep("be optimised").optimise()

    async def empty_log(self) -> bool:
        """Empty the write-ahead log; False if a reader still holds an old moment."""
        self._check_running()
        return await self._require_upkeep("have its log emptied").empty_log()

    async def overwrite_deleted(self, *, overwrite: bool) -> None:
        """Overwrite the space of deleted rows with zeros from now on, or stop doing so."""
        self._check_running()
        await self._require_upkeep("overwrite what is deleted").overwrite_deleted(overwrite=overwrite)

    @property
    def has_upkeep(self) -> bool:
        """Return whether this program maintains the database file and makes its backups."""
        return self._engine.upkeep is not None

    def newest_backup(self) -> datetime | None:
        """Return the time of the newest backup. It reads the disk: call it from a thread."""
        return self._require_upkeep("be backed up").newest_backup()

    async def back_up(self, *, keep: int | None = None) -> Path:
        """Back up the database as it is now, check the backup, and remove all but the newest *keep*."""
        self._check_running()
        async with self._eraser.copying:
            return await self._require_upkeep("be backed up").back_up(self._clock.now(), keep=keep)

    @property
    def _change_ids(self) -> Iterator[int]:
        return self.ownership.change_ids

    def _index_of(self, engine: Engine, listener: DatabaseListener) -> SearchIndex:
        if engine.index_language is not None:
            return ServerSearchIndex(engine, engine.index_language)
        place = engine.path.with_name(INDEX_FILE)
        return SqliteSearchIndex(place, engine, self._clock, listener.hear_index_fault)

    def _stems_of(self, asked: Stemming | str | None) -> StoreStems:
        return StoreStems(self._engine, self._index, asked)

    def _require_upkeep(self, what: str) -> Upkeep:
        if self._engine.upkeep is None:
            problem = f"cannot {what} from here; that is done on the server, with the means of its operator"
            raise OperatorsTaskError(self.place, problem)
        return self._engine.upkeep

    async def _start(self, tasks: TaskGroup, cleanup: AsyncExitStack) -> None:
        engine, ownership = self._engine, self.ownership
        await cleanup.enter_async_context(engine.owned(self._clock, wait=ownership.retry.wait))
        with ownership.retry.while_opening():
            await ownership.retry.run_with_retries(partial(self._start_engine, tasks, cleanup))
            await ownership.begin_epoch()
            await self._stems.choose_stems(ownership)
            ownership.start(tasks)
        opening = ownership.opening
        self.generation.go_on_from(opening.generation + (not opening.settled))
        engine.end_with(self._end_epoch)
        self._index.start(tasks, opening.last_change_id, orderly=opening.settled)

    async def _start_engine(self, tasks: TaskGroup, cleanup: AsyncExitStack) -> None:
        async with AsyncExitStack() as attempt:
            await self._engine.start(tasks, attempt)
            cleanup.push_async_exit(attempt.pop_all())

    def _end_epoch(self) -> Transaction[None]:
        yield from meta.store_final_generation(self.generation.current, self.ownership.epoch)
        yield from self.ownership.leave_cluster()


class _ReadingDB(SessionDB):
    """A `SessionDB` that owns nothing and writes nothing."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        super().__init__(engine, clock, wait=0)

    def _index_of(self, engine: Engine, listener: DatabaseListener) -> SearchIndex:
        if engine.index_language is not None:
            return ServerIndexReader(engine, engine.index_language)
        place = engine.path.with_name(INDEX_FILE)
        return SqliteIndexReader(place, engine, self._clock, listener.hear_index_fault)

    def _stems_of(self, asked: Stemming | str | None) -> StoreStems:
        return ReadersStems(self._engine, self._index, asked)

    async def _start(self, tasks: TaskGroup, cleanup: AsyncExitStack) -> None:
        await self._engine.start(tasks, cleanup)
        await self._engine.read(meta.refuse_unfinished_move)
