"""A server database as the whole database of a store: shared by nodes, or opened for reading only.

A database on a server that several nodes have open at once.

A database on a server as the whole database of a store, for those that only read.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, Protocol, TypeVar

from anyio.abc import TaskGroup

from gateway_sessions.core.cluster import SLOTS
from gateway_sessions.errors import GatewaySessionsError, StorageError
from gateway_sessions.ports import Clock, Statement, TransactionFactory
from gateway_sessions.storage.engines.index_column import Language
from gateway_sessions.storage.engines.protocol import FILE_ON_SERVERS, Shared, Upkeep
from gateway_sessions.storage.engines.server.driver import ServerDriver
from gateway_sessions.storage.files.threads import in_thread
from gateway_sessions.storage.home import owned, prepare_home
from gateway_sessions.storage.tables.queries import Query

T = TypeVar("T")


class SideConnection(Protocol):
    """A connection beside the others, for what must wait for nobody."""

    @property
    def calls(self) -> bool:
        """Whether a node hears when another one calls it."""
        ...

    def run(
        self, queries: Mapping[str, Query], language: Language, transaction: TransactionFactory[T]
    ) -> Coroutine[Any, Any, T]:
        """Run a transaction that takes no locks by name."""
        ...

    async def call(self, epochs: frozenset[int]) -> None:
        """Call others. Nothing is lost if nobody hears it."""
        ...

    async def close(self) -> None:
        """End in order."""
        ...


class SharedServer(ServerDriver):
    """A database that any number of nodes have open, each of them with a directory of its own."""

    upkeep: Upkeep | None = None
    place: str
    _home: Path
    _allow_network: bool
    _line: SideConnection
    _last: TransactionFactory[None] | None = None

    @property
    def path(self) -> Path:
        """Beside it is what this machine keeps."""
        return self._home / FILE_ON_SERVERS

    @property
    def shared(self) -> Shared | None:
        """Many nodes may have it open."""
        return self

    @asynccontextmanager
    async def owned(self, clock: Clock, *, wait: float) -> AsyncGenerator[None]:
        """Be the only process that has this directory; the database is everybody's."""
        await in_thread(partial(prepare_home, self._home, allow_network=self._allow_network))
        async with owned(self._home, clock, wait=wait):
            yield

    async def start(self, tasks: TaskGroup, cleanup: AsyncExitStack) -> None:
        """Connect and bring the database up to date; *cleanup* closes everything again."""
        await super().start(tasks, cleanup)
        cleanup.push_async_callback(self._end)
        cleanup.push_async_callback(self._line.close)

    def end_with(self, transaction: TransactionFactory[None]) -> None:
        """Run that transaction when nothing else will be run any more. Nobody learns whether it could be."""
        self._last = transaction

    async def _end(self) -> None:
        if self._last is not None:
            with suppress(GatewaySessionsError):
                await self.write(self._last)

    async def enter(self, transaction: TransactionFactory[T]) -> T:
        """Run a transaction as nobody yet, alone."""
        return await self._written(transaction, None)

    async def aside(self, transaction: TransactionFactory[T]) -> T:
        """Run a transaction at once on a connection of its own: it waits for nobody and is never refused."""
        return await self._line.run(self._queries, self.index_language, transaction)

    @property
    def calls(self) -> bool:
        """Whether a node hears when another one calls it; else all of them merely look now and then."""
        return self._line.calls

    async def call(self, epochs: frozenset[int]) -> None:
        """Let these nodes look at once, or all if none are named. Whoever does not hear it looks later."""
        await self._line.call(epochs)

    def id_above(self, other: int) -> int:
        """An id for a row of this node that is above that one."""
        self.ids.rise_to(other + 1)
        return next(self.ids)

    def be(self, epoch: int, first_id: int, *, slot: int, earliest: Callable[[], int]) -> None:
        """From now on everything is written as that node."""
        self.epoch = epoch
        self.ids.begin_at(first_id, slot=slot, slots=SLOTS, earliest=earliest)

    def begin_epoch(self, epoch: int, first_id: int) -> Iterator[int]:
        """Ids for rows, from that one on, for an owner that nobody else is beside."""
        del epoch
        self.ids.begin_at(first_id)
        return self.ids

    def _called(self, epochs: frozenset[int]) -> None:
        self.on_call(epochs)


class ReadServer(ServerDriver):
    """Runs reading transactions. It makes no table, and takes no lock that anybody would wait for."""

    upkeep: Upkeep | None = None
    place: str
    path: Path

    @asynccontextmanager
    async def owned(self, clock: Clock, *, wait: float) -> AsyncGenerator[None]:
        """Readers own nothing."""
        del clock, wait
        yield

    async def write(self, transaction: TransactionFactory[T]) -> T:
        """Nothing can be written here."""
        self._refuse()

    async def change(self, statement: Statement) -> int:
        """Nothing can be changed here."""
        self._refuse()

    @property
    def shared(self) -> None:
        """Whoever only reads is no node."""

    def begin_epoch(self, epoch: int, first_id: int) -> Iterator[int]:
        """Nobody takes an id here."""
        del epoch, first_id
        return self.ids

    def end_with(self, transaction: TransactionFactory[None]) -> None:
        """There is nothing to settle."""

    def _refuse(self) -> NoReturn:
        raise StorageError(self.place, "was opened for reading; ask its owner to change something")
