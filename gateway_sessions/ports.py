"""Protocols for what the runtime needs from outside: a database, a clock, and functions of the program."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

from gateway_sessions.core.committed_changes import CommittedChange
from gateway_sessions.core.search.documents import Searchable

T = TypeVar("T")

Row: TypeAlias = Sequence[Any]
Rows: TypeAlias = Sequence[Row]


class Statement(NamedTuple):
    """Names a query, with one row of parameters; `many` holds several rows instead.

    A query that returns no rows answers with one row that holds the number of rows it changed.
    """

    name: str
    params: Sequence[Any] = ()
    many: Sequence[Sequence[Any]] | None = None
    alone: bool = False
    """True for the only writing statement of its transaction, which needs no rollback if it fails."""
    news: CommittedChange | None = None
    """The meaning of a change, which listeners are told after the commit if any row changed."""
    lock: str | None = None
    """The lock that this statement and those behind it need, where several transactions write at once.

    A transaction whose first statement names a lock runs beside others, and keeps each of its locks until it
    has ended. A transaction whose first statement names none runs alone."""
    said: Callable[[], Sequence[Searchable]] | None = None
    """Returns the text of each row, if rows are messages: a database with a search column makes its tokens
    of that."""
    parts: Sequence[Statement] = ()
    """The statements that `together` has joined."""
    moves: Sequence[StrEnum] = ()
    """The events of a state machine that it carries out, one for each row that it changes."""


def together(*parts: Statement) -> Statement:
    """Join several statements; the answer has the answer of each, in their order.

    They are independent: none sees the changes of another one, and no two change the same row. A database on
    a server can answer them in one round trip.
    """
    return Statement("together", lock=parts[0].lock, parts=parts)


Transaction: TypeAlias = Generator[Statement, Rows, T]
"""A unit of work on the database: yields statements, receives their rows, returns a value.

It never awaits, asks the time, makes randomness or calls user code; those values arrive as arguments."""

TransactionFactory: TypeAlias = Callable[[], Transaction[T]]
"""Makes the transaction; a driver runs a new one after a conflict with another transaction."""


class Reader(Protocol):
    """Runs reading transactions, each in one snapshot of the database."""

    async def read(self, transaction: TransactionFactory[T]) -> T:
        """Run a transaction that changes nothing."""
        ...


class Driver(Reader, Protocol):
    """Runs transactions on a database, and raises our errors."""

    def write(self, transaction: TransactionFactory[T]) -> Awaitable[T]:
        """Run a transaction; when the result is awaited, the outcome is durable."""
        ...

    def change(self, statement: Statement) -> Awaitable[int]:
        """Run one changing statement, durably; return how many rows it has changed."""
        ...

    def view(self) -> AbstractAsyncContextManager[Reader]:
        """Lend a reader whose transactions all see the same snapshot."""
        ...


class Clock(Protocol):
    """Tells the time, and sleeps."""

    def now(self) -> datetime:
        """Return the present instant, aware, in UTC."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait for that many seconds."""
        ...


class Agenda(Protocol):
    """Tells a clock when a periodic duty has work, so that the clock may skip periods without."""

    def state(self) -> object:
        """Return a value that changes when work may come earlier than `next_due` has said."""
        ...

    async def next_due(self) -> datetime | None:
        """Return when the next work is due, as things are now; None if time alone brings none."""
        ...


@runtime_checkable
class SkippingClock(Clock, Protocol):
    """A clock whose time a test advances, and which can skip periods without work."""

    async def skip_idle_periods(self, period: timedelta, agenda: Agenda) -> None:
        """Wait until the end of the first period, counted from now, in which there is work."""
        ...


AliasResolver: TypeAlias = Callable[[str, str], Awaitable[str]]
"""Returns the one identifier that all aliases of a person share, from a platform and an identifier."""

HasActiveProcesses: TypeAlias = Callable[[str], bool | Awaitable[bool]]
"""Returns True if work of a session key is running that a reset would cut off."""
