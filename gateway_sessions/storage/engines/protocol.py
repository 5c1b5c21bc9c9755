"""`Engine`: the protocol that a database implements, with parts for shared and for embedded ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol, TypeVar

from anyio.abc import TaskGroup

from gateway_sessions.core.committed_changes import News
from gateway_sessions.core.search.stems import Stems
from gateway_sessions.ports import Clock, Driver, TransactionFactory
from gateway_sessions.storage.engines.index_column import Language

T = TypeVar("T")

FILE_ON_SERVERS: Final = "server"
"""Beside a file of that name, which is not there, lies what a machine keeps of a database on a server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VacuumReport:
    """What the database took before and after."""

    bytes_before: int
    bytes_after: int
    log_emptied: bool
    """Whether the write-ahead log is empty; a reader that looks at an old moment can prevent that."""


class Upkeep(Protocol):
    """What the owner of a database file does for it. A server sees to that itself."""

    async def vacuum(self) -> VacuumReport:
        """Write the file anew without gaps."""
        ...

    async def optimise(self) -> None:
        """Let the database learn what its tables hold by now."""
        ...

    async def empty_log(self) -> bool:
        """Cut the write-ahead log to nothing; False if somebody reads an old moment."""
        ...

    async def overwrite_deleted(self, *, overwrite: bool) -> None:
        """Whether the room of deleted rows is overwritten with zeros from now on."""
        ...

    def newest_backup(self) -> datetime | None:
        """When the newest copy was taken. Looks at the disk."""
        ...

    async def back_up(self, now: datetime, *, keep: int | None) -> Path:
        """Copy the database as it is now, read the copy back, and remove all but the newest *keep*."""
        ...


class Shared(Protocol):
    """A database that several nodes have open at once."""

    trusted: Callable[[], bool]
    """Whether this node may be sure that it was not declared dead; nothing is written while it may not."""
    on_call: Callable[[frozenset[int]], object]
    """Told which nodes another one has called to look at once; none are named if all are meant."""

    @property
    def calls(self) -> bool:
        """Whether a node hears when another one calls it; else all of them merely look now and then."""
        ...

    async def enter(self, transaction: TransactionFactory[T]) -> T:
        """Run a transaction as nobody yet, alone."""
        ...

    async def aside(self, transaction: TransactionFactory[T]) -> T:
        """Run a transaction at once on a connection of its own: it waits for nobody and is never refused."""
        ...

    async def call(self, epochs: frozenset[int]) -> None:
        """Let these nodes look at once, or all if none are named. Whoever does not hear it looks later."""
        ...

    async def blockers(self) -> str:
        """Who holds locks that others wait for, in words; empty if nobody does, or nobody can tell."""
        ...

    @property
    def ids(self) -> Iterator[int]:
        """For rows that this node makes, and nobody else."""
        ...

    def id_above(self, other: int) -> int:
        """One of them that is above that one."""
        ...

    def be(self, epoch: int, first_id: int, *, slot: int, earliest: Callable[[], int]) -> None:
        """From now on everything is written as that node."""
        ...


class Engine(Driver, Protocol):
    """A database, and how it is owned."""

    on_change: Callable[[], None]
    """Called after a commit that has changed what sessions.json shows."""
    on_news: Callable[[Sequence[News]], None]
    """Called with what commits have brought about."""

    @property
    def place(self) -> str:
        """What errors and people call the database. It never holds a password."""
        ...

    @property
    def path(self) -> Path:
        """The database file, or on a server one that is not there: beside it is what this machine keeps."""
        ...

    @property
    def index_language(self) -> Language | None:
        """What the search index understands that is in the database; None: it is a file beside it."""
        ...

    def stem_with(self, stems: Stems) -> None:
        """Messages are written with these stems of their words, if the index is in the database."""
        ...

    @property
    def upkeep(self) -> Upkeep | None:
        """What can be done for the file; None if there is none of ours."""
        ...

    @property
    def shared(self) -> Shared | None:
        """The same as what several nodes have open; None if only one process can."""
        ...

    @property
    def changes(self) -> int:
        """How often the truth behind sessions.json has changed since it was opened."""
        ...

    async def start(self, tasks: TaskGroup, cleanup: AsyncExitStack) -> None:
        """Open the database, bring it up to date and begin to serve; *cleanup* closes everything again."""
        ...

    def owned(self, clock: Clock, *, wait: float) -> AbstractAsyncContextManager[None]:
        """Own what this machine keeps until the end of the block; another owner is waited for so long."""
        ...

    def begin_epoch(self, epoch: int, first_id: int) -> Iterator[int]:
        """Ids for rows, from that one on, for an owner that nobody else is beside."""
        ...

    def end_with(self, transaction: TransactionFactory[None]) -> None:
        """Run that transaction when nothing else will be run any more. Nobody learns whether it could be."""
        ...
