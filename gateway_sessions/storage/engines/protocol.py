"""`Engine`: the protocol that a database implements, with parts for shared and for embedded ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol, TypeVar

from anyio.abc import TaskGroup

from gateway_sessions.core.committed_changes import CommittedChange
from gateway_sessions.core.search.stems import Stems
from gateway_sessions.ports import Clock, Driver, TransactionFactory
from gateway_sessions.storage.engines.search_column import TokenLanguage

T = TypeVar("T")

FILE_ON_SERVERS: Final = "server"
"""The name of the database file that a server does not have. Search settings, snapshots and locks of this
machine are kept beside that path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VacuumReport:
    """Reports the size of a database file before and after a vacuum."""

    bytes_before: int
    bytes_after: int
    log_emptied: bool
    """False if a reader in an older snapshot kept the write-ahead log from being emptied."""


class Upkeep(Protocol):
    """Does for a database file what a server does for itself."""

    async def vacuum(self) -> VacuumReport:
        """Write the file anew without gaps."""
        ...

    async def optimise(self) -> None:
        """Refresh the statistics of the query planner."""
        ...

    async def empty_log(self) -> bool:
        """Truncate the write-ahead log; return False if a reader in an older snapshot prevents that."""
        ...

    async def overwrite_deleted(self, *, overwrite: bool) -> None:
        """Set whether the space of deleted rows is overwritten with zeros from now on."""
        ...

    def newest_backup(self) -> datetime | None:
        """Return when the newest backup was taken. Reads the disk."""
        ...

    async def back_up(self, now: datetime, *, keep: int | None) -> Path:
        """Write a verified backup of the database as it is now, and remove all but the newest *keep*."""
        ...


class SharedDatabase(Protocol):
    """A database that several nodes have open at once."""

    trusted: Callable[[], bool]
    """Returns True while no other node can have declared this node dead. Nothing is written otherwise."""
    on_call: Callable[[frozenset[int]], object]
    """Called with the epochs of the nodes that another node asks to look at once; with none if it asks
    all."""

    @property
    def notifies_at_once(self) -> bool:
        """Return True if nodes are notified at once; False if each of them only polls."""
        ...

    async def run_before_joining(self, transaction: TransactionFactory[T]) -> T:
        """Run a transaction before this process is a node, with no other transaction beside it."""
        ...

    async def run_heartbeat(self, transaction: TransactionFactory[T]) -> T:
        """Run a transaction at once on the connection for heartbeats, which waits for no lock and no pool."""
        ...

    async def notify_nodes(self, epochs: frozenset[int]) -> None:
        """Ask these nodes to look at once, or all nodes if none are named. A lost call costs one poll."""
        ...

    async def describe_blockers(self) -> str:
        """Return a sentence about connections whose locks others wait for; empty if none are known."""
        ...

    @property
    def ids(self) -> Iterator[int]:
        """Return the ids for the rows of this node; no other node takes one of them."""
        ...

    def id_above(self, other: int) -> int:
        """Return an id of this node that is greater than *other*."""
        ...

    def act_as_node(self, epoch: int, first_id: int, *, slot: int, earliest: Callable[[], int]) -> None:
        """Write everything as the node of that *epoch* from now on."""
        ...


class Engine(Driver, Protocol):
    """Runs transactions on one database, and says who may have it open."""

    on_change: Callable[[], None]
    """Called after a commit that has changed what sessions.json shows."""
    on_news: Callable[[Sequence[CommittedChange]], None]
    """Called with the changes that commits have brought about."""

    @property
    def place(self) -> str:
        """Return the name of the database in errors and reports. It never holds a password."""
        ...

    @property
    def path(self) -> Path:
        """Return the database file, or, on a server, a path in the home beside which files are kept."""
        ...

    @property
    def index_language(self) -> TokenLanguage | None:
        """Return the language of a search index in the database; None if the index is a file beside it."""
        ...

    def stem_with(self, stems: Stems) -> None:
        """Use these stems for the words of messages, if the search index is in the database."""
        ...

    @property
    def upkeep(self) -> Upkeep | None:
        """Return the upkeep of the file; None if the database has no file of ours."""
        ...

    @property
    def shared(self) -> SharedDatabase | None:
        """Return the database as several nodes share it; None if only one process can open it."""
        ...

    @property
    def changes(self) -> int:
        """Return how many commits since the start have changed what sessions.json shows."""
        ...

    async def start(self, tasks: TaskGroup, cleanup: AsyncExitStack) -> None:
        """Open the database, migrate it and begin to serve; *cleanup* closes everything again."""
        ...

    def owned(self, clock: Clock, *, wait: float) -> AbstractAsyncContextManager[None]:
        """Own the home until the end of the block; wait at most *wait* seconds for another owner."""
        ...

    def begin_epoch(self, epoch: int, first_id: int) -> Iterator[int]:
        """Return the row ids from *first_id* on, for the only owner of the database."""
        ...

    def end_with(self, transaction: TransactionFactory[None]) -> None:
        """Run that transaction last, when the engine stops. Its failure is not reported."""
        ...
