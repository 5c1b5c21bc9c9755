"""What the runtime needs from the world, as protocols; each has at least two forms."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

from gateway_sessions.core.committed_changes import News
from gateway_sessions.core.search.documents import Searchable

T = TypeVar("T")

Row: TypeAlias = Sequence[Any]
Rows: TypeAlias = Sequence[Row]


class Statement(NamedTuple):
    """A named query and one row of parameters; `many` holds several rows instead.

    A query that returns no rows answers with one row that holds the number of rows it changed.
    """

    name: str
    params: Sequence[Any] = ()
    many: Sequence[Sequence[Any]] | None = None
    alone: bool = False
    """The only writing statement of its transaction, so that nothing has to be undone if it fails."""
    news: News | None = None
    """What it means if it changes anything: passed on to whoever listens, once it is committed."""
    lock: str | None = None
    """What this statement and those behind it decide on, where many write at once.

    A transaction whose first statement names a lock runs beside others; each lock that it comes to is its own
    until it has ended. A transaction whose first statement names none runs while no other one does.
    """
    said: Callable[[], Sequence[Searchable]] | None = None
    """What each row says, if rows are messages: a database that keeps the search index makes it of that."""
    parts: Sequence[Statement] = ()
    """The statements that it stands for, if it was made by `together`."""
    moves: Sequence[StrEnum] = ()
    """The events of a state machine that it carries out, one of them for each row that it changes."""


def together(*parts: Statement) -> Statement:
    """Several statements at once; the answer has what each of them answers, in their order.

    They need nothing of each other: none sees what another one changes, and no two change the same row.
    A database for which each question is a way to go and come back is asked once.
    """
    return Statement("together", lock=parts[0].lock, parts=parts)


Transaction: TypeAlias = Generator[Statement, Rows, T]
"""A unit of work on the truth: yields statements, receives their rows, returns a value.

It never awaits, asks the time, makes randomness or calls user code; those arrive as arguments.
"""

TransactionFactory: TypeAlias = Callable[[], Transaction[T]]
"""Makes the transaction; a driver may have to run it afresh after a serialization failure."""


class Reader(Protocol):
    """Runs reading transactions, each on a consistent view of the database."""

    async def read(self, transaction: TransactionFactory[T]) -> T:
        """Run a transaction that changes nothing."""
        ...


class Driver(Reader, Protocol):
    """A database: runs transactions and speaks our errors."""

    def write(self, transaction: TransactionFactory[T]) -> Awaitable[T]:
        """Run a transaction; when this is awaited, the outcome is durable."""
        ...

    def change(self, statement: Statement) -> Awaitable[int]:
        """Run one changing statement, durably; how many rows it has changed."""
        ...

    def view(self) -> AbstractAsyncContextManager[Reader]:
        """A reader whose transactions all see the same moment."""
        ...


class Clock(Protocol):
    """Time as the runtime sees it."""

    def now(self) -> datetime:
        """The present instant, aware, in UTC."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait that long."""
        ...


class Agenda(Protocol):
    """What a periodic duty has ahead of it, for a clock that may pass over periods without work."""

    def state(self) -> object:
        """Return a value that differs once anything has happened that may bring work forward."""
        ...

    async def next_due(self) -> datetime | None:
        """Return when there is work next, as things are now; None if time alone brings none."""
        ...


@runtime_checkable
class SkippingClock(Clock, Protocol):
    """A clock whose time passes when somebody says so; a year of it has no room for idle periods."""

    async def skip_idle_periods(self, period: timedelta, agenda: Agenda) -> None:
        """Wait until the end of the first period, counted from now, in which there is work."""
        ...


AliasResolver: TypeAlias = Callable[[str, str], Awaitable[str]]
"""Given a platform and an identifier, the one identifier that all its aliases share."""

HasActiveProcesses: TypeAlias = Callable[[str], bool | Awaitable[bool]]
"""Given a session key, whether work is running that a reset would cut off."""
