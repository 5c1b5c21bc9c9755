"""The thread of a SQLite connection: it runs waiting transactions in batches, one commit for each batch.

Requests wait in a queue that the connection's own thread reads, so no request costs a hop between threads of
its own. All that arrive during a commit form the next batch. The thread is aiosqlite's, lent through its
public interface: `commit()` of the connection serves the queue, and returns when the connection is about to
be closed. Callers get their results only after COMMIT.

Transactions hardly ever fail after a change, so a batch runs without savepoints. If one fails like that, the
whole batch is rolled back and run once more without it; in that run, and in the next `WARY_BATCHES` batches,
each transaction has a savepoint.
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

from gateway_sessions._process.failpoints import failpoint
from gateway_sessions._process.waits import rests_while_waiting
from gateway_sessions.core.committed_changes import CommittedChange
from gateway_sessions.errors import StoreStoppedError
from gateway_sessions.ports import Row, Statement, Transaction, TransactionFactory
from gateway_sessions.storage.engines.sqlite.errors import translate_error
from gateway_sessions.storage.tables.sql_files import Query

T = TypeVar("T")


class TransactionDrive:
    """Runs one transaction to its end.

    If *saving*, a savepoint lets its changes be rolled back alone. A savepoint costs more than most
    statements: each page that the transaction changes is copied first.
    """

    __slots__ = ("_connection", "_queries", "_saved", "_saving", "changed_snapshot", "news", "wrote")

    def __init__(
        self, connection: sqlite3.Connection, queries: Mapping[str, Query], *, saving: bool = False
    ) -> None:
        self._connection = connection
        self._queries = queries
        self._saving = saving
        self._saved = False
        self.changed_snapshot: bool = False
        """True if it has changed what sessions.json shows."""
        self.wrote: bool = False
        """True if it may have changed rows, which only a rollback of the whole batch undoes."""
        self.news: Sequence[CommittedChange] = ()

    def drive(self, transaction: Transaction[T]) -> T:
        """Run the transaction; if it fails and has a savepoint, roll back to that."""
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
            self._roll_back_to_savepoint()
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
        if not statement.alone:  # SQLite undoes a single statement that fails by itself
            if self._saving:
                self._set_savepoint()
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

    def _set_savepoint(self) -> None:
        if not self._saved:
            self._connection.execute("SAVEPOINT one_transaction")
            self._saved = True

    def _roll_back_to_savepoint(self) -> None:
        if self._saved and self._connection.in_transaction:
            self._connection.execute("ROLLBACK TO one_transaction")
            self._connection.execute("RELEASE one_transaction")


def run_transaction(
    connection: sqlite3.Connection, queries: Mapping[str, Query], transaction: Transaction[T]
) -> T:
    """Run a transaction to its end on a connection whose transaction of the database the caller ends."""
    return TransactionDrive(connection, queries, saving=True).drive(transaction)


MAX_TRANSACTIONS: Final = 128
"""The most transactions in a batch: the first of them waits for the last one."""
LEAST_SECONDS: Final = 0.005
"""The least time for which a batch is filled, if enough transactions wait."""
MOST_SECONDS: Final = 0.05
"""The most time for which a batch is filled, as its first caller waits that long."""
COMMITS: Final = 3
"""A batch is filled for that many times the last commit's time, so that a slow disk gets fewer commits."""
TOLD_AT_ONCE: Final = 8
"""The number of callers that wake before the loop serves anything else."""
LOOK_AROUND_SECONDS: Final = 1.0
"""The interval in which an idle thread checks that the main thread still lives."""
WARY_BATCHES: Final = 64
"""The number of batches with savepoints after a rollback: the next such failure is often near."""
READ: Final = "BEGIN"
WRITE: Final = "BEGIN IMMEDIATE"
"""A writing transaction takes the lock at once: one that takes it after a read can fail with SQLITE_BUSY."""


class WriteRequest(Generic[T]):
    """A transaction, or a single changing statement, whose caller waits for the result."""

    __slots__ = ("error", "future", "news", "result", "work")

    def __init__(self, work: TransactionFactory[T] | Statement, future: asyncio.Future[T]) -> None:
        self.work: TransactionFactory[T] | Statement = work
        self.future: asyncio.Future[T] = future
        self.result: T | None = None
        self.error: Exception | None = None
        self.news: Sequence[CommittedChange] = ()
        """Its changes, which listeners are told after the commit."""

    def wake_caller(self) -> None:
        """Wake the caller, unless it was cancelled."""
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)  # type: ignore[arg-type]  # set whenever there is no error


