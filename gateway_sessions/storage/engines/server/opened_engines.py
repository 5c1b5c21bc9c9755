"""A server database as the whole database of a store: shared by nodes, or opened for reading only."""

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
from gateway_sessions.storage.engines.protocol import FILE_ON_SERVERS, SharedDatabase, Upkeep
from gateway_sessions.storage.engines.search_column import TokenLanguage
from gateway_sessions.storage.engines.server.driver import ServerDriver
from gateway_sessions.storage.files.threads import in_thread
from gateway_sessions.storage.home import own_home, prepare_home
from gateway_sessions.storage.tables.sql_files import Query

T = TypeVar("T")


class SideConnection(Protocol):
    """A connection beside the pool for heartbeats, which must not wait for other transactions."""

    @property
    def notifies_at_once(self) -> bool:
        """Return True if this node is notified at once."""
        ...

    def run_transaction(
        self, queries: Mapping[str, Query], language: TokenLanguage, transaction: TransactionFactory[T]
    ) -> Coroutine[Any, Any, T]:
        """Run a transaction that takes none of our locks."""
        ...

    async def notify_nodes(self, epochs: frozenset[int]) -> None:
        """Notify other nodes. A lost notification costs one poll."""
        ...

    async def close(self) -> None:
        """Close the connection."""
        ...


class SharedServerEngine(ServerDriver):
    """A database that several nodes have open, each of them with a home of its own."""

    upkeep: Upkeep | None = None
    place: str
    _home: Path
    _allow_network: bool
    _side_connection: SideConnection
    _last: TransactionFactory[None] | None = None

    @property
    def path(self) -> Path:
        """Return a path in the home beside which this machine's files are kept."""
        return self._home / FILE_ON_SERVERS

    @property
    def shared(self) -> SharedDatabase | None:
        """Return itself: several nodes may have it open."""
        return self

    @asynccontextmanager
    async def owned(self, clock: Clock, *, wait: float) -> AsyncGenerator[None]:
        """Be the only process that has this home; the database is shared."""
        await in_thread(partial(prepare_home, self._home, allow_network=self._allow_network))
        async with own_home(self._home, clock, wait=wait):
            yield

    async def start(self, tasks: TaskGroup, cleanup: AsyncExitStack) -> None:
        """Connect and migrate the database; *cleanup* closes everything again."""
        await super().start(tasks, cleanup)
        # These run in reverse order, before those of the driver: the last transaction still has the pool.
        cleanup.push_async_callback(self._run_last_transaction)
        cleanup.push_async_callback(self._side_connection.close)

    def end_with(self, transaction: TransactionFactory[None]) -> None:
        """Run that transaction last, when the engine stops. Its failure is not reported."""
        self._last = transaction

    async def _run_last_transaction(self) -> None:
        if self._last is not None:
            with suppress(GatewaySessionsError):
                await self.write(self._last)

    async def run_before_joining(self, transaction: TransactionFactory[T]) -> T:
        """Run a transaction before this process is a node, with no other transaction beside it."""
        return await self._write_as_node(transaction, None)

    async def run_heartbeat(self, transaction: TransactionFactory[T]) -> T:
        """Run a transaction at once on the connection for heartbeats, which waits for no lock and no pool."""
        return await self._side_connection.run_transaction(self._queries, self.index_language, transaction)

    @property
    def notifies_at_once(self) -> bool:
        """Return True if nodes are notified at once; False if each of them only polls."""
        return self._side_connection.notifies_at_once

    async def notify_nodes(self, epochs: frozenset[int]) -> None:
        """Ask these nodes to look at once, or all nodes if none are named. A lost call costs one poll."""
        await self._side_connection.notify_nodes(epochs)

    def id_above(self, other: int) -> int:
        """Return an id of this node that is greater than *other*."""
        self.ids.rise_to(other + 1)
        return next(self.ids)

    def act_as_node(self, epoch: int, first_id: int, *, slot: int, earliest: Callable[[], int]) -> None:
        """Write everything as the node of that *epoch* from now on."""
        self.epoch: int | None = epoch
        self.ids.begin_at(first_id, slot=slot, slots=SLOTS, earliest=earliest)

    def begin_epoch(self, epoch: int, first_id: int) -> Iterator[int]:
        """Return the row ids from *first_id* on, for the only owner of the database."""
        del epoch
        self.ids.begin_at(first_id)
        return self.ids

    def _pass_on_call(self, epochs: frozenset[int]) -> None:
        self.on_call(epochs)


class ReadingServerEngine(ServerDriver):
    """Runs reading transactions. It creates no table, and takes no lock that another process waits for."""

    upkeep: Upkeep | None = None
    place: str
    path: Path

    @asynccontextmanager
    async def owned(self, clock: Clock, *, wait: float) -> AsyncGenerator[None]:
        """Own nothing: a reader has no home."""
        del clock, wait
        yield

    async def write(self, transaction: TransactionFactory[T]) -> T:
        """Raise `StorageError`: a reader changes nothing."""
        self._refuse_change()

    async def change(self, statement: Statement) -> int:
        """Raise `StorageError`: a reader changes nothing."""
        self._refuse_change()

    @property
    def shared(self) -> None:
        """Return None: a reader is no node."""

    def begin_epoch(self, epoch: int, first_id: int) -> Iterator[int]:
        """Return ids that nobody takes: a reader makes no rows."""
        del epoch, first_id
        return self.ids

    def end_with(self, transaction: TransactionFactory[None]) -> None:
        """Do nothing: a reader leaves nothing behind."""

    def _refuse_change(self) -> NoReturn:
        raise StorageError(self.place, "was opened for reading; ask its owner to change something")
