"""Execution of a transaction's statements on one server connection, and the meaning of server errors.

Driving transactions on one connection of a server, statement by statement.

What the errors of a driver beneath ours mean, in the same words for every server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar, cast

from gateway_sessions.core.committed_changes import News
from gateway_sessions.errors import GatewaySessionsError
from gateway_sessions.ports import Row, Statement, Transaction, TransactionFactory
from gateway_sessions.storage.engines.index_column import Language, with_tokens
from gateway_sessions.storage.files.threads import in_thread
from gateway_sessions.storage.tables.queries import Query

DECLARED_DEAD: Final = "this node was silent for so long that others have its turns; it joins them anew"


@dataclass(frozen=True, slots=True, kw_only=True)
class Troubles:
    """How the errors of one server are told apart."""

    what: str
    """What errors call the database. An address can hold a password."""
    foreign: tuple[type[Exception], ...]
    """All that comes out of the driver; anything else is ours, or a bug."""
    translate: Callable[[Exception], GatewaySessionsError]
    """Our error for one of these."""
    is_overtaken: Callable[[Exception], bool]
    """Whether somebody else was faster: run afresh, a transaction sees what they did."""
    is_end: Callable[[BaseException], bool]
    """Whether it is the last that is heard of a connection."""
    was_cut: Callable[[BaseException], bool]
    """Whether the connection was gone before anything was asked of it: another one may do."""


T = TypeVar("T")

MANY_ROWS: Final = 32
"""What is made of so many may take a while, and the loop has others to serve."""


class Executor(Protocol):
    """A connection that runs queries."""

    async def fetch(self, sql: str, params: Sequence[object]) -> Sequence[Row]:
        """The rows that a query finds."""
        ...

    async def change(self, sql: str, rows: Sequence[Sequence[object]]) -> int:
        """How many rows a statement has changed, run with each of these rows of parameters."""
        ...

    async def take(self, lock: str) -> None:
        """Wait until nobody else has the lock. By then all that was done under it can be seen."""
        ...


class BegunTransaction(Generic[T]):
    """A transaction and its first statement, which says what to lock before the database begins one."""

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
        """The first lock; None if the transaction has to run alone."""
        return self.statement.lock if self.statement is not None else None


Compose: TypeAlias = Callable[[tuple[Query, ...]], str]
"""Says several queries as one, which answers in one row: for each its rows, or how many it has changed."""


class TransactionRun:
    """One transaction after the other on a connection, and what they leave behind."""

    def __init__(
        self,
        executor: Executor,
        queries: Mapping[str, Query],
        language: Language,
        held: set[str] | None = None,
        *,
        reads: bool = False,
        compose: Compose | None = None,
    ) -> None:
        self._executor = executor
        self._queries = queries
        self._language = language
        """What the search index in the database understands."""
        self._held = held
        """The locks it has; None if it needs none, because it runs alone or merely reads."""
        self._reads = reads
        """Whether it only reads: so it takes no ids, and may work in a thread."""
        self._compose = compose
        """None: what is asked together is asked one after the other."""
        self.wrote = False
        """Whether it may have left something that only the end of the transaction can undo."""
        self.changed_snapshot = False
        self.news: tuple[News, ...] = ()

    async def drive(self, begun: BegunTransaction[T]) -> T:
        """Run the transaction to its end."""
        transaction, statement = begun.transaction, begun.statement
        if statement is None:
            return cast("T", begun.result)
        try:
            while True:
                rows = await self.execute(await self.ready(statement))
                if self._reads and len(rows) >= MANY_ROWS:
                    next_step = await in_thread(partial(step, transaction, rows))
                else:
                    next_step = step(transaction, rows)
                if not isinstance(next_step, Statement):
                    return next_step.value
                statement = next_step
        finally:
            transaction.close()

    async def ready(self, statement: Statement) -> Statement:
        """Take what locks the statement needs; it comes back with all that is to be written."""
        for lock in self.locks_of(statement):
            await self._executor.take(lock)
            self.hold(lock)
        return await with_tokens(statement, self._language)

    def locks_of(self, statement: Statement) -> Sequence[str]:
        """What the statement needs that it has not."""
        if self._held is None:
            return ()
        wanted = (one.lock for one in statement.parts or (statement,))
        return [lock for lock in dict.fromkeys(wanted) if lock is not None and lock not in self._held]

    def hold(self, lock: str) -> None:
        """It has that lock from now on."""
        if self._held is not None:
            self._held.add(lock)

    async def execute(self, statement: Statement) -> Sequence[Row]:
        """The answer to a statement that is ready."""
        if not statement.parts:
            return await self._execute(statement)
        if self._compose is None:
            return [await self._execute(part) for part in statement.parts]
        rows = await self._executor.fetch(self.sql_of(statement), values_of(statement))
        return self.answer(statement, rows[0])

    def sql_of(self, statement: Statement) -> str:
        """The query that answers everything a statement stands for in one row."""
        assert self._compose is not None  # noqa: S101 -- whoever asks for it is one who can compose
        return self._compose(tuple(self._queries[one.name] for one in statement.parts or (statement,)))

    def plain_sql_of(self, statement: Statement) -> str:
        """The query by itself."""
        return self._queries[statement.name].sql

    def answer(self, statement: Statement, row: Row) -> Sequence[Row]:
        """What that row says of each part; of a statement without any, what it says of itself."""
        parts = statement.parts or (statement,)
        answers = [self._answer(part, value) for part, value in zip(parts, row, strict=True)]
        return answers if statement.parts else answers[0]

    def changed(self, statement: Statement, changed: int) -> Sequence[Row]:
        """Note what a statement has changed; its answer."""
        self.wrote = True
        if changed:
            self.changed_snapshot |= self._queries[statement.name].changes_snapshot
            self.news += (statement.news,) if statement.news is not None else ()
        return ((changed,),)

    def _answer(self, statement: Statement, value: Any) -> Sequence[Row]:
        if self._queries[statement.name].reads:
            return cast("Sequence[Row]", value)
        return self.changed(statement, value)

    async def _execute(self, statement: Statement) -> Sequence[Row]:
        query = self._queries[statement.name]
        if query.reads:
            return await self._executor.fetch(query.sql, statement.params)
        self.wrote = True
        rows = (statement.params,) if statement.many is None else statement.many
        return self.changed(statement, await self._executor.change(query.sql, rows))


def values_of(statement: Statement) -> Sequence[object]:
    """The values of everything that a statement stands for."""
    return tuple(chain.from_iterable(one.params for one in statement.parts or (statement,)))


class View:
    """Reads on one connection whose view stays the same, one transaction at a time."""

    def __init__(self, run: TransactionRun, troubles: Troubles) -> None:
        self._run = run
        self._troubles = troubles
        self._turn = asyncio.Lock()

    async def read(self, transaction: TransactionFactory[T]) -> T:
        """Run a transaction that changes nothing."""
        async with self._turn:
            try:
                return await self._run.drive(BegunTransaction(transaction()))
            except self._troubles.foreign as error:
                raise self._troubles.translate(error) from error


@dataclass(frozen=True, slots=True)
class End(Generic[T]):
    """What came of a transaction."""

    value: T


def step(transaction: Transaction[T], rows: Sequence[Row]) -> Statement | End[T]:
    """What a transaction wants next, or what came of it."""
    try:
        return transaction.send([tuple(row) for row in rows])
    except StopIteration as stop:
        return End(stop.value)


def only(statement: Statement) -> Transaction[int]:
    """The shortest of transactions: one changing statement; how many rows it has changed."""
    rows = yield statement
    return int(rows[0][0])
