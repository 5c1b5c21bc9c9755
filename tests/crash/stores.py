"""Stores whose driver and clock the tests choose."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack, closing
from dataclasses import fields
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from anyio.abc import TaskGroup

from gateway_sessions import Config, SessionDB, SessionStore
from gateway_sessions.ports import Clock
from gateway_sessions.runtime.duties.hooks import Hook
from gateway_sessions.runtime.store.database_news import DatabaseNews
from gateway_sessions.runtime.store.opening import DATABASE_FILE, Assembly
from gateway_sessions.storage.engines.sqlite.engine import SqliteEngine
from gateway_sessions.storage.tables.sql_files import Migration

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


class DrivenAssembly(Assembly):
    """Puts a store together around a driver of the test's."""

    make_driver: MakeDriver = SqliteEngine

    async def _open_database(self, cleanup: AsyncExitStack, news: DatabaseNews) -> SessionDB:
        path = self.home / DATABASE_FILE
        return await cleanup.enter_async_context(
            SessionDB(self.make_driver(path), self.clock, wait=self.options.wait, listener=news)
        )


class DrivenStore(SessionStore):
    """A store around a driver of the test's."""

    make_driver: MakeDriver = SqliteEngine

    async def _start(self, tasks: TaskGroup, cleanup: AsyncExitStack) -> None:
        parts = {part.name: self._part(part.name) for part in fields(Assembly)}
        assembly = type("_Driven", (DrivenAssembly,), {"make_driver": staticmethod(self.make_driver)})(
            **parts
        )
        self._opened = await assembly.run(tasks, cleanup)

    def _part(self, name: str) -> object:
        """Return what `SessionStore` gives its assembly under that name: an attribute, or a method."""
        attributes = vars(self)
        private = f"_{name}"
        return (
            attributes[private]
            if private in attributes
            else getattr(self, name, getattr(self, private, None))
        )


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


async def ask(home: Path, config: Config, sql: str) -> list[tuple[Any, ...]]:
    """What a query finds in the database of a store, asked beside it."""
    if (address := config.sessiondb.url) is None:
        with closing(sqlite3.connect(home / DATABASE_FILE)) as database:
            return database.execute(sql).fetchall()
    from tests.cluster.databases import database_at  # noqa: PLC0415 -- it loads the drivers of all servers

    return [tuple(row) for row in await database_at(address).fetch(address, sql)]
