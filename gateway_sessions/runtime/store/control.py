"""Operations that other programs may ask of the owner through the control socket, and its status.

The owner offers a closed table of methods to programs of the same user. To offer one more, add its name to
the table. Requests and answers are checked against the annotations of the method.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Protocol, get_args, get_origin, get_type_hints

import msgspec
from anyio.abc import TaskGroup

from gateway_sessions._process.installed_packages import program_version
from gateway_sessions.core.control_protocol import PROTOCOL, Greeting, decode
from gateway_sessions.core.process_load import AgentCounts, LoopLag
from gateway_sessions.errors import InvalidInputError, UnsupportedStorageError
from gateway_sessions.ports import Clock
from gateway_sessions.runtime.duties.loop_lag import LoopWatch
from gateway_sessions.storage.control.server import ControlServer
from gateway_sessions.storage.database import SessionDB
from gateway_sessions.storage.files.threads import in_thread
from gateway_sessions.storage.transactions.upkeep import status

OFFERED: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "control": ("status", "drain"),
        "store": (
            "get_session",
            "explain",
            "list_sessions",
            "lookup_by_session_id",
            "update_session",
            "reset_session",
            "undo_reset",
            "switch_session",
            "suspend_session",
            "mark_resume_pending",
            "clear_resume_pending",
            "suspend_recently_active",
            "prune_old_entries",
            "set_model_override",
            "set_reset_policy",
            "set_busy_mode",
            "set_zone",
            "queue_depth",
            "list_queued",
            "cancel_queued",
            "clear_queue",
            "move_queued",
            "stop_turn",
            "dead_letters",
            "requeue",
            "dead_replies",
            "retry_reply",
            "erase",
            "was_erased",
            "flush",
        ),
        "db": (
            "end_session",
            "reopen_session",
            "set_session_pinned",
            "set_session_archived",
            "set_session_title",
            "rewind_session",
            "restore_rewound",
            "clear_messages",
            "delete_session",
            "prune_sessions",
            "vacuum",
            "optimise",
            "rebuild_search_index",
        ),
    }
)
"""The names, by the part of an open store whose methods they are."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One method that can be asked for."""

    name: str
    parameters: type[Any]
    """A structure with a field for each parameter."""
    returns: Any

    def parse_arguments(self, given: bytes | msgspec.Raw) -> dict[str, Any]:
        """The arguments that a JSON object holds; `InvalidInputError` if the method does not take them."""
        try:
            return _struct_to_dict(decode(given, self.parameters))
        except InvalidInputError as error:
            problem = f"{self.name}: {error}"
            raise InvalidInputError(problem) from error


def find_part_of_operation(name: str) -> str:
    """Return the part of a store that carries out an operation; `InvalidInputError` if none does."""
    for part, names in OFFERED.items():
        if name in names:
            return part
    known = [one for names in OFFERED.values() for one in names]
    close = get_close_matches(name, known, 1)
    problem = f"there is no operation {name!r}" + (f"; did you mean {close[0]!r}?" if close else "")
    raise InvalidInputError(problem)


@cache
def describe_operation(holder: Any, name: str) -> Operation:
    """The operation that a method of the class *holder* is."""
    method = getattr(holder, name)
    hints = get_type_hints(method)
    fields: list[Any] = []
    for parameter in list(inspect.signature(method).parameters.values())[1:]:
        if _is_callable_type(hints[parameter.name]):
            continue
        field = (parameter.name, hints[parameter.name])
        fields.append(field if parameter.default is parameter.empty else (*field, parameter.default))
    parameters = msgspec.defstruct(name, fields, kw_only=True, forbid_unknown_fields=True)
    return Operation(name, parameters, hints["return"])


def _is_callable_type(hint: Any) -> bool:
    """Return whether a parameter takes a function, which no request can carry."""
    return any(get_origin(one) is Callable for one in (hint, *get_args(hint)))


def _struct_to_dict(given: Any) -> dict[str, Any]:
    return {name: getattr(given, name) for name in given.__struct_fields__}


logger: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerStatus:
    """The status of the owner of a store."""

    pid: int
    program: str
    """The version of gateway_sessions."""
    schema: int
    database: str
    epoch: int
    """The number of times that the store has been opened."""
    generation: int
    """The generation that sessions.json shows."""
    lanes: int
    """The number of lanes that have a session."""
    opened_at: datetime
    uptime_seconds: float
    draining: bool
    """Whether another process has asked this one to hand over."""
    agents: AgentCounts | None = None
    """Agents of the gateway on this store, if one runs; a program of an earlier version tells nothing."""
    loop: LoopLag | None = None
    """The lag of the owner's event loop; None until it was measured."""


class WarmAgents(Protocol):
    """The agents that a gateway keeps between turns."""

    @property
    def counts(self) -> AgentCounts:
        """What there is now."""
        ...

    def evict_all(self) -> None:
        """Let go of all of them."""
        ...


class AgentsOfGateway:
    """The agents of the gateway on a store, as long as there is one."""

    def __init__(self) -> None:
        self._agents: WarmAgents | None = None

    def attach(self, agents: WarmAgents) -> None:
        """A gateway begins to work on the store."""
        self._agents = agents

    def detach(self) -> None:
        """The gateway has ended."""
        self._agents = None

    @property
    def counts(self) -> AgentCounts | None:
        """What there is now; None without a gateway."""
        return None if self._agents is None else self._agents.counts

    def evict_all(self) -> None:
        """Let go of all of them: nobody may remember what was erased."""
        if self._agents is not None:
            self._agents.evict_all()


class Control:
    """Listens in the home of a store while the store is open."""

    def __init__(
        self, home: Path, db: SessionDB, clock: Clock, store: object, agents: AgentsOfGateway
    ) -> None:
        self._home = home
        self._db = db
        self._clock = clock
        self._opened_at = clock.now()
        self._parts: Mapping[str, Any] = {"control": self, "store": store, "db": db}
        self._server: ControlServer | None = None
        self._loop = LoopWatch()
        self.agents: AgentsOfGateway = agents
        self.drain_requested: asyncio.Event = asyncio.Event()
        """Set when another process would like to take over."""
        self.unavailable: str | None = None
        """Why nobody can ask this owner, if that is so."""

    async def status(self) -> OwnerStatus:
        """Return the status of this owner."""
        return OwnerStatus(
            pid=os.getpid(),
            program=await in_thread(program_version),
            schema=await self._db.read(status.schema_version),
            database=self._db.place,
            epoch=self._db.ownership.opening.epoch,
            generation=self._db.generation.current,
            lanes=await self._db.read(status.count_lanes),
            opened_at=self._opened_at,
            uptime_seconds=(self._clock.now() - self._opened_at).total_seconds(),
            draining=self.drain_requested.is_set(),
            agents=self.agents.counts,
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
            program=await in_thread(program_version),
            schema=await self._db.read(status.schema_version),
            pid=os.getpid(),
            database=self._db.place,
        )
        server = ControlServer(self._home, greeting, self._carry_out_request)
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

    async def _carry_out_request(self, name: str, given: msgspec.Raw) -> object:
        part = self._parts[find_part_of_operation(name)]
        asked = describe_operation(part.__class__, name)
        return await getattr(part, name)(**asked.parse_arguments(given))
