"""A database that is open, and nothing around it: no node, no search index."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from anyio.abc import TaskGroup

from gateway_sessions.core.cluster import ClusterRules
from gateway_sessions.resource import Resource
from gateway_sessions.storage.engine import Engine
from gateway_sessions.storage.engines import engine_at, reading_engine_at


class Opened(Resource):
    """Runs an engine for as long as the block lasts."""

    def __init__(self, engine: Engine) -> None:
        super().__init__("database")
        self.engine = engine

    async def _start(self, tasks: TaskGroup, cleanup: AsyncExitStack) -> None:
        await self.engine.start(tasks, cleanup)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """How databases are opened."""

    home: str | Path | None = None
    prepared_statements: bool = True
    allow_network: bool = False

    def reading(self, database: str | Path, *, patient: bool = False) -> Engine:
        """Reads it, whoever owns it."""
        return reading_engine_at(
            database, home=self.home, prepared_statements=self.prepared_statements, patient=patient
        )

    def owning(self, database: str | Path, *, patient: bool = False) -> Engine:
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
