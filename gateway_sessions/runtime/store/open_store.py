"""`OpenStore`: the parts of a store while it is open, and the reads and writes that its methods share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TypeVar

from anyio.abc import TaskGroup

from gateway_sessions._process.background import Resource
from gateway_sessions._process.failpoints import failpoint
from gateway_sessions.config import Config, SnapshotMode
from gateway_sessions.core.identity.keys import NO_ALIASES, Isolation, session_key
from gateway_sessions.core.identity.scope import Scope
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.sessions.state_machine import is_notice_due
from gateway_sessions.errors import SnapshotError
from gateway_sessions.ports import Clock, Transaction
from gateway_sessions.runtime.duties.expiry import ExpiryWatcher
from gateway_sessions.runtime.duties.restart_recovery import StartReport
from gateway_sessions.runtime.duties.session_hooks import Hooks
from gateway_sessions.runtime.duties.unfinished_erasures import UnfinishedErasures
from gateway_sessions.runtime.observability.event_stream import Events
from gateway_sessions.runtime.observability.incidents import Incident
from gateway_sessions.runtime.queue.queue_operations import QueueOperations
from gateway_sessions.runtime.queue.routing import EntryCache
from gateway_sessions.runtime.store.control import AgentsOfGateway, Control
from gateway_sessions.runtime.store.database_opening import DatabaseOpening
from gateway_sessions.runtime.store.files_rewriter import FilesRewriter
from gateway_sessions.runtime.store.opening import StoreAssembly, StoreOptions, StoreParts
from gateway_sessions.storage.database import SessionDB
from gateway_sessions.storage.listener import FilesBeside
from gateway_sessions.storage.tables.change import Actor, Change

T = TypeVar("T")


class OpenStore(Resource):
    """Opens and closes the parts of a store, and runs transactions on them."""

    def __init__(self, home: Path, config: Config, clock: Clock, options: StoreOptions) -> None:
        super().__init__("session store")
        self.home = home
        self.config = config
        self._clock = clock
        self._options = options
        self._opened: StoreParts | None = None
        self._control: Control | None = None
        self._cache = EntryCache(config.cache.entries)
        self._agents = AgentsOfGateway()
        self.events: Events = Events(clock)
        """The events of the store, and of a gateway on it."""
        self._isolation = config.isolation

    @property
    def db(self) -> SessionDB:
        """The database."""
        return self._parts.context.db

    @property
    def hooks(self) -> Hooks:
        """The hooks, and what became of their calls."""
        return self._parts.hooks

    @property
    def watcher(self) -> ExpiryWatcher:
        """The duty that ends sessions nobody writes to."""
        return self._parts.watcher

    @property
    def clock(self) -> Clock:
        """The time that this store goes by."""
        return self._clock

    @property
    def isolation(self) -> Isolation:
        """Who shares a lane with whom."""
        return self._isolation

    @property
    def control(self) -> Control:
        """The operations that other programs may ask of this process."""
        if self._control is None:
            self._check_running()
        assert self._control is not None  # noqa: S101 -- running means opened
        return self._control

    @property
    def drain_requested(self) -> asyncio.Event:
        """Set when another process would like to take over; this one ends when it sees fit."""
        return self.control.drain_requested

    @property
    def started(self) -> StartReport:
        """The state in which the store was found when it was opened."""
        return self._parts.started

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """The damage and faults that were found and dealt with since the store was opened."""
        return tuple(self._parts.incidents)

    def key_for(self, source: SessionSource) -> str:
        """The plain key of the lane a message of that origin belongs to, if nobody has another name."""
        return session_key(source, self._isolation, NO_ALIASES)

    def should_notify(self, entry: SessionEntry) -> bool:
        """Return True if people should be told that this session replaced one that nobody asked to end."""
        return is_notice_due(entry, self._parts.context.policy_of(entry).policy)

    async def scope_of(self, source: SessionSource) -> Scope:
        """The scope of the person who wrote, under the rules of this store and all of their names."""
        self._check_running()
        return await self._parts.routing.scope_of(source)

    async def flush(self) -> None:
        """Return when sessions.json shows all that was changed before, else raise `SnapshotError`."""
        self._check_running()
        if self._parts.snapshot is not None:
            await self._parts.snapshot.flush()

    @property
    def _parts(self) -> StoreParts:
        if self._opened is None:
            self._check_running()
        assert self._opened is not None  # noqa: S101 -- running means opened
        return self._opened

    def _make_assembly(self) -> StoreAssembly:
        return StoreAssembly(
            config=self.config,
            clock=self._clock,
            options=self._options,
            database=DatabaseOpening(
                home=self.home,
                config=self.config,
                clock=self._clock,
                wait=self._options.wait,
                pool=self._options.pool,
                upkeep=self._options.upkeep,
            ),
            cache=self._cache,
            events=self.events,
            flush=self.flush,
            rewrite_files=self._rewrite_files,
        )

    async def _start(self, tasks: TaskGroup, cleanup: AsyncExitStack) -> None:
        self._opened = parts = await self._make_assembly().open_parts(tasks, cleanup)
        self._erasures = UnfinishedErasures(self.db, self._clock, parts.incidents)
        await self._erasures.find_unfinished()
        tasks.start_soon(self._erasures.run)
        self._control = Control(self.home, self.db, self._clock, self, self._agents)
        await self._control.start(tasks, cleanup)

    async def _rewrite_files(self) -> FilesBeside:
        return await FilesRewriter(self.home, self._parts, self._cache, self._agents).rewrite_files()

    async def _finish(self) -> None:
        if self._control is not None:
            await self._control.finish()
        if self._parts.snapshot is not None:
            # A file that cannot be written has been reported, and the database has everything.
            with suppress(SnapshotError):
                await self._parts.snapshot.flush()
        failpoint("before_marker")
        await self._parts.restart.leave_marker()

    async def _write(self, actor: Actor, transaction: Callable[[Change], Transaction[T]]) -> T:
        self._check_running()
        outcome = await self._parts.context.apply(actor, transaction)
        await self._wait_for_snapshot()
        return outcome

    async def _overtake(
        self, session_key: str, transaction: Callable[[Change], Transaction[T]], by: str
    ) -> T:
        """Make a change that ends the lane's turn and empties its queue."""
        self._check_running()
        outcome, _ = await self._parts.queue.overtake(session_key, transaction, by=by)
        await self._wait_for_snapshot()
        return outcome

    async def _read(self, transaction: Callable[[], Transaction[T]]) -> T:
        self._check_running()
        return await self._parts.context.db.read(transaction)

    async def _wait_for_snapshot(self) -> None:
        """In mode `sync`, return when sessions.json shows what was changed."""
        if self.config.snapshot_mode is SnapshotMode.SYNC:
            await self.flush()


def parts_of(store: OpenStore) -> StoreParts:
    """Return the parts of an open store, for modules of this package that work on more than its methods."""
    return store._parts  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # the one door


def queue_of(store: OpenStore) -> QueueOperations:
    """Return the queue of an open store."""
    return parts_of(store).queue
