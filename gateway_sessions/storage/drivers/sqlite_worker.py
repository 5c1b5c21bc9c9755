"""One SQLite connection and the verbs that wait for it: one commit for a whole batch, and no hop per request.

Requests wait in a queue that the connection's own thread reads; whatever arrived while the last commit was in
flight becomes the next batch. The thread is aiosqlite's, lent to us through its public interface: `commit()`
of the connection serves the queue, and returns when the connection is about to be closed. Answers leave only
after COMMIT.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from enum import Enum, auto
from queue import Empty, SimpleQueue
from typing import Any, Final, Generic, TypeAlias, TypeVar

import aiosqlite

from gateway_sessions.errors import StoreStoppedError
from gateway_sessions.failpoints import failpoint
from gateway_sessions.ports import Row, Statement, Verb, VerbFactory
from gateway_sessions.storage.drivers.sqlite_errors import translate
from gateway_sessions.storage.queries import Query

MAX_VERBS: Final = 128
MAX_SECONDS: Final = 0.005
LOOK_AROUND_SECONDS: Final = 1.0

T = TypeVar("T")


class Request(Generic[T]):
    """A verb that somebody waits for, or a single changing statement, which is one in all but form."""

    __slots__ = ("error", "future", "result", "work")

    def __init__(self, work: VerbFactory[T] | Statement, future: asyncio.Future[T]) -> None:
        self.work = work
        self.future = future
        self.result: T | None = None
        self.error: Exception | None = None

    def answer(self) -> None:
        """Wake the one who waits, who may have gone away meanwhile."""
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)  # type: ignore[arg-type]  # set whenever there is no error


class Errand(Request[T]):
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


class Stop(Enum):
    """Ends the service of the worker that takes it from the queue."""

    STOP = auto()


Queue: TypeAlias = "SimpleQueue[Request[Any] | Stop]"


class Worker:
    """Serves one connection. Several workers may serve the same queue."""

    def __init__(
        self, path: str, queries: Mapping[str, Query], queue: Queue, *, begin: str, max_verbs: int = MAX_VERBS
    ) -> None:
        self._path = path
        self._queries = queries
        self._queue = queue
        self._begin = begin
        self._max_verbs = max_verbs
        self._loop = asyncio.get_running_loop()
        self._raw: BatchConnection | None = None
        self._next: Request[Any] | Stop | None = None
        """Taken from the queue already, but not part of the batch or group that is being made."""
        self.changes = 0
        """How many batches have changed what sessions.json shows."""
        self.last: Request[Any] | None = None
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
            batch = self._run_errand(connection) or self._run_batch(connection)
            if batch:
                self._loop.call_soon_threadsafe(_answer_all, batch)
        if self._next is Stop.STOP and self.last is not None:
            self._next = self.last
            self._run_batch(connection)
        connection.work = None

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
        return self._next is not Stop.STOP

    def _run_errand(self, connection: BatchConnection) -> list[Request[Any]]:
        """Do what comes next, if it is no verb; nothing waits in a batch meanwhile."""
        errand = self._next
        if not isinstance(errand, Errand):
            return []
        self._next = None
        if not errand.future.cancelled():
            try:
                errand.result = errand.do(connection)
            except Exception as error:  # noqa: BLE001 -- handed on to the one who waits
                errand.error = translate(error, self._path)
                _roll_back(connection)
        return [errand]

    def _run_batch(self, connection: BatchConnection) -> list[Request[Any]]:
        batch = self._next_group(self._max_verbs)
        if not batch:
            return batch
        try:
            self._begin_transaction(connection, batch)
            changed = self._fill(connection, batch)
            failpoint("before_commit")
            connection.execute("COMMIT")
            failpoint("after_commit")
            self.changes += changed
        except Exception as error:  # noqa: BLE001 -- handed on to everybody who waits for this batch
            failure = translate(error, self._path)
            for request in batch:
                request.error = failure
            _roll_back(connection)
        return batch

    def _begin_transaction(self, connection: BatchConnection, batch: list[Request[Any]]) -> None:
        """Begin; if that fails, everybody who waits by now has waited for the same, and joins the batch."""
        try:
            connection.execute(self._begin)
        except sqlite3.Error:
            while group := self._next_group(self._max_verbs):
                batch += group
            raise

    def _fill(self, connection: BatchConnection, batch: list[Request[Any]]) -> bool:
        """Run the batch, and what waits behind it until it is large or has taken its time.

        Returns whether this changes what sessions.json shows.
        """
        until = time.monotonic() + MAX_SECONDS
        changed = self._run_group(connection, batch)
        while time.monotonic() < until and (group := self._next_group(self._max_verbs - len(batch))):
            failpoint("within_batch")
            batch += group
            changed |= self._run_group(connection, group)
        return changed

    def _next_group(self, limit: int) -> list[Request[Any]]:
        """The next request, and those right behind it that are the same statement with other parameters."""
        group: list[Request[Any]] = []
        name: str | None = None
        while len(group) < limit and isinstance(request := self._peek(), Request):
            if isinstance(request, Errand):
                break
            work = request.work
            if group and not (isinstance(work, Statement) and work.name == name):
                break
            self._next = None
            if request.future.cancelled():
                continue
            group.append(request)
            if not isinstance(work, Statement):
                break
            name = work.name
        return group

    def _peek(self) -> Request[Any] | Stop | None:
        """What comes next, if anything waits."""
        if self._next is None:
            try:
                self._next = self._queue.get_nowait()
            except Empty:
                return None
        return self._next

    def _run_group(self, connection: BatchConnection, group: list[Request[Any]]) -> bool:
        """Run like statements as one, if each of them changes its row; else one by one."""
        if len(group) == 1:
            return self._run_one(connection, group[0])
        statements = [request.work for request in group if isinstance(request.work, Statement)]
        query = self._queries[statements[0].name]
        connection.execute("SAVEPOINT verb")
        try:
            rows = connection.executemany(query.sql, [statement.params for statement in statements]).rowcount
        except (sqlite3.Error, ValueError, OverflowError):
            if not connection.in_transaction:
                raise
            rows = -1
        if rows == len(group):
            for request in group:
                request.result = 1
        else:
            connection.execute("ROLLBACK TO verb")
        connection.execute("RELEASE verb")
        if rows == len(group):
            return query.changes_index
        changed = [self._run_one(connection, request) for request in group]
        return any(changed)

    def _run_one(self, connection: BatchConnection, request: Request[Any]) -> bool:
        """Run one verb: its failure is its own, unless SQLite gave up the whole transaction."""
        run = _Run(connection, self._queries)
        try:
            request.result = run.drive(_as_verb(request.work))
        except Exception as error:  # handed on to the one who waits
            request.error = translate(error, self._path)
            if not connection.in_transaction:
                raise
            run.undo()
        else:
            run.keep()
        return run.changed_index


def _as_verb(work: VerbFactory[Any] | Statement) -> Verb[Any]:
    return _changed_rows(work) if isinstance(work, Statement) else work()


def _changed_rows(statement: Statement) -> Verb[int]:
    rows = yield statement
    return int(rows[0][0])


class _Run:
    """One verb inside a transaction, in a savepoint of its own if it may have to be undone."""

    __slots__ = ("_connection", "_queries", "_saved", "changed_index")

    def __init__(self, connection: sqlite3.Connection, queries: Mapping[str, Query]) -> None:
        self._connection = connection
        self._queries = queries
        self._saved = False
        self.changed_index = False

    def drive(self, verb: Verb[T]) -> T:
        """Run the verb to its end."""
        try:
            statement = next(verb)
            while True:
                statement = verb.send(self._execute(statement))
        except StopIteration as stop:
            result: T = stop.value
            return result
        finally:
            verb.close()

    def undo(self) -> None:
        """Take back what the verb has done."""
        if self._saved:
            self._connection.execute("ROLLBACK TO verb")
            self._connection.execute("RELEASE verb")
        self.changed_index = False

    def keep(self) -> None:
        """Make what the verb has done part of the batch."""
        if self._saved:
            self._connection.execute("RELEASE verb")

    def _execute(self, statement: Statement) -> Sequence[Row]:
        query = self._queries[statement.name]
        if query.reads:
            return self._connection.execute(query.sql, statement.params).fetchall()
        if not self._saved and not statement.alone:
            self._connection.execute("SAVEPOINT verb")
            self._saved = True
        self.changed_index |= query.changes_index
        if statement.many is None:
            cursor = self._connection.execute(query.sql, statement.params)
        else:
            cursor = self._connection.executemany(query.sql, statement.many)
        return ((cursor.rowcount,),)


def drive(connection: sqlite3.Connection, queries: Mapping[str, Query], verb: Verb[T]) -> T:
    """Run a verb to its end on a connection that somebody else looks after."""
    return _Run(connection, queries).drive(verb)


def _answer_all(batch: list[Request[Any]]) -> None:
    for request in batch:
        request.answer()


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
        if isinstance(request, Request) and not request.future.done():
            request.future.set_exception(StoreStoppedError(what))
