"""A client for a store: it reads the database directly and asks the owner for changes."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio

from gateway_sessions._process.clock import SystemClock
from gateway_sessions.config import Config
from gateway_sessions.core.control_protocol import encode
from gateway_sessions.core.identity.scope import Scope
from gateway_sessions.core.progress import OnProgress
from gateway_sessions.core.queue.items import QueuedMessage
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.errors import ControlError, InvalidInputError, StoreBusyError
from gateway_sessions.ports import Clock
from gateway_sessions.runtime.observability.explain import Explanation, Rules, explain_lane
from gateway_sessions.runtime.store.control import (
    Control,
    Operation,
    OwnerStatus,
    describe_operation,
    find_part_of_operation,
)
from gateway_sessions.runtime.store.database_opening import locate_database
from gateway_sessions.storage.control.client import connect_to_owner
from gateway_sessions.storage.database import SessionDB
from gateway_sessions.storage.files.threads import in_thread
from gateway_sessions.storage.tables import entries, nodes
from gateway_sessions.storage.transactions.queue import waiting
from gateway_sessions.storage.transactions.sessions import lists

if TYPE_CHECKING:
    from gateway_sessions.runtime.store.store import SessionStore

SECONDS: Final = 30.0
OPENING_SECONDS: Final = 5.0
"""The time for which an owner may not answer, because it is just opening or closing the store."""
RETRY_SECONDS: Final = 0.1

PAGE: Final = 100


def is_cut_off(epoch: int | None, alive: frozenset[int] | None) -> bool:
    """Return whether the process that ran a turn is gone; False if nobody knows which processes live."""
    return epoch is not None and alive is not None and epoch not in alive


class StoreClient:
    """Reads a store and changes it through its owner, for command lines and dashboards. See `connect`."""

    def __init__(self, home: Path, config: Config, clock: Clock, db: SessionDB) -> None:
        self.home = home
        self.db = db
        """The database, for reading only."""
        self._config = config
        self._clock = clock

    async def get_session(self, session_key: str) -> SessionEntry | None:
        """The lane's entry as it is, read directly."""
        return await self.db.read(partial(entries.load, session_key))

    async def list_sessions(
        self, *, scope: Scope, limit: int = PAGE, after: SessionEntry | None = None
    ) -> list[SessionEntry]:
        """Return the entries that *scope* may see, the latest written first, read directly."""
        if limit < 1:
            problem = f"limit = {limit} must be 1 or more"
            raise InvalidInputError(problem)
        return await self.db.read(partial(lists.list_entries, scope, None, after, limit))

    async def owner(self) -> OwnerStatus | None:
        """Return the status of the process that has the store open; None if no process has."""
        asked = describe_operation(Control, "status")
        async with connect_to_owner(self.home) as owner:
            if owner is None:
                return None
            status: OwnerStatus = await owner.request("status", {}, asked.returns, seconds=SECONDS)
            return status

    async def living(self) -> frozenset[int] | None:
        """Return the openings of the store whose processes live; None if the owner cannot be asked."""
        if self._config.sessiondb.is_server:
            found = await self.db.read(nodes.all_nodes)
            return frozenset(one.epoch for one in found if not one.silent)
        try:
            owner = await self.owner()
        except ControlError:
            return None
        return frozenset() if owner is None else frozenset({owner.epoch})

    async def queued(self, session_key: str) -> list[QueuedMessage]:
        """Return what waits on a lane, what runs there, and what ran in a process that is gone."""
        listed = await self.db.read(partial(waiting.list_queue, session_key))
        lane = await self.db.read(partial(lists.lane_state, session_key))
        if not is_cut_off(lane.epoch, await self.living()):
            return listed
        return [replace(one, running=False, cut_off=one.running) for one in listed]

    async def explain(self, session_key: str) -> Explanation:
        """Why the lane has the session it has. The owner is asked, who knows what runs; else it is read."""
        told = await self._explain_by_owner(session_key)
        if not is_cut_off(told.lane.epoch, await self.living()):
            return told
        return replace(told, lane=replace(told.lane, running=False, cut_off=True))

    async def _explain_by_owner(self, session_key: str) -> Explanation:
        async with connect_to_owner(self.home) as owner:
            if owner is not None:
                told: Explanation = await self.do("explain", session_key=session_key)
                return _in_policy_zone(told)
        policies = await in_thread(self._config.policy_book)
        freshness = self._config.agent.gateway_auto_continue_freshness
        rules = Rules(now=self._clock.now(), policies=policies, freshness=freshness)
        return await explain_lane(self.db, session_key, rules, active_work=False)

    async def do(
        self,
        name: str,
        /,
        *,
        seconds: float = SECONDS,
        progress: OnProgress | None = None,
        **parameters: Any,
    ) -> Any:
        """Carry out an operation by its name: through the owner, or, if there is none, as the owner.

        The result is what the method of that name returns, and so are its errors. *progress* is for one
        that takes it, and hears something only if there is no other owner.
        """
        part = find_part_of_operation(name)
        holder: Any = await in_thread(partial(class_of_part, part))
        asked = describe_operation(holder, name)
        arguments = asked.parse_arguments(encode(parameters))
        watched: dict[str, Any] = {} if progress is None else {"progress": progress}
        until = anyio.current_time() + min(seconds, OPENING_SECONDS)
        while True:
            try:
                async with connect_to_owner(self.home) as owner:
                    if owner is not None:
                        return await owner.request(name, parameters, asked.returns, seconds=seconds)
                return await self._run_as_owner(part, asked, arguments | watched)
            except (ControlError, StoreBusyError) as error:
                is_final = isinstance(error, ControlError) and not error.passing
                if is_final or anyio.current_time() > until:
                    raise
            await anyio.sleep(RETRY_SECONDS)

    async def _run_as_owner(self, part: str, asked: Operation, arguments: dict[str, Any]) -> Any:
        store_class = await in_thread(_load_store_class)
        async with store_class.open(self.home, self._config, clock=self._clock, upkeep=False) as store:
            parts: dict[str, Any] = {"control": store.control, "store": store, "db": store.db}
            return await getattr(parts[part], asked.name)(**arguments)


