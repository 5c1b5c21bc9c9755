"""`ServerDriver`: runs each transaction on its own connection, retries conflicts, finishes commits.

A database that many processes may use: each transaction has a connection of its own.

What all servers have in common: transactions in the order they were asked for, run afresh when others
overtake them, and committed to the end. How a transaction begins, what a lock is and what an error means,
each server says.

How much of a database server one process takes.

Work that nobody breaks off, whoever is cancelled meanwhile.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import SystemRandom
from typing import Any, ClassVar, Final, Protocol, TypeAlias, TypeVar

import anyio
from anyio.abc import TaskGroup

from gateway_sessions._failpoints import failpoint
from gateway_sessions.core.cluster import POOL_SIZE
from gateway_sessions.core.committed_changes import News
from gateway_sessions.core.search.stems import Stems
from gateway_sessions.errors import NodeSilentError, StorageUnavailableError, StoreStoppedError
from gateway_sessions.ports import Reader, Statement, TransactionFactory
from gateway_sessions.storage.engines.index_column import Language
from gateway_sessions.storage.engines.server.executor import (
    BegunTransaction,
    Compose,
    Executor,
    TransactionRun,
    Troubles,
    View,
    only,
)
from gateway_sessions.storage.engines.server.ordering import InOrder, RisingIds
from gateway_sessions.storage.files.threads import in_thread
from gateway_sessions.storage.tables.queries import (
    SEARCH,
    STORE,
    Migration,
    Query,
    load_migrations,
    load_queries,
)


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """How long anything may take before the server breaks it off, and how much is asked of it at once."""

    statement_seconds: float = 5.0
    lock_seconds: float = 2.0
    idle_seconds: float = 5.0
    """A transaction that does nothing holds its locks, and old rows that nobody can clear away."""
    view_idle_seconds: float = 60.0
    """Whoever reads page by page does something with each page."""
    answer_seconds: float = 10.0
    """A server that says nothing for longer is taken to be gone: a network may lose whatever it would say."""
    acquire_seconds: float = 5.0
    connections: int = POOL_SIZE
    attempts: int = 6
    """How often a transaction is run that others overtake."""


USUAL: Final = ServerLimits()
PATIENT: Final = ServerLimits(statement_seconds=3600.0, view_idle_seconds=3600.0, answer_seconds=3660.0)
"""For whoever compares all that there is with all that there is, and waits for it."""


async def to_the_end(
    work: Callable[[], Coroutine[Any, Any, None]], seconds: float
) -> asyncio.CancelledError | None:
    """Do *work* and wait for its end; `TimeoutError` if that does not come in time: then it is broken off.

    Returns the cancellation that came meanwhile: nothing is undone by it, so it has to wait. It is raised if
    the work fails: whoever was told to end would try again else.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    cancelled: asyncio.CancelledError | None = None
    # The shield is around the end of the group as well, which waits for work that was broken off.
    with anyio.CancelScope(shield=True):
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(_outcome(work))
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


async def _outcome(work: Callable[[], Coroutine[Any, Any, None]]) -> Exception | None:
    try:
        await work()
    except Exception as error:  # noqa: BLE001 -- handed to the one who waits for it
        return error
    return None


ANY: Final[Callable[[], float]] = SystemRandom().random
UNHEARD: Final = "this node could not say in time that it lives; it writes nothing until it can"
IN_DOUBT: Final = "the connection was lost while a change was committed; it may stand or not"
_FIRST_PAUSE: Final = 0.01
_LONGEST: Final = 2
"""Nobody waits longer than so many times for a lock, however many tries are left: on some servers, waiting in
vain looks like being overtaken."""

T = TypeVar("T")


class ServerConnection(Executor, Protocol):
    """A connection of a server that is ours alone for as long as we have it."""

    async def begin_writing(self, lock: str | None, epoch: int | None) -> None:
        """Begin a transaction that has this lock, or the whole store if it is None.

        `NodeSilentError` if the node of that *epoch* was declared dead.
        """
        ...

    async def begin_reading(self, *, view: bool) -> None:
        """Begin a transaction that sees this moment until it ends, for longer if it is a *view*."""
        ...

    async def commit(self) -> None:
        """End the transaction: what it has done stands."""
        ...

    async def undo(self, error: BaseException) -> None:
        """End the transaction, or the whole connection, after that error: what it has done is undone."""
        ...

    def close(self) -> None:
        """Hang up: the server undoes what was not committed."""
        ...


