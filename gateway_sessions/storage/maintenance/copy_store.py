"""Move a store to another database of any engine, resumable and verified, with the source unchanged.

The source stays as it is. A file is locked during the move, so nobody writes it. On a server no node may
have the store open from the beginning to the end: a node that joins in between makes the move fail. A
partial copy cannot be opened as a store. After an interruption, the same call goes on behind the last
durable page.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias

import anyio
from anyio.abc import TaskGroup

from gateway_sessions._process.clock import SystemClock
from gateway_sessions.core.notices.human_units import counted
from gateway_sessions.errors import InvalidInputError, MigrationError, NoStoreError, StoreBusyError
from gateway_sessions.ports import Clock
from gateway_sessions.storage.engines.protocol import Engine
from gateway_sessions.storage.engines.registry import database_path, provider_of, server_at
from gateway_sessions.storage.engines.upgrade import EngineOpening, RunningEngine
from gateway_sessions.storage.files.threads import in_thread
from gateway_sessions.storage.tables import nodes
from gateway_sessions.storage.transactions.upkeep import copy_store
from gateway_sessions.storage.transactions.upkeep.copy_store import (
    BEGINNINGS,
    Key,
    MoveState,
    Stage,
    TablePage,
)

FIRST_ROWS: Final = 16
"""The first page is small, as the size of the rows is unknown."""
MOST_ROWS: Final = 1000
"""The most rows in a page, and in a transaction that writes them."""
POLL_SECONDS: Final = 0.1
"""The pause between two looks for nodes that have the store open."""
PAGE_BYTES: Final = 2 << 20
"""The size that a page should have: a few pages are in memory at once."""
_TOLD: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"sessions": ("session",), "messages": ("message",)}
)
_TOLD_IF_ANY: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "lanes": ("lane",),
        "inbox": ("accepted message",),
        "outbox": ("reply", "replies"),
        "schedules": ("schedule",),
        "usage_events": ("use of models", "uses of models"),
    }
)
"""The words of a report, by table."""
_OCCUPIED: Final = (
    "holds something else already, or a part of this store as it was before it was used again; "
    "give an empty database, or none yet"
)
_DIFFERENT: Final = (
    "is not what it should be: table {} has {} rows at the source and {} here, or other ones; "
    "empty it and run the migration again"
)
_OPENED: Final = (
    "was opened by somebody while it was moved; stop whoever uses it, and run the migration again into an "
    "empty database"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationProgress:
    """Tells how far a move has come."""

    checking: bool
    """True if all rows were copied, and both sides are compared now."""
    table: str
    """The table that is copied."""
    rows: int
    """The rows of that table that are done."""
    total_rows: int


Progress: TypeAlias = Callable[[MigrationProgress], object]
"""Called after each page; not awaited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationReport:
    """Reports the rows that were moved, or would be moved in a dry run."""

    source: str
    """The database that was copied."""
    target: str
    """The database with the copy."""
    rows: Mapping[str, int]
    """The number of rows by table."""
    seconds: float
    resumed: bool = False
    """True if an earlier move was interrupted, and this one has gone on with it."""
    already: bool = False
    """True if all rows had been moved before, so that they were only compared."""
    dry_run: bool = False

    @property
    def sessions(self) -> int:
        """Return the number of sessions."""
        return self.rows["sessions"]

    @property
    def messages(self) -> int:
        """Return the number of messages."""
        return self.rows["messages"]

    def __str__(self) -> str:
        done = "Would migrate" if self.dry_run else "Checked" if self.already else "Migrated"
        named = [
            *_TOLD.items(),
            *((table, words) for table, words in _TOLD_IF_ANY.items() if self.rows[table]),
        ]
        told = [counted(self.rows[table], *words) for table, words in named]
        rest = sum(count for table, count in self.rows.items() if table not in dict(named))
        return f"{done} {', '.join(told)}, {counted(rest, 'other row')} in {self.seconds:.1f}s"