def class_of_part(part: str) -> type[Any]:
    """The class of the part that carries an operation out."""
    holders: dict[str, type[Any]] = {"control": Control, "db": SessionDB}
    return holders[part] if part in holders else _load_store_class()


def _load_store_class() -> type[SessionStore]:
    """Loaded by a thread when it is needed: who only looks at a store starts sooner."""
    from gateway_sessions.runtime.store.store import SessionStore  # noqa: PLC0415 -- see above

    return SessionStore


@asynccontextmanager
async def connect(
    home: str | Path, config: Config | None = None, *, clock: Clock | None = None
) -> AsyncGenerator[StoreClient]:
    """A seat at the store in *home*, whoever owns it: enter it with `async with`.

    *config* has to be the one that the store is opened with: where there is no owner, it is opened with it.
    """
    where = _absolute_path(home)
    settings = config or Config()
    database, beside = locate_database(where, settings.sessiondb.url)
    time = clock or SystemClock()
    opening = partial(
        SessionDB.open_reader,
        clock=time,
        home=beside,
        prepared_statements=settings.sessiondb.prepared_statements,
        pool_size=settings.sessiondb.pool_size,
    )
    reader = await in_thread(partial(opening, database))
    async with reader as db:
        yield StoreClient(where, settings, time, db)


def _in_policy_zone(told: Explanation) -> Explanation:
    """Return the explanation in the zone of its policy: an owner's answer tells the offset only."""
    if told.policy is None or told.next_reset_at is None:
        return told
    return replace(told, next_reset_local=told.next_reset_at.astimezone(told.policy.zone))


def _absolute_path(home: str | Path) -> Path:
    return Path(home).expanduser().absolute()