Begin: TypeAlias = Callable[[ServerConnection], Coroutine[Any, Any, None]]
Lend: TypeAlias = Callable[[], AbstractAsyncContextManager[ServerConnection]]
"""A connection until the end of the block."""


class ServerDriver(ABC):
    """Runs transactions on a database of a server, which others may use as well."""

    engine: ClassVar[str]
    dialect: ClassVar[Path | None] = None
    """A folder with what a database says otherwise that speaks nearly like that engine."""
    troubles: ClassVar[Troubles]
    index_language: Language
    """What the search index in the database understands."""

    def __init__(
        self, *, limits: ServerLimits, migrations: Sequence[Migration] = (), jitter: Callable[[], float] = ANY
    ) -> None:
        self._limits = limits
        self._migrations = migrations
        self._jitter = jitter
        self._queries: Mapping[str, Query] = {}
        self._lend: Lend | None = None
        self._order = InOrder()
        self.ids = RisingIds()
        self.epoch: int | None = None
        """Of the node that this process is; None as long as it is none. Whatever it writes then is refused
        once the node was declared dead."""
        self.trusted: Callable[[], bool] = lambda: True
        """Whether a node can be sure that it was not."""
        self.on_call: Callable[[frozenset[int]], object] = lambda _: None
        """Told which nodes another one has called to look at once."""
        self.changes = 0
        """How often this process has changed the truth behind sessions.json since it was opened."""
        self.on_change: Callable[[], None] = lambda: None
        """Called after a commit of this process that has changed what sessions.json shows."""
        self.on_news: Callable[[Sequence[News]], None] = lambda _: None
        """Called with what commits of this process have brought about."""

    def stem_with(self, stems: Stems) -> None:
        """Messages are written with these stems of their words."""
        self.index_language = replace(self.index_language, stems=stems)

    @property
    def compose(self) -> Compose | None:
        """How this server is asked several things at once; None: it has to be asked one after the other."""
        return None

    async def blockers(self) -> str:
        """Who holds locks that others wait for, in words; empty if nobody does, or nobody can tell."""
        return ""

    @abstractmethod
    async def _connect(self, migrations: Sequence[Migration], cleanup: AsyncExitStack) -> Lend:
        """Get connections, bring the database up to date, and tell how to borrow one."""

    async def start(self, tasks: TaskGroup, cleanup: AsyncExitStack) -> None:
        """Connect and bring the database up to date; *cleanup* closes everything again."""
        del tasks
        load = partial(load_queries, self.engine, STORE, SEARCH, dialect=self.dialect)
        self._queries = await in_thread(load)
        migrations = self._migrations or await in_thread(partial(load_migrations, self.engine, self.dialect))
        try:
            lend = await self._connect(migrations, cleanup)
        except self.troubles.foreign as error:
            raise self.troubles.translate(error) from error
        cleanup.callback(self._stop)
        self._lend = lend

    async def write(self, transaction: TransactionFactory[T]) -> T:
        """Run a transaction; when this returns, the outcome is durable.

        Cancelled while it runs, it is undone; cancelled while it is committed, its outcome stands.
        """
        if not self.trusted():
            raise NodeSilentError(self.troubles.what, UNHEARD)
        return await self._written(transaction, self.epoch)

    async def _written(self, transaction: TransactionFactory[T], epoch: int | None) -> T:
        """Run a transaction as that node, or as somebody who is none."""
        try:
            return await self._write_in_order(transaction, epoch)
        except self.troubles.foreign as error:
            raise self.troubles.translate(error) from error

    async def change(self, statement: Statement) -> int:
        """Run one changing statement, durably; how many rows it has changed."""
        return await self.write(lambda: only(statement))

    async def read(self, transaction: TransactionFactory[T]) -> T:
        """Run a transaction that changes nothing; it sees everything acknowledged before."""
        try:
            return await self._afresh(BegunTransaction(transaction()), transaction, self._read)
        except self.troubles.foreign as error:
            raise self.troubles.translate(error) from error

    async def _read(self, begun: BegunTransaction[T]) -> T:
        async with self._transaction(lambda link: link.begin_reading(view=False)) as link:
            result = await self._run(link, reads=True).drive(begun)
            await link.commit()
            return result

    @asynccontextmanager
    async def view(self) -> AsyncGenerator[Reader]:
        """A reader of its own whose transactions all see the same moment; it has a connection for as long."""
        async with AsyncExitStack() as stack:
            try:
                transaction = self._transaction(lambda link: link.begin_reading(view=True))
                link = await stack.enter_async_context(transaction)
            except self.troubles.foreign as error:
                raise self.troubles.translate(error) from error
            yield View(self._run(link, reads=True), self.troubles)
            with suppress(*self.troubles.foreign):
                await link.commit()

    async def _write_in_order(self, transaction: TransactionFactory[T], epoch: int | None) -> T:
        begun = BegunTransaction(transaction())
        async with self._order.turn(begun.lock) as waited:
            if waited:  # it may have looked at something that has changed since
                begun = BegunTransaction(transaction())
            return await self._write_begun(transaction, begun, epoch)

    async def _write_begun(
        self, transaction: TransactionFactory[T], begun: BegunTransaction[T], epoch: int | None
    ) -> T:
        """Run a transaction with a commit of its own."""
        return await self._afresh(begun, transaction, lambda fresh: self._write(fresh, epoch))

    async def _afresh(
        self,
        begun: BegunTransaction[T],
        transaction: TransactionFactory[T],
        run: Callable[[BegunTransaction[T]], Awaitable[T]],
    ) -> T:
        """Run a transaction, again while others overtake it or its connection is lost before its commit.

        The server has undone what was not committed, so nothing of it can happen twice.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + _LONGEST * self._limits.lock_seconds
        for attempt in range(1, self._limits.attempts):
            try:
                return await run(begun)
            except self.troubles.foreign as error:
                again = self.troubles.is_overtaken(error) or self.troubles.was_cut(error)
                if not again or loop.time() >= until:
                    raise
            await asyncio.sleep(_FIRST_PAUSE * 2**attempt * (0.5 + self._jitter()))
            begun = BegunTransaction(transaction())
        return await run(begun)

    async def _write(self, begun: BegunTransaction[T], epoch: int | None) -> T:
        async with self._transaction(lambda link: link.begin_writing(begun.lock, epoch)) as link:
            run = self._run(link, None if begun.lock is None else {begun.lock})
            result = await run.drive(begun)
            failpoint("before_commit")
            cancelled = await self._commit(link)
            failpoint("after_commit")
            # Before the connection is given back: whoever is cancelled meanwhile has still changed something.
            self._tell([run])
        if cancelled is not None:
            raise cancelled
        return result

    def _run(
        self, link: ServerConnection, held: set[str] | None = None, *, reads: bool = False
    ) -> TransactionRun:
        return TransactionRun(
            link, self._queries, self.index_language, held, reads=reads, compose=self.compose
        )

    def _tell(self, runs: Sequence[TransactionRun]) -> None:
        """Tell whoever listens what a commit has brought about."""
        if any(run.changed_snapshot for run in runs):
            self.changes += 1
            self.on_change()
        for run in runs:
            if run.news:
                self.on_news(run.news)

    async def _commit(self, link: ServerConnection) -> asyncio.CancelledError | None:
        """Commit, whoever is cancelled meanwhile: nobody could tell what has become of half a commit.

        Returns the cancellation, for the end.
        """
        try:
            return await to_the_end(link.commit, self._limits.answer_seconds)
        except self.troubles.foreign as error:
            if not self.troubles.is_end(error):
                raise
            link.close()
            raise StorageUnavailableError(self.troubles.what, IN_DOUBT, in_doubt=True) from error

    @asynccontextmanager
    async def _transaction(self, begin: Begin) -> AsyncGenerator[ServerConnection]:
        """A transaction on a connection of its own. Who asks commits it; after any error it is undone."""
        async with AsyncExitStack() as lent:
            link = await self._begun(begin, lent)
            try:
                yield link
            except BaseException as error:
                await link.undo(error)
                raise

    async def _begun(self, begin: Begin, lent: AsyncExitStack) -> ServerConnection:
        """A connection in a transaction. All that are kept may have been cut while nobody used them."""
        kept = self._limits.connections
        while True:
            if (lend := self._lend) is None:
                raise StoreStoppedError("database")
            async with AsyncExitStack() as attempt:
                link = await self._lent(lend, attempt)
                try:
                    await begin(link)
                except BaseException as error:
                    await link.undo(error)
                    if not kept or not self.troubles.was_cut(error):
                        raise
                    kept -= 1
                else:
                    lent.push_async_exit(attempt.pop_all())
                    return link

    async def _lent(self, lend: Lend, attempt: AsyncExitStack) -> ServerConnection:
        """A connection. Where none can be had the server is away, and is not asked again at once."""
        try:
            return await attempt.enter_async_context(lend())
        except self.troubles.foreign as error:
            raise self.troubles.translate(error) from error

    def _stop(self) -> None:
        self._lend = None
