"""Execution of a transaction's statements on one server connection, and the meaning of server errors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar, cast

from gateway_sessions.core.committed_changes import CommittedChange
from gateway_sessions.errors import GatewaySessionsError
from gateway_sessions.ports import Row, Statement, Transaction, TransactionFactory
from gateway_sessions.storage.engines.search_column import TokenLanguage, with_tokens
from gateway_sessions.storage.files.threads import in_thread
from gateway_sessions.storage.tables.sql_files import Query

DECLARED_DEAD: Final = "this node was silent for so long that others have its turns; it joins them anew"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerErrors:
    """Tells the errors of one server apart."""

    what: str
    """The name of the database in errors. An address can hold a password."""
    driver_errors: tuple[type[Exception], ...]
    """All errors that the driver raises. Any other one is ours, or a bug."""
    translate: Callable[[Exception], GatewaySessionsError]
    """Returns our error for a foreign one."""
    is_conflict: Callable[[Exception], bool]
    """Returns True if a conflict with another transaction caused the error: run afresh, it may succeed."""
    ends_connection: Callable[[BaseException], bool]
    """Returns True if the connection is lost after that error."""
    was_cut_before_answer: Callable[[BaseException], bool]
    """Returns True if the connection was lost before it could answer: another one may do."""


T = TypeVar("T")

MANY_ROWS: Final = 32
"""A reading transaction works on that many rows in a thread: the loop has other lanes to serve."""


class Executor(Protocol):
    """A connection that runs queries."""

    async def fetch(self, sql: str, params: Sequence[object]) -> Sequence[Row]:
        """Return the rows that a query finds."""
        ...

    async def change(self, sql: str, rows: Sequence[Sequence[object]]) -> int:
        """Run a statement with each of these rows; return how many rows of the table it has changed.

        With several rows, a server may answer with the number of *rows* instead.
        """
        ...

    async def take_lock(self, lock: str) -> None:
        """Wait until no other transaction has the lock, and take it. Its changes are visible then."""
        ...


class BegunTransaction(Generic[T]):
    """Holds a transaction and its first statement, which names the lock that is taken at the beginning."""

    def __init__(self, transaction: Transaction[T]) -> None:
        self.transaction = transaction
        self.statement: Statement | None = None
        self.result: T | None = None
        try:
            self.statement = next(transaction)
        except StopIteration as stop:
            self.result = stop.value

    @property
    def lock(self) -> str | None:
        """Return the first lock; None if the transaction has to run alone."""
        return self.statement.lock if self.statement is not None else None


Compose: TypeAlias = Callable[[tuple[Query, ...]], str]
"""Makes one query of several; it answers in one row, with the rows or the number of changes of each."""


class TransactionRun:
    """Runs transactions on a connection, and notes their locks and changes."""

    def __init__(
        self,
        executor: Executor,
        queries: Mapping[str, Query],
        language: TokenLanguage,
        held: set[str] | None = None,
        *,
        reads: bool = False,
        compose: Compose | None = None,
    ) -> None:
        self._executor = executor
        self._queries = queries
        self._language = language
        """The language of the search index in the database."""
        self._held = held
        """The locks it has; None if it needs none, because it runs alone or only reads."""
        self._reads = reads
        """True if it only reads: then it takes no row ids, and may work in a thread."""
        self._compose = compose
        """None if the parts of a statement are asked one after the other."""
        self.may_have_written: bool = False
        """True if it may have changed rows, which only a rollback undoes."""
        self.changed_snapshot: bool = False
        self.news: tuple[CommittedChange, ...] = ()

    async def drive(self, begun: BegunTransaction[T]) -> T:
        """Run the transaction to its end, and return its result."""
        transaction, statement = begun.transaction, begun.statement
        if statement is None:
            return cast("T", begun.result)
        try:
            while True:
                rows = await self.execute(await self.prepare_statement(statement))
                if self._reads and len(rows) >= MANY_ROWS:
                    next_step = await in_thread(partial(send_rows, transaction, rows))
                else:
                    next_step = send_rows(transaction, rows)
                if not isinstance(next_step, Statement):
                    return next_step.value
                statement = next_step
        finally:
            transaction.close()

    async def prepare_statement(self, statement: Statement) -> Statement:
        """Take the locks that the statement needs; return it with the search tokens of its messages."""
        for lock in self.missing_locks_of(statement):
            await self._executor.take_lock(lock)
            self.note_lock(lock)
        return await with_tokens(statement, self._language)

    def missing_locks_of(self, statement: Statement) -> Sequence[str]:
        """Return the locks that the statement needs and that are not taken yet."""
        if self._held is None:
            return ()
        wanted = (one.lock for one in statement.parts or (statement,))
        return [lock for lock in dict.fromkeys(wanted) if lock is not None and lock not in self._held]

    def note_lock(self, lock: str) -> None:
        """Note that the lock is taken."""
        if self._held is not None:
            self._held.add(lock)

    async def execute(self, statement: Statement) -> Sequence[Row]:
        """Return the answer to a statement that is ready."""
        if not statement.parts:
            return await self._execute_single(statement)
        if self._compose is None:
            return [await self._execute_single(part) for part in statement.parts]
        rows = await self._executor.fetch(self.composed_sql_of(statement), parameters_of(statement))
        return self.split_answer(statement, rows[0])

    def composed_sql_of(self, statement: Statement) -> str:
        """Return the composed query of the statement's parts."""
        assert self._compose is not None  # noqa: S101 -- callers check it
        return self._compose(tuple(self._queries[one.name] for one in statement.parts or (statement,)))

    def plain_sql_of(self, statement: Statement) -> str:
        """Return the query that the statement names."""
        return self._queries[statement.name].sql

    def split_answer(self, statement: Statement, row: Row) -> Sequence[Row]:
        """Return the answers that the row of a composed query holds, one for each part."""
        parts = statement.parts or (statement,)
        answers = [self._answer_of_part(part, value) for part, value in zip(parts, row, strict=True)]
        return answers if statement.parts else answers[0]

    def note_change(self, statement: Statement, changed: int) -> Sequence[Row]:
        """Note how many rows a statement has changed, and return that as its answer."""
        self.may_have_written = True
        if changed:
            self.changed_snapshot |= self._queries[statement.name].changes_snapshot
            self.news += (statement.news,) if statement.news is not None else ()
        return ((changed,),)

    def _answer_of_part(self, statement: Statement, value: Any) -> Sequence[Row]:
        if self._queries[statement.name].reads:
            return cast("Sequence[Row]", value)
        return self.note_change(statement, value)

    async def _execute_single(self, statement: Statement) -> Sequence[Row]:
        query = self._queries[statement.name]
        if query.reads:
            return await self._executor.fetch(query.sql, statement.params)
        self.may_have_written = True
        rows = (statement.params,) if statement.many is None else statement.many
        return self.note_change(statement, await self._executor.change(query.sql, rows))


