"""What the owner of a store does for other programs of the same user: it carries out what they ask for."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
from anyio.abc import TaskGroup

from gateway_sessions.core.control_frames import PROTOCOL, Greeting
from gateway_sessions.core.vitals import AgentCounts, LoopLag
from gateway_sessions.errors import UnsupportedStorageError
from gateway_sessions.ports import Clock
from gateway_sessions.runtime.loop_watch import LoopWatch
from gateway_sessions.runtime.operations import operation, part_that_offers
from gateway_sessions.storage.control_server import ControlServer
from gateway_sessions.storage.database import SessionDB
from gateway_sessions.storage.in_thread import in_thread
from gateway_sessions.storage.verbs import status

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerStatus:
    """How the owner of a store is."""

    pid: int
    program: str
    """The version of gateway_sessions."""
    schema: int
    database: str
    epoch: int
    """How often the store has been opened."""
    generation: int
    """Of what sessions.json shows."""
    lanes: int
    """How many have a session."""
    opened_at: datetime
    uptime_seconds: float
    draining: bool
    """Whether another process has asked this one to hand over."""
    agents: AgentCounts | None = None
    """Of the gateway that runs on this store, if one does; a program of an earlier version tells nothing."""
    loop: LoopLag | None = None
    """Of its event loop; None as long as nothing is known."""


class Control:
    """Listens in the home of a store while the store is open."""

    def __init__(self, home: Path, db: SessionDB, clock: Clock, store: object) -> None:
        self._home = home
        self._db = db
        self._clock = clock
        self._opened_at = clock.now()
        self._parts: Mapping[str, Any] = {"control": self, "store": store, "db": db}
        self._server: ControlServer | None = None
        self._loop = LoopWatch()
        self.agents: Callable[[], AgentCounts] | None = None
        """Counts the agents of a gateway on this store, as long as there is one."""
        self.drain_requested = asyncio.Event()
        """Set when another process would like to take over."""
        self.unavailable: str | None = None
        """Why nobody can ask this owner, if that is so."""

    async def status(self) -> OwnerStatus:
        """How this owner is."""
        return OwnerStatus(
            pid=os.getpid(),
            program=await in_thread(_program_version),
            schema=await self._db.read(status.schema_version),
            database=self._db.place,
            epoch=self._db.opening.epoch,
            generation=self._db.generation,
            lanes=await self._db.read(status.count_lanes),
            opened_at=self._opened_at,
            uptime_seconds=(self._clock.now() - self._opened_at).total_seconds(),
            draining=self.drain_requested.is_set(),
            agents=None if self.agents is None else self.agents(),
            loop=self._loop.lag,
        )

    async def drain(self) -> None:
        """Tell the program that has the store open that another one waits for it. Nothing is forced."""
        if not self.drain_requested.is_set():
            logger.info("another process would like to take over", extra={"action": "drain_requested"})
        self.drain_requested.set()

    async def start(self, tasks: TaskGroup, cleanup: AsyncExitStack) -> None:
        """Begin to listen in *tasks*, if this place allows it; *cleanup* ends it."""
        greeting = Greeting(
            protocol=PROTOCOL,
            program=await in_thread(_program_version),
            schema=await self._db.read(status.schema_version),
            pid=os.getpid(),
            database=self._db.place,
        )
        server = ControlServer(self._home, greeting, self._carry_out)
        try:
            await server.start(tasks, cleanup)
        except (OSError, UnsupportedStorageError) as error:
            self.unavailable = str(error)
            facts = {"action": "control_unavailable", "problem": self.unavailable}
            logger.warning("nobody can act through this owner of the store", extra=facts)
        else:
            self._server = server
            tasks.start_soon(self._loop.run)

    async def finish(self) -> None:
        """Take no more requests; those under way may come to an end."""
        if self._server is not None:
            await self._server.finish()

    async def _carry_out(self, name: str, given: msgspec.Raw) -> object:
        part = self._parts[part_that_offers(name)]
        asked = operation(part.__class__, name)
        return await getattr(part, name)(**asked.checked(given))


@cache
def _program_version() -> str:
    return version("gateway-sessions")
