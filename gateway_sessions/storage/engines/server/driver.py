"""`ServerDriver`: runs each transaction on its own connection, retries conflicts, finishes commits.

The driver keeps the order of transactions on the same lane, runs a transaction afresh after a conflict, and
waits for the end of a commit even if its caller is cancelled. Each server adds how a transaction of the
database begins, what a lock is and what an error means.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from random import SystemRandom
from typing import Any, ClassVar, Final, Protocol, TypeAlias, TypeVar

import anyio
from anyio.abc import TaskGroup

from gateway_sessions._process.failpoints import failpoint
from gateway_sessions._process.retry import Backoff
from gateway_sessions.core.cluster import POOL_SIZE
from gateway_sessions.core.committed_changes import CommittedChange
from gateway_sessions.core.search.stems import Stems
from gateway_sessions.errors import NodeSilentError, StorageUnavailableError, StoreStoppedError
from gateway_sessions.ports import Reader, Statement, TransactionFactory
from gateway_sessions.storage.engines.search_column import TokenLanguage
from gateway_sessions.storage.engines.server.executor import (
    BegunTransaction,
    Compose,
    Executor,
    ServerErrors,
    SnapshotReader,
    TransactionRun,
    single_change,
)
from gateway_sessions.storage.engines.server.ordering import LockOrder, RisingIds
from gateway_sessions.storage.files.threads import in_thread
from gateway_sessions.storage.tables.sql_files import (
    SEARCH,
    STORE,
    Migration,
    Query,
    load_migrations,
    load_queries,
)


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Limits the time of every step on a server, and how much one process asks of it at once."""

    statement_seconds: float = 5.0
    lock_seconds: float = 2.0
    idle_seconds: float = 5.0
    """Time for which a writing transaction may be idle: it holds locks, and old rows that cannot be
    vacuumed."""
    view_idle_seconds: float = 60.0
    """Time for which a view may be idle: its reader works on each page before it asks for the next."""
    answer_seconds: float = 10.0
    """Time after which a silent server counts as gone: a network may lose its answer without an error."""
    acquire_seconds: float = 5.0
    connections: int = POOL_SIZE
    attempts: int = 6
    """The most runs of a transaction that conflicts with others."""


USUAL: Final = ServerLimits()
PATIENT: Final = ServerLimits(statement_seconds=3600.0, view_idle_seconds=3600.0, answer_seconds=3660.0)
"""Limits for checks that compare all rows of a database, and whose callers wait for the result."""