async def migrate_store(
    source: str | Path,
    target: str | Path,
    *,
    dry_run: bool = False,
    progress: Progress | None = None,
    clock: Clock | None = None,
    wait: float = 0.0,
    prepared_statements: bool = True,
    allow_network: bool = False,
) -> MigrationReport:
    """Copy the store in the database *source* to the empty database *target*, and compare both.

    Each is a path or a URL, as for `SessionDB.open`; *prepared_statements* and *allow_network* are for both.
    `StoreBusyError` is raised if one of them is in use for longer than *wait* seconds, and `MigrationError`
    if the target holds another store, or differs from the source afterwards. After an interruption the same
    call goes on; after its end it only compares. A dry run only reads, also a source that is in use.
    """
    if str(source) == str(target) or _file_of(source) == _file_of(target) is not None:
        problem = (
            f"{_shown_address(source)} is both source and target: a store cannot be moved to where it is"
        )
        raise InvalidInputError(problem)
    await in_thread(partial(_refuse_missing, source, target))
    time = clock or SystemClock()
    opening = EngineOpening(prepared_statements=prepared_statements, allow_network=allow_network)
    old_side = opening.reading_engine(source, patient=True)
    if dry_run:
        async with RunningEngine(old_side) as old:
            identity = await _identity_of_source(old.engine)
            there = await _read_target_stage(target, opening)
            return await _StoreCopy(old.engine, time, progress).report_dry_run(
                _shown_address(target), there.stage(identity)
            )
    async with _CopySide(old_side, time, lock=opening.writing_engine(source), wait=wait) as old:
        identity = await _identity_of_source(old.engine)
        move = _StoreCopy(old.engine, time, progress)
        engine = opening.writing_engine(target, patient=True)
        async with _CopySide(engine, time, lock=engine, wait=wait):
            return await move.copy_and_compare(engine, identity)


class _CopySide(RunningEngine):
    """Opens a database of the move, and locks its home."""

    def __init__(self, engine: Engine, clock: Clock, *, lock: Engine, wait: float) -> None:
        super().__init__(engine)
        self._clock, self._lock, self._wait = clock, lock, wait

    async def _start(self, tasks: TaskGroup, cleanup: AsyncExitStack) -> None:
        await cleanup.enter_async_context(self._lock.owned(self._clock, wait=self._wait))
        await super()._start(tasks, cleanup)
        await self._wait_for_nodes()

    async def _wait_for_nodes(self) -> None:
        """Wait until no node has the store open: on a server, the lock of a home does not tell."""
        waited = 0.0
        while (living := await _living_node(self.engine)) is not None:
            if waited >= self._wait:
                raise StoreBusyError(self.engine.place, living)
            await self._clock.sleep(POLL_SECONDS)
            waited += POLL_SECONDS