class WorkerCall(WriteRequest[T]):
    """A function to call with the connection outside of any transaction, for example a vacuum."""

    __slots__ = ("do",)

    def __init__(self, do: Callable[[sqlite3.Connection], T], future: asyncio.Future[T]) -> None:
        super().__init__(Statement(""), future)
        self.do: Callable[[sqlite3.Connection], T] = do


class BatchConnection(sqlite3.Connection):
    """A connection whose `commit` runs the function in `work` first."""

    work: Callable[[], None] | None = None

    def commit(self) -> None:
        """Run `work`, which commits by itself; without one, commit as usual."""
        if self.work is None:
            super().commit()
        else:
            self.work()


class _TornError(Exception):
    """A transaction failed after a change and has no savepoint, so the whole batch must be rolled back."""


class StopWorker(Enum):
    """Ends the worker that takes it from the queue."""

    STOP = auto()


Queue: TypeAlias = "SimpleQueue[WriteRequest[Any] | StopWorker]"


def fill_seconds(commit_seconds: float) -> float:
    """Return how long the next batch may be filled, from the time of the last commit."""
    return min(max(COMMITS * commit_seconds, LEAST_SECONDS), MOST_SECONDS)


def _nothing(*_: object) -> None:
    """Do nothing: no listener was set."""


