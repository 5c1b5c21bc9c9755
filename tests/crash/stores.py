"""Stores whose driver and clock the tests choose."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from gateway_sessions import Config, SessionDB, SessionStore
from gateway_sessions.ports import Clock
from gateway_sessions.runtime.duties.session_hooks import Hook
from gateway_sessions.runtime.store.database_opening import DATABASE_FILE, DatabaseOpening
from gateway_sessions.runtime.store.opening import StoreAssembly
from gateway_sessions.storage.engines.sqlite.engine import SqliteEngine
from gateway_sessions.storage.listener import DatabaseListener
from gateway_sessions.storage.tables.sql_files import Migration
from tests.raw_sql import execute_sql

OpenedStore = SessionStore
MakeDriver = Callable[[Path], SqliteEngine]


class SteppedClock:
    """Time moves when the script says so; nobody who sleeps longer than a moment wakes up again."""

    def __init__(self, now: datetime) -> None:
        self._now = now

    def now(self) -> datetime:
        return self._now

    def advance(self, **step: float) -> None:
        self._now += timedelta(**step)

    async def sleep(self, seconds: float) -> None:
        if seconds > 2:
            await asyncio.Event().wait()
        await asyncio.sleep(0.002)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrivenOpening(DatabaseOpening):
    """Opens the database of a store on a driver of the test's."""

    make_driver: MakeDriver

    async def open(self, cleanup: AsyncExitStack, listener: DatabaseListener) -> SessionDB:
        engine = self.make_driver(self.home / DATABASE_FILE)
        return await cleanup.enter_async_context(
            SessionDB(engine, self.clock, wait=self.wait, listener=listener)
        )


class DrivenStore(SessionStore):
    """A store around a driver of the test's."""

    make_driver: MakeDriver = SqliteEngine

    def _make_assembly(self) -> StoreAssembly:
        assembly = super()._make_assembly()
        plain = {field.name: getattr(assembly.database, field.name) for field in fields(DatabaseOpening)}
        return replace(assembly, database=DrivenOpening(**plain, make_driver=self.make_driver))


def driven_store(
    home: Path,
    make_driver: MakeDriver,
    config: Config | None = None,
    *,
    clock: Clock,
    hooks: Iterable[Hook] = (),
    wait: float = 0.0,
) -> DrivenStore:
    """A store around a driver of the test's; open it with `async with`."""
    store = DrivenStore.open(home, config or Config(timezone="UTC"), clock=clock, hooks=hooks, wait=wait)
    store.make_driver = make_driver
    return store


def open_store(
    home: Path,
    config: Config,
    *,
    clock: Clock,
    hooks: Iterable[Hook] = (),
    migrations: Sequence[Migration] = (),
) -> SessionStore:
    """The store as users open it, unless it has to migrate further than the package can."""
    if not migrations:
        return SessionStore.open(home, config, clock=clock, hooks=hooks)
    return driven_store(
        home, lambda path: SqliteEngine(path, migrations=migrations), config, clock=clock, hooks=hooks
    )


async def query_store(home: Path, config: Config, sql: str) -> list[tuple[Any, ...]]:
    """What a query finds in the database of a store, asked beside it."""
    if (address := config.sessiondb.url) is None:
        return execute_sql(home / DATABASE_FILE, sql)
    from tests.cluster.databases import database_at  # noqa: PLC0415 -- it loads the drivers of all servers

    return [tuple(row) for row in await database_at(address).fetch(address, sql)]
