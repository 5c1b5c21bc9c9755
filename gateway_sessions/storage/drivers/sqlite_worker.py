"""One SQLite connection and the verbs that wait for it: one thread hop and one commit for a whole batch.

Requests queue; whatever arrived while the last commit was in flight becomes the next batch. `commit()` of the
connection runs the batch, so that everything happens in a single hop of aiosqlite's thread through its public
interface. Answers leave only after COMMIT.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Final, Generic, TypeVar

import aiosqlite

from gateway_sessions.errors import StoreStoppedError
from gateway_sessions.failpoints import failpoint
from gateway_sessions.ports import Row, Statement, Verb, VerbFactory
from gateway_sessions.storage.drivers.sqlite_errors import translate
from gateway_sessions.storage.queries import Query

MAX_VERBS: Final = 128
MAX_SECONDS: Final = 0.005

T = TypeVar("T")


class Request(Generic[T]):
    """A verb that somebody waits for."""

    __slots__ = ("error", "future", "make_verb", "result")

    def __init__(self, make_verb: VerbFactory[T], future: asyncio.Future[T]) -> None:
        self.make_verb = make_verb
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


class BatchConnection(sqlite3.Connection):
    """A connection whose `commit` first runs what was put into `work`."""

    work: Callable[[], None] | None = None

    def commit(self) -> None:
        """Run the work, which commits by itself; without any, commit as usual."""
        if self.work is None:
            super().commit()
        else:
            self.work()


class Worker:
    """Serves one connection. Several workers may serve the same queue."""

    def __init__(
        self, path: str, queries: Mapping[str, Query], queue: deque[Request[Any]], *, begin: str
    ) -> None:
        self._path = path
        self._queries = queries
        self._queue = queue
        self._begin = begin
        self._wake = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._raw: BatchConnection | None = None
        self.idle = True
        self.generation = 0
        """How often the truth behind sessions.json has changed; kept by the one worker that writes."""

    async def connect(self, uri: str, cleanup: AsyncExitStack, *, busy_seconds: float) -> None:
        """Open the connection that this worker serves; *cleanup* closes it."""

        def make(*args: Any, **options: Any) -> BatchConnection:
            self._raw = BatchConnection(*args, **options)
            return self._raw

        connection = aiosqlite.connect(
            uri, uri=True, timeout=busy_seconds, isolation_level=None, cached_statements=256, factory=make
        )
        self._connection = await cleanup.enter_async_context(connection)

    def wake(self) -> None:
        """Tell the worker that there is something in the queue."""
        self.idle = False
        self._wake.set()

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
        """Serve the queue until cancelled."""
        assert self._raw is not None  # noqa: S101 -- connected before it is run
        self._raw.work = self._drain
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                while self._queue:
                    await self._connection.commit()
                self.idle = True
        finally:
            self._raw.work = None

    def _drain(self) -> None:
        """On the connection's thread: run batch after batch until nothing waits."""
        while batch := self._run_batch():
            self._loop.call_soon_threadsafe(_answer_all, batch)

    def _run_batch(self) -> list[Request[Any]]:
        connection = self._raw
        assert connection is not None  # noqa: S101 -- connected before it is run
        batch: list[Request[Any]] = []
        try:
            self._fill(connection, batch)
            if batch:
                failpoint("before_commit")
                connection.execute("COMMIT")
                failpoint("after_commit")
        except Exception as error:  # noqa: BLE001 -- handed on to everybody who waits for this batch
            failure = translate(error, self._path)
            for request in batch:
                request.error = failure
            _roll_back(connection)
        return batch

    def _fill(self, connection: BatchConnection, batch: list[Request[Any]]) -> None:
        """Begin a transaction and run waiting verbs in it, until the batch is large or has taken its time."""
        until = 0.0
        changed = False
        while len(batch) < MAX_VERBS and (request := self._next()) is not None:
            batch.append(request)
            if not until:
                until = time.monotonic() + MAX_SECONDS
                connection.execute(self._begin)
            changed |= self._run_one(connection, request)
            if time.monotonic() > until:
                break
        if changed:
            self.generation += 1
            connection.execute(self._queries["set_generation"].sql, (self.generation,))

    def _next(self) -> Request[Any] | None:
        while self._queue:
            try:
                request = self._queue.popleft()
            except IndexError:  # another worker was faster
                return None
            if not request.future.cancelled():
                return request
        return None

    def _run_one(self, connection: BatchConnection, request: Request[Any]) -> bool:
        """Run one verb inside a savepoint: its failure is its own, unless SQLite gave up the transaction."""
        connection.execute("SAVEPOINT verb")
        changed = False
        try:
            verb = request.make_verb()
            request.result, changed = drive(connection, self._queries, verb)
        except Exception as error:  # handed on to the one who waits
            request.error = translate(error, self._path)
            if not connection.in_transaction:
                raise
            connection.execute("ROLLBACK TO verb")
        connection.execute("RELEASE verb")
        return changed


def drive(connection: sqlite3.Connection, queries: Mapping[str, Query], verb: Verb[T]) -> tuple[T, bool]:
    """Run a verb to its end; also tell whether it changed what sessions.json shows."""
    changed = False
    rows: Sequence[Row] = ()
    try:
        statement = next(verb)
        while True:
            query = queries[statement.name]
            changed |= query.changes_index
            rows = _execute(connection, query.sql, statement)
            statement = verb.send(rows)
    except StopIteration as stop:
        return stop.value, changed
    finally:
        verb.close()


def _execute(connection: sqlite3.Connection, sql: str, statement: Statement) -> Sequence[Row]:
    if statement.many is not None:
        connection.executemany(sql, statement.many)
        return ()
    return connection.execute(sql, statement.params).fetchall()


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


def refuse_all(queue: deque[Request[Any]], what: str) -> None:
    """Tell everybody still waiting that the resource has stopped."""
    while queue:
        request = queue.popleft()
        if not request.future.done():
            request.future.set_exception(StoreStoppedError(what))
