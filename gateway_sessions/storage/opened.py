"""A database that is open, and nothing around it: no node, no search index."""

from __future__ import annotations

from contextlib import AsyncExitStack

from anyio.abc import TaskGroup

from gateway_sessions.resource import Resource
from gateway_sessions.storage.engine import Engine


class Opened(Resource):
    """Runs an engine for as long as the block lasts."""

    def __init__(self, engine: Engine) -> None:
        super().__init__("database")
        self.engine = engine

    async def _start(self, tasks: TaskGroup, cleanup: AsyncExitStack) -> None:
        await self.engine.start(tasks, cleanup)
