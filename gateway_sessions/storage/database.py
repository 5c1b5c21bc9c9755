"""`SessionDB`: opens a database by its URL and runs transactions, with the methods of `storage/api`."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager
from datetime import datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Final, TypeVar

from anyio.abc import TaskGroup

from gateway_sessions._process.background import Resource
from gateway_sessions._process.clock import SystemClock
from gateway_sessions.core.cluster import LONGEST_NAME, POOL_SIZE, ClusterRules
from gateway_sessions.core.committed_changes import News
from gateway_sessions.core.instants import first_change_id
from gateway_sessions.core.search.stems import NO_STEMS, Stemming, Stems, stemming_of
from gateway_sessions.errors import OperatorsTaskError
from gateway_sessions.ports import Clock, Reader, Statement, Transaction, TransactionFactory
from gateway_sessions.storage.api.erasure import ErasureMethods
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
from gateway_sessions.storage.engines.membership import Membership
from gateway_sessions.storage.engines.opening_retry import OpeningRetry
from gateway_sessions.storage.engines.protocol import Engine, Shared, Upkeep, VacuumReport
from gateway_sessions.storage.engines.registry import engine_at, reading_engine_at
from gateway_sessions.storage.files.threads import in_thread
from gateway_sessions.storage.search.protocol import SearchIndex
from gateway_sessions.storage.search.search import Search
from gateway_sessions.storage.search.server_index import ColumnReader, ServerSearchIndex
from gateway_sessions.storage.search.sqlite_index import INDEX_FILE, IndexReader, SqliteSearchIndex
from gateway_sessions.storage.tables import meta, nodes
from gateway_sessions.storage.tables.nodes import JoinedNode, Living
from gateway_sessions.storage.transactions.search.stemming import stems_by, want

T = TypeVar("T")

logger: Final = logging.getLogger(__name__)

SECRET_BYTES: Final = 32
"""The size of the store's secret: no one can guess it, and so no pseudonym either."""
EPOCH_BITS: Final = 32
"""The number of bits below the epoch in an entry's id: room for the entries of one owner."""
ALONE: Final = ClusterRules()
LARGEST_GENERATION: Final = 1 << 62
"""The largest generation that is taken over from a file: counting must be able to go on above it."""


