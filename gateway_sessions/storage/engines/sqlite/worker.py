"""The thread of a SQLite connection: it runs waiting transactions in batches, one commit for each batch.

One SQLite connection and the transactions that wait for it: one commit for a whole batch, and no hop per
request.

Requests wait in a queue that the connection's own thread reads; whatever arrived while the last commit was in
flight becomes the next batch. The thread is aiosqlite's, lent to us through its public interface: `commit()`
of the connection serves the queue, and returns when the connection is about to be closed. Answers leave only
after COMMIT.

Transactions hardly ever fail once they have written. So a batch runs without savepoints. If one fails like
that, the batch is rolled back and run once more without it, each transaction in a savepoint of its own, as in
some to come.

One transaction on a SQLite connection, among others that share its transaction.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from enum import Enum, auto
from queue import Empty, SimpleQueue
from typing import Any, Final, Generic, TypeAlias, TypeVar

import aiosqlite

from gateway_sessions._failpoints import failpoint
from gateway_sessions.core.committed_changes import News
from gateway_sessions.errors import StoreStoppedError
from gateway_sessions.ports import Row, Statement, Transaction, TransactionFactory
from gateway_sessions.storage.engines.sqlite.errors import translate
from gateway_sessions.storage.tables.queries import Query

T = TypeVar("T")


class TransactionDrive:
    """Runs one transaction to its end.

    *Saving*, a savepoint of its own lets it be undone alone. That costs more than many a statement: each page
    that the transaction changes is copied first.
    """

    __slots__ = ("_connection", "_queries", "_saved", "_saving", "changed_snapshot", "news", "wrote")

    def __init__(
        self, connection: sqlite3.Connection, queries: Mapping[str, Query], *, saving: bool = False
    ) -> None:
        self._connection = connection
        self._queries = queries
        self._saving = saving
        self._saved = False
        self.changed_snapshot = False
        """Whether it has changed what sessions.json shows."""
        self.wrote = False
        """Whether it may have left something that only the end of the transaction can undo."""
        self.news: Sequence[News] = ()

    def drive(self, transaction: Transaction[T]) -> T:
        """Run the transaction; if it fails, it is undone where that can be done."""
        connection, queries = self._connection, self._queries
        try:
            statement = next(transaction)
            while True:
                if statement.parts:
                    statement = transaction.send([self._execute(part) for part in statement.parts])
                    continue
                query = queries[statement.name]
                if query.reads:
                    rows = connection.execute(query.sql, statement.params).fetchall()
                    statement = transaction.send(rows)
                else:
                    statement = transaction.send(self._change(query, statement))
        except StopIteration as stop:
            result: T = stop.value
        except Exception:
            self._undo()
            raise
        finally:
            transaction.close()
        if self._saved:
            connection.execute("RELEASE one_transaction")
        return result

    def _execute(self, statement: Statement) -> Sequence[Row]:
        query = self._queries[statement.name]
        if query.reads:
            return self._connection.execute(query.sql, statement.params).fetchall()
        return self._change(query, statement)

    def _change(self, query: Query, statement: Statement) -> Sequence[Row]:
        if not statement.alone:  # one that stands alone undoes itself
            if self._saving:
                self._save()
            else:
                self.wrote = True
        if statement.many is None:
            changed = self._connection.execute(query.sql, statement.params).rowcount
        else:
            changed = self._connection.executemany(query.sql, statement.many).rowcount
        if changed > 0:
            self.changed_snapshot |= query.changes_snapshot
            if statement.news is not None:
                self.news = (*self.news, statement.news)
        return ((changed,),)

    def _save(self) -> None:
        if not self._saved:
            self._connection.execute("SAVEPOINT one_transaction")
            self._saved = True

    def _undo(self) -> None:
        if self._saved and self._connection.in_transaction:
            self._connection.execute("ROLLBACK TO one_transaction")
            self._connection.execute("RELEASE one_transaction")


def drive(connection: sqlite3.Connection, queries: Mapping[str, Query], transaction: Transaction[T]) -> T:
    """Run a transaction to its end on a connection that somebody else looks after."""
    return TransactionDrive(connection, queries, saving=True).drive(transaction)


MAX_TRANSACTIONS: Final = 128
LEAST_SECONDS: Final = 0.005
MOST_SECONDS: Final = 0.05
"""So long a batch is filled if there is work enough."""
COMMITS: Final = 3
"""So many times as long as a commit takes: a slow disk is asked less often."""
TOLD_AT_ONCE: Final = 8
"""So many are told of their outcome before the loop has a look at everything else."""
LOOK_AROUND_SECONDS: Final = 1.0
WARY_BATCHES: Final = 64
"""So many batches after a transaction had to be undone, another one may have to be."""
READ: Final = "BEGIN"
WRITE: Final = "BEGIN IMMEDIATE"
"""How transactions begin."""


class WriteRequest(Generic[T]):
    """A transaction that somebody waits for, or a single changing statement, which is one in all but form."""

    __slots__ = ("error", "future", "news", "result", "work")

    def __init__(self, work: TransactionFactory[T] | Statement, future: asyncio.Future[T]) -> None:
        self.work = work
        self.future = future
        self.result: T | None = None
        self.error: Exception | None = None
        self.news: Sequence[News] = ()
        """What it leaves behind for those who listen, if it is committed."""

    def answer(self) -> None:
        """Wake the one who waits, who may have gone away meanwhile."""
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)  # type: ignore[arg-type]  # set whenever there is no error


class WorkerCall(WriteRequest[T]):
    """Something to be done on the connection outside of any transaction, such as tidying the file up."""

    __slots__ = ("do",)

    def __init__(self, do: Callable[[sqlite3.Connection], T], future: asyncio.Future[T]) -> None:
        super().__init__(Statement(""), future)
        self.do = do


class BatchConnection(sqlite3.Connection):
    """A connection whose `commit` first runs what was put into `work`."""

    work: Callable[[], None] | None = None

    def commit(self) -> None:
        """Run the work, which commits by itself; without any, commit as usual."""
        if self.work is None:
            super().commit()
        else:
            self.work()


class _TornError(Exception):
    """A transaction has failed that had written, and nothing but the whole transaction can be undone."""


class StopWorker(Enum):
    """Ends the service of the worker that takes it from the queue."""

    STOP = auto()


Queue: TypeAlias = "SimpleQueue[WriteRequest[Any] | StopWorker]"


def fill_seconds(commit_seconds: float) -> float:
    """How long the next batch may be filled, if the last commit has taken so long."""
    return min(max(COMMITS * commit_seconds, LEAST_SECONDS), MOST_SECONDS)


def _nothing(*_: object) -> None:
    """Nobody wants to know."""


class Worker:
    """Serves one connection. Several workers may serve the same queue."""

    def __init__(
        self,
        path: str,
        queries: Mapping[str, Query],
        queue: Queue,
        *,
        begin: str,
        max_transactions: int = MAX_TRANSACTIONS,
    ) -> None:
        self._path = path
        self._queries = queries
        self._queue = queue
        self._begin = begin
        self._max_transactions = max_transactions
        self._loop = asyncio.get_running_loop()
        self._raw: BatchConnection | None = None
        self._next: WriteRequest[Any] | StopWorker | None = None
        """Taken from the queue already, but not part of a batch yet."""
        self._fill_seconds = LEAST_SECONDS
        self._wary = 0
        """For how many more batches each transaction gets a savepoint."""
        self._untold: deque[WriteRequest[Any]] = deque()
        """On the loop: requests that are done, of which nobody knows yet."""
        self.changes = 0
        """How many batches have changed what sessions.json shows."""
        self.on_change: Callable[[], None] = _nothing
        """Called on the loop after a batch that has changed it."""
        self.on_news: Callable[[Sequence[News]], None] = _nothing
        """Called on the loop with what was committed, in the order of the commits."""
        self.last: WriteRequest[Any] | None = None
        """What to run once it is certain that nothing will follow."""

    async def connect(self, uri: str, cleanup: AsyncExitStack, *, busy_seconds: float) -> None:
        """Open the connection that this worker serves; *cleanup* closes it."""

        def make(*args: Any, **options: Any) -> BatchConnection:
            self._raw = BatchConnection(*args, **options)
            return self._raw

        connection = aiosqlite.connect(
            uri, uri=True, timeout=busy_seconds, isolation_level=None, cached_statements=256, factory=make
        )
        self._connection = await cleanup.enter_async_context(connection)

    async def call(self, function: Callable[[sqlite3.Connection], T]) -> T:
        """Run a plain function on the connection's thread, before `run` begins to serve."""
        raw = self._raw
        assert raw is not None  # noqa: S101 -- connected before anything is called
        outcome: list[T] = []
        raw.work = lambda: outcome.append(function(raw))
        try:
            await self._connection.commit()
        finally:
            raw.work = None
        return outcome[0]

    async def run(self) -> None:
        """Serve the queue until it says stop. Cancelling this does not: the thread goes on until then."""
        assert self._raw is not None  # noqa: S101 -- connected before it is run
        self._raw.work = self._serve
        await self._connection.commit()

    def _serve(self) -> None:
        """On the connection's thread: run batch after batch."""
        connection = self._raw
        assert connection is not None  # noqa: S101 -- connected before it is run
        while self._wait():
            changes = self.changes
            if batch := self._run_call(connection) or self._run_batch(connection):
                self._loop.call_soon_threadsafe(self._answer, batch, self.changes > changes)
                del batch  # it may be as large as a transcript, and nobody needs it here any more
        if self._next is StopWorker.STOP and self.last is not None:
            self._next = self.last
            self._run_batch(connection)
        connection.work = None

    def _answer(self, batch: list[WriteRequest[Any]], changed: bool) -> None:  # noqa: FBT001 -- what a handle is given
        """On the loop: tell everybody whose transaction was in the batch."""
        if changed:
            self.on_change()
        for request in batch:
            if request.news and request.error is None:
                self.on_news(request.news)
        self._untold.extend(batch)
        if len(self._untold) == len(batch):
            self._tell_some()

    def _tell_some(self) -> None:
        """Wake some of those who wait: what all of them do next would keep the loop from anything else."""
        for _ in range(min(len(self._untold), TOLD_AT_ONCE)):
            self._untold.popleft().answer()
        if self._untold:
            self._loop.call_soon(self._tell_some)

    def _wait(self) -> bool:
        """Sleep until there is a request; False at the end."""
        while self._next is None:
            try:
                self._next = self._queue.get(timeout=LOOK_AROUND_SECONDS)
            except Empty:
                if not threading.main_thread().is_alive():
                    # The program has ended and forgot to close us: it waits for this thread to let it go.
                    self._connection.stop()  # pyright: ignore[reportUnknownMemberType]  # its future is untyped
                    return False
        return self._next is not StopWorker.STOP

    def _run_call(self, connection: BatchConnection) -> list[WriteRequest[Any]]:
        """Do what comes next, if it is no transaction; nothing waits in a batch meanwhile."""
        call = self._next
        if not isinstance(call, WorkerCall):
            return []
        self._next = None
        if not call.future.cancelled():
            try:
                call.result = call.do(connection)
            except Exception as error:  # noqa: BLE001 -- handed on to the one who waits
                call.error = translate(error, self._path)
                _roll_back(connection)
        return [call]

    def _run_batch(self, connection: BatchConnection) -> list[WriteRequest[Any]]:
        first = self._take()
        if first is None:
            return []
        batch = [first]
        try:
            self._begin_transaction(connection, batch)
            try:
                changed = self._fill(connection, batch)
            except _TornError:
                changed = self._repeat(connection, batch)
            self._commit(connection)
            self._wary = max(self._wary - 1, 0)
            self.changes += changed
        except Exception as error:  # noqa: BLE001 -- handed on to everybody who waits for this batch
            failure = translate(error, self._path)
            for request in batch:
                request.error = failure
            _roll_back(connection)
        return batch

    def _commit(self, connection: BatchConnection) -> None:
        if self._begin == READ:
            connection.execute("COMMIT")
            return
        failpoint("before_commit")
        begun = time.monotonic()
        connection.execute("COMMIT")
        took = time.monotonic() - begun
        self._fill_seconds = fill_seconds(took)
        failpoint("after_commit")

    def _begin_transaction(self, connection: BatchConnection, batch: list[WriteRequest[Any]]) -> None:
        """Begin; if that fails, everybody who waits by now has waited for the same, and joins the batch."""
        try:
            connection.execute(self._begin)
        except sqlite3.Error:
            while (request := self._take()) is not None:
                batch.append(request)
            raise

    def _fill(self, connection: BatchConnection, batch: list[WriteRequest[Any]]) -> bool:
        """Run the batch, and what waits behind it until it is large or has taken its time.

        Returns whether this changes what sessions.json shows.
        """
        until = time.monotonic() + self._fill_seconds
        changed = self._run(connection, batch[0])
        while len(batch) < self._max_transactions and time.monotonic() < until:
            if (request := self._take()) is None:
                break
            failpoint("within_batch")
            batch.append(request)
            changed |= self._run(connection, request)
        return changed

    def _repeat(self, connection: BatchConnection, batch: list[WriteRequest[Any]]) -> bool:
        """Undo the batch, and run all of it once more but what has failed."""
        connection.execute("ROLLBACK")
        connection.execute(self._begin)
        self._wary = WARY_BATCHES
        changed = [self._run(connection, request) for request in batch if request.error is None]
        return any(changed)

    def _take(self) -> WriteRequest[Any] | None:
        """The transaction that comes next, if one waits that somebody still wants."""
        while isinstance(request := self._peek(), WriteRequest) and not isinstance(request, WorkerCall):
            self._next = None
            if not request.future.cancelled():
                return request
        return None

    def _peek(self) -> WriteRequest[Any] | StopWorker | None:
        """What comes next, if anything waits."""
        if self._next is None:
            try:
                self._next = self._queue.get_nowait()
            except Empty:
                return None
        return self._next

    def _run(self, connection: BatchConnection, request: WriteRequest[Any]) -> bool:
        """Run one transaction: its failure is its own, unless it takes others along; then this raises."""
        work, run = request.work, TransactionDrive(connection, self._queries, saving=self._wary > 0)
        try:
            if isinstance(work, Statement):
                query = self._queries[work.name]
                request.result = rows = connection.execute(query.sql, work.params).rowcount
                return query.changes_snapshot and rows > 0
            request.result = run.drive(work())
            request.news = run.news
        except Exception as error:  # handed on to the one who waits
            if not connection.in_transaction:
                raise  # SQLite gave up the whole transaction
            request.error = translate(error, self._path)
            if run.wrote:
                raise _TornError from error
            return False
        return run.changed_snapshot


def _roll_back(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        try:
            connection.execute("ROLLBACK")
        except sqlite3.Error:
            # Nothing may run on this connection outside a transaction we began; closing forgets the open one.
            connection.close()


def refuse_all(queue: Queue, what: str) -> None:
    """Tell everybody still waiting that the resource has stopped."""
    while not queue.empty():
        request = queue.get_nowait()
        if isinstance(request, WriteRequest) and not request.future.done():
            request.future.set_exception(StoreStoppedError(what))
