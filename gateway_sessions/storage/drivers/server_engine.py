"""A database on a server as the whole database of a store: for its owner, and for those that only read."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NoReturn, Protocol, TypeVar

from anyio.abc import TaskGroup

from gateway_sessions.errors import (
    GatewaySessionsError,
    NoStoreError,
    StorageError,
    StorageUnavailableError,
)
from gateway_sessions.ports import Clock, Statement, VerbFactory
from gateway_sessions.storage.drivers.server import ServerDriver
from gateway_sessions.storage.engine import FILE_ON_SERVERS, Upkeep
from gateway_sessions.storage.home import owned, prepare_home
from gateway_sessions.storage.in_thread import in_thread
from gateway_sessions.storage.migrations import SchemaVersion, plan_migrations
from gateway_sessions.storage.queries import Migration

T = TypeVar("T")


class Ownership(Protocol):
    """How one process is the only owner of a store."""

    def held(self, clock: Clock, *, wait: float) -> AbstractAsyncContextManager[None]:
        """Own the store until the end of the block; another owner is waited for up to *wait* seconds."""
        ...

    async def keep(self, epoch: Callable[[], int | None]) -> None:
        """Own it again when that was lost, unless somebody else has begun an *epoch* meanwhile."""
        ...


class WholeServer(ServerDriver):
    """A database of a store, with the directory of what this machine keeps of it."""

    upkeep: Upkeep | None = None
    place: str
    _home: Path
    _allow_network: bool
    _last: VerbFactory[None] | None = None

    @property
    def path(self) -> Path:
        """Beside it is what this machine keeps."""
        return self._home / FILE_ON_SERVERS

    async def start(self, tasks: TaskGroup, cleanup: AsyncExitStack) -> None:
        """Connect and bring the database up to date; *cleanup* closes everything again."""
        await super().start(tasks, cleanup)
        cleanup.push_async_callback(self._end)

    def end_with(self, verb: VerbFactory[None]) -> None:
        """Run that verb when nothing else will be run any more. Nobody learns whether it could be."""
        self._last = verb

    async def _end(self) -> None:
        if self._last is not None:
            with suppress(GatewaySessionsError):
                await self.write(self._last)


class OwnedServer(WholeServer):
    """A database that one process owns."""

    _ownership: Ownership

    @property
    def shared(self) -> None:
        """Nobody else has it open."""

    @asynccontextmanager
    async def owned(self, clock: Clock, *, wait: float) -> AsyncGenerator[None]:
        """Be the only process that has the database open, and the only one that has this directory."""
        await in_thread(partial(prepare_home, self._home, allow_network=self._allow_network))
        async with owned(self._home, clock, wait=wait), self._ownership.held(clock, wait=wait):
            yield

    async def start(self, tasks: TaskGroup, cleanup: AsyncExitStack) -> None:
        """Connect and bring the database up to date; *cleanup* closes everything again."""
        tasks.start_soon(self._ownership.keep, lambda: self.epoch)  # what follows may take long
        await super().start(tasks, cleanup)

    def begin_epoch(self, epoch: int, first_id: int) -> Iterator[int]:
        """From now on nothing is written once there is a later owner; ids for rows, from that one on."""
        self.epoch = epoch
        self.ids.begin_at(first_id)
        return self.ids


class ReadServer(ServerDriver):
    """Runs reading verbs. It makes no table, and takes no lock that anybody would wait for."""

    upkeep: Upkeep | None = None
    place: str
    path: Path

    @asynccontextmanager
    async def owned(self, clock: Clock, *, wait: float) -> AsyncGenerator[None]:
        """Readers own nothing."""
        del clock, wait
        yield

    async def write(self, verb: VerbFactory[T]) -> T:
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

    def end_with(self, verb: VerbFactory[None]) -> None:
        """There is nothing to settle."""

    def _require_ready(self, found: SchemaVersion | None, migrations: Sequence[Migration]) -> None:
        """Make sure that this program understands what it is about to read."""
        what = self.troubles.what
        if found is None:
            raise NoStoreError(what)
        if plan_migrations(what, found, migrations):
            problem = "was written by an older version; open the store once to bring it up to date"
            raise StorageUnavailableError(what, problem)

    def _refuse(self) -> NoReturn:
        raise StorageError(self.place, "was opened for reading; ask its owner to change something")
