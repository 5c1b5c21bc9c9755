"""Open a database without its store, and bring its schema up to date on request.

An upgrade on request is for places where the login of the store may not change tables. Otherwise opening a
store does the same: the first process migrates under a lock, and the others find that nothing is due.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from anyio.abc import TaskGroup

from gateway_sessions._process.background import Resource
from gateway_sessions._process.clock import SystemClock
from gateway_sessions.core.cluster import ClusterRules
from gateway_sessions.errors import NoStoreError, SchemaTooOldError
from gateway_sessions.storage.engines.protocol import Engine
from gateway_sessions.storage.engines.registry import engine_at, reading_engine_at
from gateway_sessions.storage.files.threads import in_thread
from gateway_sessions.storage.transactions.upkeep import status


class RunningEngine(Resource):
    """Runs an engine until the end of a block, without a node, snapshots or a search index."""

    def __init__(self, engine: Engine) -> None:
        super().__init__("database")
        self.engine = engine

    async def _start(self, tasks: TaskGroup, cleanup: AsyncExitStack) -> None:
        await self.engine.start(tasks, cleanup)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOpening:
    """Holds the settings with which databases are opened."""

    home: str | Path | None = None
    prepared_statements: bool = True
    allow_network: bool = False

    def reading_engine(self, database: str | Path, *, patient: bool = False) -> Engine:
        """Return an engine that only reads the database, whoever owns it."""
        return reading_engine_at(
            database, home=self.home, prepared_statements=self.prepared_statements, patient=patient
        )

    def writing_engine(self, database: str | Path, *, patient: bool = False) -> Engine:
        """Return an engine that migrates the database and may change it."""
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
    """Reports the schema of a database before and after an upgrade."""

    place: str
    before: int | None
    """None if the database was empty, or not there yet."""
    after: int | None
    """The schema now; of a dry run, the schema that an upgrade would lead to; None if a dry run found no
    database."""
    dry_run: bool = False

    @property
    def changed(self) -> bool:
        """Return True if migrations were due."""
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
    """Migrate the tables of a database, as opening a store in it does, and change nothing else."""
    report = await _compare_schemas(await in_thread(partial(opening.reading_engine, database)))
    if dry_run or not report.changed:
        return replace(report, dry_run=dry_run)
    engine = await in_thread(partial(opening.writing_engine, database))
    async with AsyncExitStack() as stack:
        if engine.shared is None:  # a server has a lock for migrations; a file is locked by its owner
            await stack.enter_async_context(engine.owned(SystemClock(), wait=wait))
        await stack.enter_async_context(RunningEngine(engine))
        return replace(report, after=await engine.read(status.schema_version))


async def _compare_schemas(reader: Engine) -> UpgradeReport:
    """Report the schema of the database, and the one that this program would migrate it to."""
    try:
        async with RunningEngine(reader):
            found = await reader.read(status.schema_version)
    except SchemaTooOldError as error:
        return UpgradeReport(place=reader.place, before=error.found, after=error.ours)
    except NoStoreError:
        return UpgradeReport(place=reader.place, before=None, after=None)
    return UpgradeReport(place=reader.place, before=found, after=found)