def parameters_of(statement: Statement) -> Sequence[object]:
    """Return the parameters of all parts of a statement."""
    return tuple(chain.from_iterable(one.params for one in statement.parts or (statement,)))


class SnapshotReader:
    """Runs reading transactions in one snapshot, on one connection."""

    def __init__(self, run: TransactionRun, troubles: ServerErrors) -> None:
        self._run = run
        self._troubles = troubles
        # A connection can run one query at a time.
        self._turn = asyncio.Lock()

    async def read(self, transaction: TransactionFactory[T]) -> T:
        """Run a transaction that changes nothing."""
        async with self._turn:
            try:
                return await self._run.drive(BegunTransaction(transaction()))
            except self._troubles.driver_errors as error:
                raise self._troubles.translate(error) from error


@dataclass(frozen=True, slots=True)
class EndOfTransaction(Generic[T]):
    """Holds the result of a transaction that has ended."""

    value: T


def send_rows(transaction: Transaction[T], rows: Sequence[Row]) -> Statement | EndOfTransaction[T]:
    """Send the rows to a transaction; return its next statement, or its result."""
    try:
        return transaction.send([tuple(row) for row in rows])
    except StopIteration as stop:
        return EndOfTransaction(stop.value)


def single_change(statement: Statement) -> Transaction[int]:
    """Run one changing statement; return how many rows it has changed."""
    rows = yield statement
    return int(rows[0][0])