class SessionDB(
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
    Resource,
):
    """Runs transactions on a database. Open it with `async with SessionDB.open(path)`."""

    opening: meta.StoreOpening

    def __init__(
        self,
        engine: Engine,
        clock: Clock,
        *,
        wait: float,
        cluster: ClusterRules = ALONE,
        stemming: Stemming | str | None = None,
    ) -> None:
        super().__init__("database")
        self.path: Path = engine.path
        self.place: str = engine.place
        self._engine = engine
        self._clock = clock
        self._wait = wait
        self.changed: asyncio.Event = asyncio.Event()
        """Set whenever a commit has changed what sessions.json shows."""
        engine.on_change = self.changed.set
        self.on_news: Callable[[Sequence[News]], object] = _nobody
        """Called after each commit with the changes that it made."""
        self.on_index_fault: Callable[[str, Path | None], object] = lambda _problem, _place: None
        """Called when the search index was damaged, and is being made again."""
        engine.on_news = self._pass_on
        self.opening = meta.StoreOpening(0, last_change_id=0, install_secret=b"", generation=0, settled=False)
        self.change_ids: Iterator[int] = itertools.count()
        self.entry_ids: Iterator[int] = itertools.count()
        self._counted_from, self._first_id = 0, 0
        self.membership: Membership | None = self._membership_of(engine, cluster, clock)
        """This process as one node of several that have the store open; None where only one process can."""
        self._retry = OpeningRetry(wait, None if engine.shared is None else self._blockers)
        self._asked_stemming = None if stemming is None else stemming_of(stemming)
        self._stems = NO_STEMS
        self._erasing, self._copying = asyncio.Lock(), asyncio.Lock()
        self.writes_begun: int = 0
        """The number of writing transactions that this process has begun."""
        self.before_writes: list[Callable[[], object]] = []
        """Called before each write: a write that they begin shares its commit."""
        self._index = self._index_of(engine)
        self._search = Search(engine, self._index)

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
        self._check_running()
        self.writes_begun += 1
        for about_to_write in self.before_writes:
            about_to_write()
        try:
            return await self._retry.run(partial(self._engine.write, transaction))
        finally:  # the index may have been waiting for this commit
            self._index.wake()

    def begin_write(self, transaction: TransactionFactory[T]) -> Awaitable[T]:
        """Begin a transaction whose result is awaited later; an engine with a queue enters it at once."""
        self._check_running()
        self.writes_begun += 1
        self._index.wake()
        return self._engine.write(transaction)

    def change(self, statement: Statement) -> Awaitable[int]:
        """Run one writing statement durably; return the number of changed rows."""
        self._check_running()
        self.writes_begun += 1
        for about_to_write in self.before_writes:
            about_to_write()
        return self._engine.change(statement)

    async def read(self, transaction: TransactionFactory[T]) -> T:
        """Run a transaction that changes nothing; it sees everything acknowledged before."""
        self._check_running()
        return await self._retry.run(partial(self._engine.read, transaction))

    @asynccontextmanager
    async def view(self) -> AsyncGenerator[Reader]:
        """Yield a reader of its own, whose transactions all see the same moment."""
        self._check_running()
        async with self._engine.view() as reader:
            yield reader

    async def search_stems(self) -> Stems:
        """Return the stems by which words are found in all their forms."""
        return self._stems

    async def vacuum(self) -> VacuumReport:
        """Rewrite the database file without gaps. Writers wait, and the disk needs room for both files."""
        self._check_running()
        return await self._upkeep("be vacuumed").vacuum()

    async def optimise(self) -> None:
        """Update the statistics that the database plans queries by; `vacuum` does so as well."""
        self._check_running()
        await self._upkeep("be optimised").optimise()

    async def empty_log(self) -> bool:
        """Empty the write-ahead log; False if a reader still holds an old moment."""
        self._check_running()
        return await self._upkeep("have its log emptied").empty_log()

    async def overwrite_deleted(self, *, overwrite: bool) -> None:
        """Overwrite the space of deleted rows with zeros from now on, or stop doing so."""
        self._check_running()
        await self._upkeep("overwrite what is deleted").overwrite_deleted(overwrite=overwrite)

    @property
    def shared(self) -> Shared | None:
        """Return the database as several nodes share it; None where only one process can open it."""
        return self._engine.shared

    @property
    def epoch(self) -> int:
        """Return the number of this opening of the store."""
        return self.opening.epoch

    @property
    def has_upkeep(self) -> bool:
        """Return whether this program maintains the database file and makes its backups."""
        return self._engine.upkeep is not None

    def newest_backup(self) -> datetime | None:
        """Return the time of the newest backup. It reads the disk: call it from a thread."""
        return self._upkeep("be backed up").newest_backup()

    async def back_up(self, *, keep: int | None = None) -> Path:
        """Back up the database as it is now, check the backup, and remove all but the newest *keep*."""
        self._check_running()
        async with self._copying:
            return await self._upkeep("be backed up").back_up(self._clock.now(), keep=keep)

    @property
    def generation(self) -> int:
        """Return the generation, which rises with every change that sessions.json shows."""
        return self._counted_from + self._engine.changes

    def outdo(self, generation: int) -> None:
        """Let the generation go on above that of a file that was found."""
        self._counted_from = max(self._counted_from, min(generation, LARGEST_GENERATION) + 1)

    def changed_elsewhere(self) -> None:
        """Count a change of another process, which sessions.json may have to show."""
        self._counted_from += 1
        self.changed.set()

    def being_opened(self) -> AbstractContextManager[None]:
        """Try failed calls again, within the wait, until the end of the block: a store is being opened."""
        return self._retry.opening()

    async def _blockers(self) -> str:
        """Return the processes that keep a store from being opened, in words."""
        shared = self._engine.shared
        if shared is None:
            return ""
        known = await self._engine.read(nodes.all_nodes)
        silent = ", ".join(one.name for one in known if one.silent)
        found = [await shared.blockers(), f"silent nodes: {silent}" if silent else ""]
        return "; ".join(filter(None, found))

    @staticmethod
    def _membership_of(engine: Engine, cluster: ClusterRules, clock: Clock) -> Membership | None:
        if engine.shared is None:
            return None
        name = cluster.name or f"{socket.gethostname()}:{engine.path.parent}"[-LONGEST_NAME:]
        turned = None if isinstance(clock, SystemClock) else clock
        return Membership(engine.shared, cluster, name=name, clock=turned)

    def _index_of(self, engine: Engine) -> SearchIndex:
        """Return the search index of the engine."""
        if engine.index_language is not None:
            return ServerSearchIndex(engine, engine.index_language)
        return SqliteSearchIndex(engine.path.with_name(INDEX_FILE), engine, self._clock)

    def _pass_on(self, news: Sequence[News]) -> None:
        self.on_news(news)

    def _upkeep(self, what: str) -> Upkeep:
        if self._engine.upkeep is None:
            problem = f"cannot {what} from here; that is done on the server, with the means of its operator"
            raise OperatorsTaskError(self.place, problem)
        return self._engine.upkeep

    async def _start(self, tasks: TaskGroup, cleanup: AsyncExitStack) -> None:
        engine = self._engine
        await cleanup.enter_async_context(engine.owned(self._clock, wait=self._wait))
        with self.being_opened():
            await self._retry.run(partial(self._start_engine, tasks, cleanup))
            await self._open(tasks, os.urandom(SECRET_BYTES))
        self._counted_from = self.opening.generation + (not self.opening.settled)
        engine.end_with(self._last_words)
        self._index.on_fault = self.on_index_fault
        self._index.start(tasks, self.opening.last_change_id, orderly=self.opening.settled)

    async def _start_engine(self, tasks: TaskGroup, cleanup: AsyncExitStack) -> None:
        async with AsyncExitStack() as attempt:
            await self._engine.start(tasks, attempt)
            cleanup.push_async_exit(attempt.pop_all())

    async def _open(self, tasks: TaskGroup, secret: bytes) -> None:
        """Begin an epoch: as the only owner, or as one node among others."""
        engine = self._engine
        if self.membership is not None and engine.shared is not None:
            self.membership.on_joined = self._joined
            self.membership.version = await in_thread(partial(version, "gateway-sessions"))
            self.change_ids = engine.shared.ids
            await self._retry.run(partial(self.membership.join, secret))
            await self._choose_stems()
            self.membership.start(tasks, secret)
            return
        self.opening = opening = await engine.write(partial(meta.open_store, secret))
        first_id = first_change_id(self._clock.now(), opening.last_change_id)
        self.change_ids = engine.begin_epoch(opening.epoch, first_id)
        self.entry_ids = itertools.count(opening.epoch << EPOCH_BITS)
        self._first_id = first_id
        await self._choose_stems()

    def _joined(self, joined: JoinedNode) -> None:
        """Take over the epoch and the ids of the node that was joined."""
        self.opening = joined.opening
        self._stem_with(stems_by(joined.opening.stemming, self.place))
        self.entry_ids = itertools.count(joined.opening.epoch << EPOCH_BITS)

    async def _choose_stems(self) -> None:
        """Change the stems as asked for, unless other nodes have the store open: then use theirs."""
        stems = stems_by(self.opening.stemming, self.place)
        asked = stems if self._asked_stemming is None else Stems(self._asked_stemming)
        if asked.made_by != self.opening.stemming:
            if await self._retry.run(partial(self._engine.write, partial(want, asked, self.census))):
                stems = asked
            else:
                facts = {
                    "action": "stemming_kept",
                    "stemming": str(stems.stemming),
                    "asked": str(asked.stemming),
                }
                logger.warning("other nodes have the store open, so its search.stemming stays", extra=facts)
        await in_thread(partial(stems.of_word, ""))  # in a thread, because the import of its rules takes long
        self._stem_with(stems)

    def _stem_with(self, stems: Stems) -> None:
        if stems.made_by != self._stems.made_by:
            self._stems = stems
            self._engine.stem_with(stems)
            self._index.stem_with(stems)

    def census(self) -> Transaction[Living]:
        """Return the living nodes, for a node that takes over from dead ones. The transaction runs alone."""
        if self.membership is not None:
            return nodes.census()
        return nodes.only(self.opening.epoch, self._first_id)

    def _last_words(self) -> Transaction[None]:
        yield from meta.settle(self.generation, self.opening.epoch)
        if self.membership is not None:
            yield from nodes.leave(self.opening.epoch)


class _ReadingDB(SessionDB):
    """A `SessionDB` that owns nothing and writes nothing."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        super().__init__(engine, clock, wait=0)

    def _index_of(self, engine: Engine) -> SearchIndex:
        if engine.index_language is not None:
            return ColumnReader(engine, engine.index_language)
        return IndexReader(engine.path.with_name(INDEX_FILE), engine, self._clock)

    async def search_stems(self) -> Stems:
        """Return the stems of the store; its owner may have changed them since the last search."""
        rules = await self.read(meta.stemming)
        if rules != self._stems.made_by:
            stems = stems_by(rules, self.place)
            await in_thread(partial(stems.of_word, ""))
            self._stem_with(stems)
        return self._stems

    async def _start(self, tasks: TaskGroup, cleanup: AsyncExitStack) -> None:
        await self._engine.start(tasks, cleanup)
        await self._engine.read(meta.refuse_unfinished_move)


def _nobody(_: Sequence[News]) -> None:
    """Ignore news."""