async def run_to_the_end(
    work: Callable[[], Coroutine[Any, Any, None]], seconds: float
) -> asyncio.CancelledError | None:
    """Run *work* to its end, even if the caller is cancelled; raise `TimeoutError` after *seconds*.

    Return the cancellation that arrived meanwhile: the work is done, so the caller raises it after its own
    last steps. If the work fails, the cancellation is raised at once: else the caller, which was told to
    end, would retry.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    cancelled: asyncio.CancelledError | None = None
    # The shield also covers the end of the task group, which waits for the cancelled work.
    with anyio.CancelScope(shield=True):
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(_error_of(work))
            while not task.done() and loop.time() < until:
                try:
                    await asyncio.wait({task}, timeout=until - loop.time())
                except asyncio.CancelledError as error:
                    cancelled = error
            task.cancel()
        failure = TimeoutError() if task.cancelled() else task.result()
        if failure is not None:
            raise (failure if cancelled is None else cancelled) from (None if cancelled is None else failure)
    return cancelled


async def _error_of(work: Callable[[], Coroutine[Any, Any, None]]) -> Exception | None:
    try:
        await work()
    except Exception as error:  # noqa: BLE001 -- returned to `run_to_the_end`
        return error
    return None


ANY: Final[Callable[[], float]] = SystemRandom().random
UNHEARD: Final = "this node could not say in time that it lives; it writes nothing until it can"
IN_DOUBT: Final = "the connection was lost while a change was committed; it may stand or not"
_AFTER_CONFLICT: Final = Backoff(timedelta(milliseconds=20), timedelta(milliseconds=320))
"""The pauses before a transaction runs again; a random part keeps two rivals from meeting again."""
_LONGEST: Final = 2
"""The most lock timeouts that one transaction may wait, even if attempts are left: on some servers a lock
timeout looks like a conflict, and each attempt would wait once more."""

T = TypeVar("T")


class ServerConnection(Executor, Protocol):
    """A connection of a server that its borrower alone uses."""

    async def begin_writing(self, lock: str | None, epoch: int | None) -> None:
        """Begin to write under this lock, or under the lock of the whole store if it is None.

        Raise `NodeSilentError` if the node of that *epoch* was declared dead.
        """
        ...

    async def begin_reading(self, *, view: bool) -> None:
        """Begin to read one snapshot; a *view* may be idle for longer."""
        ...

    async def commit(self) -> None:
        """Commit the transaction of the database."""
        ...

    async def roll_back_after(self, error: BaseException) -> None:
        """Roll back after *error*, or close the connection if it cannot be used again."""
        ...

    def close(self) -> None:
        """Close the connection: the server rolls back what was not committed."""
        ...


Begin: TypeAlias = Callable[[ServerConnection], Coroutine[Any, Any, None]]
Lend: TypeAlias = Callable[[], AbstractAsyncContextManager[ServerConnection]]
"""Lends a connection until the end of the block."""


class ServerDriver(ABC):
    """Runs transactions on a database of a server that other processes may use as well."""

    engine: ClassVar[str]
    dialect: ClassVar[Path | None] = None
    """A folder with the queries in which a database differs from the engine that it resembles."""
    troubles: ClassVar[ServerErrors]
    index_language: TokenLanguage
    """The language of the search index in the database."""

    def __init__(
        self, *, limits: ServerLimits, migrations: Sequence[Migration] = (), jitter: Callable[[], float] = ANY
    ) -> None:
        self._limits = limits
        self._migrations = migrations
        self._jitter = jitter
        self._queries: Mapping[str, Query] = {}
        self._lend: Lend | None = None
        self._order = LockOrder()
        self.ids: RisingIds = RisingIds()
        self.epoch: int | None = None
        """The epoch of the node that this process is; None before it joins. The server refuses its changes
        once the node was declared dead."""
        self.trusted: Callable[[], bool] = lambda: True
        """Returns True while no other node can have declared this node dead."""
        self.on_call: Callable[[frozenset[int]], object] = lambda _: None
        """Called with the epochs of the nodes that another node asks to look at once."""
        self.changes: int = 0
        """The number of commits of this process that have changed what sessions.json shows."""
        self.on_change: Callable[[], None] = lambda: None
        """Called after a commit of this process that has changed what sessions.json shows."""
        self.on_news: Callable[[Sequence[CommittedChange]], None] = lambda _: None
        """Called with the changes that commits of this process have brought about."""

    def stem_with(self, stems: Stems) -> None:
        """Use these stems for the words of messages."""
        self.index_language = replace(self.index_language, stems=stems)

    @property
    def compose(self) -> Compose | None:
        """Return the function that composes queries into one; None: each is asked by itself."""
        return None

    async def describe_blockers(self) -> str:
        """Return a sentence about connections whose locks others wait for; empty if none are known."""
        return ""

    @abstractmethod
    async def _connect(self, migrations: Sequence[Migration], cleanup: AsyncExitStack) -> Lend:
        """Open connections, migrate the database, and return how to borrow a connection."""

    async def start(self, tasks: TaskGroup, cleanup: AsyncExitStack) -> None:
        """Connect and migrate the database; *cleanup* closes everything again."""
        del tasks
        load = partial(load_queries, self.engine, STORE, SEARCH, dialect=self.dialect)
        self._queries = await in_thread(load)
        migrations = self._migrations or await in_thread(partial(load_migrations, self.engine, self.dialect))
        try:
            lend = await self._connect(migrations, cleanup)
        except self.troubles.driver_errors as error:
            raise self.troubles.translate(error) from error
        cleanup.callback(self._stop)
        self._lend = lend

    async def write(self, transaction: TransactionFactory[T]) -> T:
        """Run a transaction; when this returns, the outcome is durable.

        If the caller is cancelled before the commit, the changes are rolled back; during the commit, they
        stand.
        """
        if not self.trusted():
            raise NodeSilentError(self.troubles.what, UNHEARD)
        return await self._write_as_node(transaction, self.epoch)

    async def _write_as_node(self, transaction: TransactionFactory[T], epoch: int | None) -> T:
        """Run a transaction as the node of that epoch, or as no node."""
        try:
            return await self._write_in_turn_of_lock(transaction, epoch)
        except self.troubles.driver_errors as error:
            raise self.troubles.translate(error) from error

    async def change(self, statement: Statement) -> int:
        """Run one changing statement, durably; return how many rows it has changed."""
        return await self.write(lambda: single_change(statement))

    async def read(self, transaction: TransactionFactory[T]) -> T:
        """Run a transaction that changes nothing; it sees everything acknowledged before."""
        try:
            return await self._run_with_retries(BegunTransaction(transaction()), transaction, self._read_once)
        except self.troubles.driver_errors as error:
            raise self.troubles.translate(error) from error

    async def _read_once(self, begun: BegunTransaction[T]) -> T:
        async with self._transaction(lambda link: link.begin_reading(view=False)) as link:
            result = await self._transaction_run(link, reads=True).drive(begun)
            await link.commit()
            return result

    @asynccontextmanager
    async def view(self) -> AsyncGenerator[Reader]:
        """Lend a reader whose transactions all see the same snapshot; it keeps a connection until the end."""
        async with AsyncExitStack() as stack:
            try:
                transaction = self._transaction(lambda link: link.begin_reading(view=True))
                link = await stack.enter_async_context(transaction)
            except self.troubles.driver_errors as error:
                raise self.troubles.translate(error) from error
            yield SnapshotReader(self._transaction_run(link, reads=True), self.troubles)
            with suppress(*self.troubles.driver_errors):
                await link.commit()

    async def _write_in_turn_of_lock(self, transaction: TransactionFactory[T], epoch: int | None) -> T:
        begun = BegunTransaction(transaction())
        async with self._order.wait_for_turn(begun.lock) as waited:
            if waited:  # its factory may have read values that have changed since
                begun = BegunTransaction(transaction())
            return await self._write_with_retries(transaction, begun, epoch)

    async def _write_with_retries(
        self, transaction: TransactionFactory[T], begun: BegunTransaction[T], epoch: int | None
    ) -> T:
        """Run a transaction with a commit of its own."""
        return await self._run_with_retries(begun, transaction, lambda fresh: self._write_once(fresh, epoch))

    async def _run_with_retries(
        self,
        begun: BegunTransaction[T],
        transaction: TransactionFactory[T],
        run: Callable[[BegunTransaction[T]], Awaitable[T]],
    ) -> T:
        """Run a transaction, and again after a conflict or a connection lost before its commit.

        The server has rolled back what was not committed, so no change can happen twice.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + _LONGEST * self._limits.lock_seconds
        for failures in range(self._limits.attempts - 1):
            try:
                return await run(begun)
            except self.troubles.driver_errors as error:
                again = self.troubles.is_conflict(error) or self.troubles.was_cut_before_answer(error)
                if not again or loop.time() >= until:
                    raise
            await asyncio.sleep(_AFTER_CONFLICT.after(failures).total_seconds() * (0.5 + self._jitter()))
            begun = BegunTransaction(transaction())
        return await run(begun)

    async def _write_once(self, begun: BegunTransaction[T], epoch: int | None) -> T:
        async with self._transaction(lambda link: link.begin_writing(begun.lock, epoch)) as link:
            run = self._transaction_run(link, None if begun.lock is None else {begun.lock})
            result = await run.drive(begun)
            failpoint("before_commit")
            cancelled = await self._commit_to_the_end(link)
            failpoint("after_commit")
            # Before the connection is returned: even if the caller is cancelled then, the changes stand.
            self._tell_listeners([run])
        if cancelled is not None:
            raise cancelled
        return result

    def _transaction_run(
        self, link: ServerConnection, held: set[str] | None = None, *, reads: bool = False
    ) -> TransactionRun:
        return TransactionRun(
            link, self._queries, self.index_language, held, reads=reads, compose=self.compose
        )

    def _tell_listeners(self, runs: Sequence[TransactionRun]) -> None:
        """Tell the listeners what a commit has changed."""
        if any(run.changed_snapshot for run in runs):
            self.changes += 1
            self.on_change()
        for run in runs:
            if run.news:
                self.on_news(run.news)

    async def _commit_to_the_end(self, link: ServerConnection) -> asyncio.CancelledError | None:
        """Commit, even if the caller is cancelled: half a commit would have an unknown outcome.

        Return the cancellation, which the caller raises at its end.
        """
        try:
            return await run_to_the_end(link.commit, self._limits.answer_seconds)
        except self.troubles.driver_errors as error:
            if not self.troubles.ends_connection(error):
                raise
            link.close()
            raise StorageUnavailableError(self.troubles.what, IN_DOUBT, in_doubt=True) from error

    @asynccontextmanager
    async def _transaction(self, begin: Begin) -> AsyncGenerator[ServerConnection]:
        """Begin a transaction of the database on a connection of its own; an error rolls it back.

        The caller commits it.
        """
        async with AsyncExitStack() as lent:
            link = await self._begin_on_connection(begin, lent)
            try:
                yield link
            except BaseException as error:
                await link.roll_back_after(error)
                raise

    async def _begin_on_connection(self, begin: Begin, lent: AsyncExitStack) -> ServerConnection:
        """Return a connection in a transaction of the database.

        All pooled connections may have been cut while they were idle, so as many as the pool keeps may fail,
        and one more.
        """
        kept = self._limits.connections
        while True:
            if (lend := self._lend) is None:
                raise StoreStoppedError("database")
            async with AsyncExitStack() as attempt:
                link = await self._borrow_connection(lend, attempt)
                try:
                    await begin(link)
                except BaseException as error:
                    await link.roll_back_after(error)
                    if not kept or not self.troubles.was_cut_before_answer(error):
                        raise
                    kept -= 1
                else:
                    lent.push_async_exit(attempt.pop_all())
                    return link

    async def _borrow_connection(self, lend: Lend, attempt: AsyncExitStack) -> ServerConnection:
        """Return a connection. If none can be had the server is away, and this is not retried at once."""
        try:
            return await attempt.enter_async_context(lend())
        except self.troubles.driver_errors as error:
            raise self.troubles.translate(error) from error

    def _stop(self) -> None:
        self._lend = None
