"""Driving verbs on one connection of a server, statement by statement."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Generic, Protocol, TypeVar, cast

from gateway_sessions.core.news import News
from gateway_sessions.ports import Row, Statement, Verb, VerbFactory
from gateway_sessions.storage.drivers.troubles import Troubles
from gateway_sessions.storage.in_thread import in_thread
from gateway_sessions.storage.queries import Query
from gateway_sessions.storage.search_column.languages import Language
from gateway_sessions.storage.search_column.telling import with_tokens

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


class Begun(Generic[T]):
    """A verb and its first statement: what it will lock has to be known before it has a transaction."""

    def __init__(self, verb: Verb[T]) -> None:
        self.verb = verb
        self.statement: Statement | None = None
        self.result: T | None = None
        try:
            self.statement = next(verb)
        except StopIteration as stop:
            self.result = stop.value

    @property
    def lock(self) -> str | None:
        """The first lock; None if the verb has to run alone."""
        return self.statement.lock if self.statement is not None else None


class Run:
    """One verb after the other on a connection, and what they leave behind."""

    def __init__(
        self,
        executor: Executor,
        queries: Mapping[str, Query],
        language: Language,
        held: set[str] | None = None,
        *,
        reads: bool = False,
    ) -> None:
        self._executor = executor
        self._queries = queries
        self._language = language
        """What the search index in the database understands."""
        self._held = held
        """The locks it has; None if it needs none, because it runs alone or merely reads."""
        self._reads = reads
        """Whether it only reads: so it takes no ids, and may work in a thread."""
        self.changed_index = False
        self.news: tuple[News, ...] = ()

    async def drive(self, begun: Begun[T]) -> T:
        """Run the verb to its end."""
        verb, statement = begun.verb, begun.statement
        if statement is None:
            return cast("T", begun.result)
        try:
            while True:
                rows = await self._execute(statement)
                if self._reads and len(rows) >= MANY_ROWS:
                    step = await in_thread(partial(_step, verb, rows))
                else:
                    step = _step(verb, rows)
                if not isinstance(step, Statement):
                    return step.value
                statement = step
        finally:
            verb.close()

    async def _execute(self, statement: Statement) -> Sequence[Row]:
        await self._take(statement.lock)
        query = self._queries[statement.name]
        statement = await with_tokens(statement, self._language)
        if query.reads:
            return await self._executor.fetch(query.sql, statement.params)
        rows = (statement.params,) if statement.many is None else statement.many
        changed = await self._executor.change(query.sql, rows)
        if changed:
            self.changed_index |= query.changes_index
            self.news += (statement.news,) if statement.news is not None else ()
        return ((changed,),)

    async def _take(self, lock: str | None) -> None:
        if self._held is not None and lock is not None and lock not in self._held:
            await self._executor.take(lock)
            self._held.add(lock)


class View:
    """Reads on one connection whose transaction stays open, one verb at a time."""

    def __init__(self, run: Run, troubles: Troubles) -> None:
        self._run = run
        self._troubles = troubles
        self._turn = asyncio.Lock()

    async def read(self, verb: VerbFactory[T]) -> T:
        """Run a verb that changes nothing."""
        async with self._turn:
            try:
                return await self._run.drive(Begun(verb()))
            except self._troubles.foreign as error:
                raise self._troubles.translate(error) from error


@dataclass(frozen=True, slots=True)
class _End(Generic[T]):
    value: T


def _step(verb: Verb[T], rows: Sequence[Row]) -> Statement | _End[T]:
    """What a verb wants next, or what came of it."""
    try:
        return verb.send([tuple(row) for row in rows])
    except StopIteration as stop:
        return _End(stop.value)


def only(statement: Statement) -> Verb[int]:
    """The shortest of verbs: one changing statement; how many rows it has changed."""
    rows = yield statement
    return int(rows[0][0])