class _StoreCopy:
    """Copies a store, from its beginning or from the point where a move was interrupted."""

    def __init__(self, source: Engine, clock: Clock, progress: Progress | None) -> None:
        self._source = source
        self._clock = clock
        self._progress = progress
        self._begun = clock.now()
        self._counts: Mapping[str, int] = MappingProxyType({})

    async def report_dry_run(self, target: str, stage: Stage | None) -> MigrationReport:
        """Report what would be moved."""
        if stage is None:
            raise MigrationError(target, _OCCUPIED)
        self._counts = await self._source.read(copy_store.count_rows)
        return replace(self._make_report(target, stage), dry_run=True)

    async def copy_and_compare(self, target: Engine, identity: str) -> MigrationReport:
        """Copy the rows that the target lacks, and compare everything."""
        stage = (await target.read(copy_store.load_move_state)).stage(identity)
        if stage is None:
            raise MigrationError(target.place, _OCCUPIED)
        self._counts = await self._source.read(copy_store.count_rows)
        if stage is not Stage.DONE:
            await target.write(partial(copy_store.mark_as_half_moved, identity))
            there = await target.read(copy_store.count_rows)
            for table in BEGINNINGS:
                await self._copy_table(table, target, there[table])
            facts = await self._source.read(copy_store.load_facts)
            await target.write(partial(copy_store.store_facts, facts))
        await self._compare_sides(target)
        if stage is not Stage.DONE:
            if target.upkeep is not None:
                await target.upkeep.optimise()
            await self._refuse_newcomers(identity)
            await target.write(partial(copy_store.finish_move, identity))
        return self._make_report(target.place, stage)

    async def _refuse_newcomers(self, identity: str) -> None:
        """Raise an error if a node has opened the source: it may have written rows that were not copied."""
        living = await _living_node(self._source)
        if living is not None:
            raise StoreBusyError(self._source.place, living)
        if await self._source.read(copy_store.store_identity) != identity:
            raise MigrationError(self._source.place, _OPENED)

    async def _copy_table(self, table: str, target: Engine, rows: int) -> None:
        """Copy the rows of a table behind those that the target has."""
        after = await target.read(partial(copy_store.last_copied_key, table))
        async for one in _pages_of_table(self._source, table, after):
            await target.write(partial(copy_store.store_table_page, table, one))
            rows += len(one.rows)
            self._report_progress(table, rows, checking=False)

    async def _compare_sides(self, target: Engine) -> None:
        """Compare the rows of both sides, which are read at the same time."""
        for table in BEGINNINGS:
            sums: dict[Engine, tuple[int, int]] = {}
            async with anyio.create_task_group() as tasks:
                for side in (self._source, target):
                    tasks.start_soon(self._sum_rows, side, table, sums)
            if sums[self._source] != sums[target]:
                (expected, _), (found, _) = sums[self._source], sums[target]
                raise MigrationError(target.place, _DIFFERENT.format(table, expected, found))
        if await self._source.read(copy_store.load_facts) != await target.read(copy_store.load_facts):
            raise MigrationError(target.place, _DIFFERENT.format("meta", "the facts", "others"))

    async def _sum_rows(self, side: Engine, table: str, sums: dict[Engine, tuple[int, int]]) -> None:
        rows = digest = 0
        async for one in _pages_of_table(side, table, BEGINNINGS[table]):
            rows, digest = rows + len(one.rows), digest + one.digest
            if side is self._source:
                self._report_progress(table, rows, checking=True)
        sums[side] = rows, digest

    def _report_progress(self, table: str, rows: int, *, checking: bool) -> None:
        if self._progress is not None:
            total = self._counts[table]
            self._progress(MigrationProgress(checking=checking, table=table, rows=rows, total_rows=total))

    def _make_report(self, target: str, stage: Stage) -> MigrationReport:
        return MigrationReport(
            source=self._source.place,
            target=target,
            rows=MappingProxyType(dict(self._counts)),
            seconds=(self._clock.now() - self._begun).total_seconds(),
            resumed=stage is Stage.CUT_OFF,
            already=stage is Stage.DONE,
        )


async def _pages_of_table(side: Engine, table: str, after: Key) -> AsyncIterator[TablePage]:
    """Yield the rest of a table. Pages grow with small rows and shrink with large ones."""
    limit = FIRST_ROWS
    while (one := await side.read(partial(copy_store.load_table_page, table, after, limit))).rows:
        yield one
        after = one.last
        fitting = PAGE_BYTES * len(one.rows) // max(one.size, 1)
        limit = max(1, min(2 * limit, fitting, MOST_ROWS))


async def _identity_of_source(source: Engine) -> str:
    """Return the identity of the opening of the store that is to be moved."""
    here = await source.read(copy_store.load_move_state)
    if here.moving is not None:
        raise MigrationError(source.place, "is only a part of a store: finish the move to it first")
    return here.identity


async def _living_node(engine: Engine) -> str | None:
    """Return the name of a node that has the store open, if there is one."""
    return next((one.name for one in await engine.read(nodes.all_nodes) if not one.silent), None)


async def _read_target_stage(target: str | Path, opening: EngineOpening) -> MoveState:
    """Return the state of the target without creating a file."""
    path = _file_of(target)
    if path is not None and not await in_thread(path.exists):
        return copy_store.NOTHING
    try:
        async with RunningEngine(opening.reading_engine(target)) as side:
            return await side.engine.read(copy_store.load_move_state)
    except NoStoreError:
        return copy_store.NOTHING


def _file_of(database: str | Path) -> Path | None:
    return None if server_at(database) is not None else database_path(database)


def _shown_address(database: str | Path) -> str:
    server = server_at(database)
    return server.shown if server is not None else str(database_path(database))


def _refuse_missing(source: str | Path, target: str | Path) -> None:
    """Raise an error for an unknown database or a missing file: a lock would create its directory."""
    provider_of(source)
    provider_of(target)
    path = _file_of(source)
    if path is not None and not path.is_file():
        raise NoStoreError(str(path))