class SqliteWorker:
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
        """A request that was taken from the queue and is in no batch yet."""
        self._fill_seconds = LEAST_SECONDS
        self._savepoint_batches = 0
        """The number of batches in which each transaction still gets a savepoint."""
        self._unanswered: deque[WriteRequest[Any]] = deque()
        """Finished requests whose callers were not woken yet. Used on the loop alone."""
        self.changes: int = 0
        """The number of batches that have changed what sessions.json shows."""
        self.on_change: Callable[[], None] = _nothing
        """Called on the loop after such a batch."""
        self.on_news: Callable[[Sequence[CommittedChange]], None] = _nothing
        """Called on the loop with committed changes, in the order of the commits."""
        self.last: WriteRequest[Any] | None = None
        """The transaction to run last, when no other one can follow."""

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
        """Call a function on the connection's thread, before `run` begins to serve."""
        raw = self._raw
        assert raw is not None  # noqa: S101 -- connected before anything is called
        outcome: list[T] = []
        raw.work = lambda: outcome.append(function(raw))
        try:
            await self._connection.commit()
        finally:
            raw.work = None
        return outcome[0]

    @rests_while_waiting
    async def run(self) -> None:
        """Serve the queue until `StopWorker`. If this is cancelled, the thread goes on until then."""
        assert self._raw is not None  # noqa: S101 -- connected before it is run
        self._raw.work = self._serve_queue
        await self._connection.commit()

    def _serve_queue(self) -> None:
        """Run batch after batch, on the connection's thread."""
        connection = self._raw
        assert connection is not None  # noqa: S101 -- connected before it is run
        while self._wait_for_request():
            changes = self.changes
            if batch := self._run_call(connection) or self._run_batch(connection):
                self._loop.call_soon_threadsafe(self._announce_batch, batch, self.changes > changes)
                del batch  # it may hold a transcript, and would live until the next request
        if self._next is StopWorker.STOP and self.last is not None:
            self._next = self.last
            self._run_batch(connection)
        connection.work = None

    def _announce_batch(self, batch: list[WriteRequest[Any]], changed: bool) -> None:  # noqa: FBT001 -- what a handle is given
        """Tell the listeners of a batch's changes and wake its callers, on the loop."""
        if changed:
            self.on_change()
        for request in batch:
            if request.news and request.error is None:
                self.on_news(request.news)
        self._unanswered.extend(batch)
        if len(self._unanswered) == len(batch):
            self._wake_some_callers()

    def _wake_some_callers(self) -> None:
        """Wake some callers: all at once would keep the loop from anything else."""
        for _ in range(min(len(self._unanswered), TOLD_AT_ONCE)):
            self._unanswered.popleft().wake_caller()
        if self._unanswered:
            self._loop.call_soon(self._wake_some_callers)

    def _wait_for_request(self) -> bool:
        """Wait for a request; return False at the end."""
        while self._next is None:
            try:
                self._next = self._queue.get(timeout=LOOK_AROUND_SECONDS)
            except Empty:
                if not threading.main_thread().is_alive():
                    # The program has ended without closing the store, and Python waits for this thread.
                    self._connection.stop()  # pyright: ignore[reportUnknownMemberType]  # its future is untyped
                    return False
        return self._next is not StopWorker.STOP

    def _run_call(self, connection: BatchConnection) -> list[WriteRequest[Any]]:
        """Call the function that comes next, if the next request is one; the batch is over by then."""
        call = self._next
        if not isinstance(call, WorkerCall):
            return []
        self._next = None
        if not call.future.cancelled():
            try:
                call.result = call.do(connection)
            except Exception as error:  # noqa: BLE001 -- handed on to the one who waits
                call.error = translate_error(error, self._path)
                _roll_back(connection)
        return [call]

    def _run_batch(self, connection: BatchConnection) -> list[WriteRequest[Any]]:
        first = self._take_transaction()
        if first is None:
            return []
        batch = [first]
        try:
            self._begin_transaction(connection, batch)
            try:
                changed = self._fill_batch(connection, batch)
            except _TornError:
                changed = self._repeat_batch(connection, batch)
            self._commit(connection)
            self._savepoint_batches = max(self._savepoint_batches - 1, 0)
            self.changes += changed
        except Exception as error:  # noqa: BLE001 -- handed on to everybody who waits for this batch
            failure = translate_error(error, self._path)
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
        """Begin a transaction of the database; if that fails, let all that wait fail with it.

        They have waited for the same lock, and would wait for it once more each.
        """
        try:
            connection.execute(self._begin)
        except sqlite3.Error:
            while (request := self._take_transaction()) is not None:
                batch.append(request)
            raise

    def _fill_batch(self, connection: BatchConnection, batch: list[WriteRequest[Any]]) -> bool:
        """Run the batch, and what waits behind it until the batch is large or has taken its time.

        Return True if it changes what sessions.json shows.
        """
        until = time.monotonic() + self._fill_seconds
        changed = self._run_transaction(connection, batch[0])
        while len(batch) < self._max_transactions and time.monotonic() < until:
            if (request := self._take_transaction()) is None:
                break
            failpoint("within_batch")
            batch.append(request)
            changed |= self._run_transaction(connection, request)
        return changed

    def _repeat_batch(self, connection: BatchConnection, batch: list[WriteRequest[Any]]) -> bool:
        """Roll the batch back, and run all of it once more but the transactions that failed."""
        connection.execute("ROLLBACK")
        connection.execute(self._begin)
        self._savepoint_batches = WARY_BATCHES
        changed = [self._run_transaction(connection, request) for request in batch if request.error is None]
        return any(changed)

    def _take_transaction(self) -> WriteRequest[Any] | None:
        """Return the transaction that comes next, if one waits whose caller was not cancelled."""
        while isinstance(request := self._peek_request(), WriteRequest) and not isinstance(
            request, WorkerCall
        ):
            self._next = None
            if not request.future.cancelled():
                return request
        return None

    def _peek_request(self) -> WriteRequest[Any] | StopWorker | None:
        """Return the request that comes next, if one waits."""
        if self._next is None:
            try:
                self._next = self._queue.get_nowait()
            except Empty:
                return None
        return self._next

    def _run_transaction(self, connection: BatchConnection, request: WriteRequest[Any]) -> bool:
        """Run one transaction, and keep its error for its caller; raise an error of the whole batch."""
        work, run = (
            request.work,
            TransactionDrive(connection, self._queries, saving=self._savepoint_batches > 0),
        )
        try:
            if isinstance(work, Statement):
                query = self._queries[work.name]
                request.result = rows = connection.execute(query.sql, work.params).rowcount
                return query.changes_snapshot and rows > 0
            request.result = run.drive(work())
            request.news = run.news
        except Exception as error:  # handed on to the one who waits
            if not connection.in_transaction:
                raise  # SQLite has rolled the whole batch back
            request.error = translate_error(error, self._path)
            if run.wrote:
                raise _TornError from error
            return False
        return run.changed_snapshot


def _roll_back(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        try:
            connection.execute("ROLLBACK")
        except sqlite3.Error:
            # The connection is in an unknown state; closing it rolls back.
            connection.close()


def fail_waiting_requests(queue: Queue, what: str) -> None:
    """Fail all requests that still wait, as the resource has stopped."""
    while not queue.empty():
        request = queue.get_nowait()
        if isinstance(request, WriteRequest) and not request.future.done():
            request.future.set_exception(StoreStoppedError(what))
