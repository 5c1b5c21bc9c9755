"""Open a database without its store, and bring its schema up to date on request.

A database that is open, and nothing around it: no node, no search index.

Bringing a database up to date on purpose, where the login of the store may not change tables.

Opening a store does the same: whoever comes first does it under a lock, and the others find it done.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from anyio.abc import TaskGroup

from gateway_sessions.clock import SystemClock
from gateway_sessions.core.cluster import ClusterRules
from gateway_sessions.errors import NoStoreError, SchemaTooOldError
from gateway_sessions.resource import Resource
from gateway_sessions.storage.engines.protocol import Engine
from gateway_sessions.storage.engines.registry import engine_at, reading_engine_at
from gateway_sessions.storage.files.threads import in_thread
from gateway_sessions.storage.transactions.upkeep import status


class Opened(Resource):
    """Runs an engine for as long as the block lasts."""

    def __init__(self, engine: Engine) -> None:
        super().__init__("database")
        self.engine = engine

    async def _start(self, tasks: TaskGroup, cleanup: AsyncExitStack) -> None:
        await self.engine.start(tasks, cleanup)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOpening:
    """How databases are opened."""

    home: str | Path | None = None
    prepared_statements: bool = True
    allow_network: bool = False

    def reading(self, database: str | Path, *, patient: bool = False) -> Engine:
        """Reads it, whoever owns it."""
        return reading_engine_at(
            database, home=self.home, prepared_statements=self.prepared_statements, patient=patient
        )

    def for_owner(self, database: str | Path, *, patient: bool = False) -> Engine:
        """Brings it up to date, and may change it."""
        return engine_at(
            database,
            home=self.home,
            survives_power_cut=True,
            allow_network=self.allow_network,
            cluster=ClusterRules(),
            prepared_statements=self.prepared_statements,
            patient=patient,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeReport:
    """Which schema a database had, and which it has now."""

    place: str
    before: int | None
    """None: it was empty, or not there yet."""
    after: int | None
    """What it would be, of a dry run; None: nobody has looked, as there is nothing yet."""
    dry_run: bool = False

    @property
    def changed(self) -> bool:
        """Whether anything was to be done."""
        return self.before is None or self.before != self.after

    def __str__(self) -> str:
        if not self.changed:
            return f"Up to date: schema {self.after}"
        if self.before is None:
            return "Would make the tables" if self.dry_run else f"Made the tables: schema {self.after}"
        done = "Would bring" if self.dry_run else "Brought"
        return f"{done} the tables up to date: from schema {self.before} to {self.after}"


async def upgrade_schema(
    database: str | Path, opening: EngineOpening, *, dry_run: bool = False, wait: float = 0.0
) -> UpgradeReport:
    """Bring the tables of a database up to date, as opening a store in it does, and change nothing else."""
    report = await _look(await in_thread(partial(opening.reading, database)))
    if dry_run or not report.changed:
        return replace(report, dry_run=dry_run)
    engine = await in_thread(partial(opening.for_owner, database))
    async with AsyncExitStack() as stack:
        if engine.shared is None:  # on a server, the lock is in the database
            await stack.enter_async_context(engine.owned(SystemClock(), wait=wait))
        await stack.enter_async_context(Opened(engine))
        return replace(report, after=await engine.read(status.schema_version))


async def _look(reader: Engine) -> UpgradeReport:
    """What the database has, and what this program would make of it."""
    try:
        async with Opened(reader):
            found = await reader.read(status.schema_version)
    except SchemaTooOldError as error:
        return UpgradeReport(place=reader.place, before=error.found, after=error.ours)
    except NoStoreError:
        return UpgradeReport(place=reader.place, before=None, after=None)
    return UpgradeReport(place=reader.place, before=found, after=found)
