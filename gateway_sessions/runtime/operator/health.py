"""Health checks of a store, from its disk to its dead letters, each with advice."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from gateway_sessions._process.clock import SystemClock
from gateway_sessions.config import Config, SessionDBConfig
from gateway_sessions.core.notices.human_units import MEND_FILE, MEND_SERVER, ago, counted, size_with_unit
from gateway_sessions.core.progress import OnProgress
from gateway_sessions.errors import (
    ControlError,
    GatewaySessionsError,
    MissingRightError,
    NoStoreError,
    SchemaTooOldError,
    StorageUnavailableError,
    UnsupportedStorageError,
)
from gateway_sessions.runtime.operator.store_client import StoreClient, connect
from gateway_sessions.storage.control.client import connect_to_owner
from gateway_sessions.storage.engines.registry import OWN_PACKAGE, all_providers
from gateway_sessions.storage.files.private_files import describe_ownership, is_exposed
from gateway_sessions.storage.files.threads import in_thread
from gateway_sessions.storage.maintenance.repair import DATABASE, check_store, newest_copy
from gateway_sessions.storage.tables import nodes
from gateway_sessions.storage.transactions.queue import outbox
from gateway_sessions.storage.transactions.queue import waiting as waiting_turns
from gateway_sessions.storage.transactions.sessions import hooks
from gateway_sessions.storage.transactions.upkeep import status

LITTLE_ROOM: Final = 1_000_000_000
"""Bytes on the disk below which somebody should be told."""
OLD_COPY: Final = timedelta(days=2)
MOST: Final = 100
_OWN_FILES: Final = ("sessions.", "search.db", "restart_counts.json", "clean_shutdown")
NAME_IT: Final = "name the store's directory: --home DIR"
_NextSteps: TypeAlias = tuple[tuple[type[GatewaySessionsError], str], ...]
_NEXT: Final[_NextSteps] = (
    (NoStoreError, "start the gateway once: it makes the store"),
    (SchemaTooOldError, "bring it up to date: gateway-sessions sessiondb upgrade"),
    (UnsupportedStorageError, "see sessiondb in the configuration"),
)
"""The advice for each error of a database that could not be opened. The first class that fits counts."""
_NEXT_IN_FILE: Final[_NextSteps] = (
    *_NEXT,
    (StorageUnavailableError, "see that it can be reached, then look again"),
)
_NEXT_ON_SERVER: Final[_NextSteps] = (
    *_NEXT,
    (MissingRightError, "grant it"),
    (StorageUnavailableError, "see whether the server runs, and whether its address and the login are right"),
)


class Health(StrEnum):
    """The health of one thing that was checked."""

    GOOD = "good"
    WARNING = "warning"  # it works, and will not for ever, or not as it should
    BAD = "bad"  # it does not work


@dataclass(frozen=True, slots=True)
class Symptom:
    """One thing that was looked at."""

    what: str
    health: Health
    told: str
    what_next: str | None = None


async def examine_store(
    home: Path, config: Config, *, thorough: bool = True, progress: OnProgress | None = None
) -> AsyncIterator[Symptom]:
    """Look at everything around a store, the ground first. It may be in use meanwhile."""
    now = SystemClock().now()
    yield Symptom("SQLite", Health.GOOD, sqlite3.sqlite_version)
    yield await in_thread(_check_databases)
    yield Symptom("Time zone", Health.GOOD, (await in_thread(config.policy_book)).zone_name)
    server = config.sessiondb.url if config.sessiondb.is_server else None
    async for one in _check_home(home, on_server=server is not None):
        yield one
    if server is None and not await in_thread(home.is_dir):
        return
    try:
        async with connect(home, config) as client:
            async for one in _check_content(client):
                yield one
            if server is not None:
                yield await _check_nodes(client)
    except GatewaySessionsError as error:
        yield Symptom("Database", Health.BAD, str(error), _advice_for(error, on_server=server is not None))
        return
    if config.sessiondb.url is None:
        yield await in_thread(partial(_check_backups, home, now))
    if thorough and (server is not None or config.sessiondb.url is None):
        yield await _check_soundness(home, config.sessiondb, progress)


def _advice_for(error: GatewaySessionsError, *, on_server: bool) -> str:
    """Return the advice for a database that could not be opened."""
    for kind, next_step in _NEXT_ON_SERVER if on_server else _NEXT_IN_FILE:
        if isinstance(error, kind):
            return next_step
    return MEND_SERVER if on_server else MEND_FILE


def _check_databases() -> Symptom:
    """The kinds of databases that are installed."""
    found = all_providers()
    broken = [f"{one.name} cannot be used: {one.problem}" for one in found if one.problem]
    if broken:
        return Symptom("Databases", Health.WARNING, "; ".join(broken), "update that package, or remove it")
    others = [f"{one.name} of {one.package}" for one in found if one.package != OWN_PACKAGE]
    ours = [one.name for one in found if one.package == OWN_PACKAGE]
    return Symptom("Databases", Health.GOOD, ", ".join(ours + others))


def _check_directory(home: Path) -> Symptom:
    mode = home.stat().st_mode
    if not os.access(home, os.W_OK | os.X_OK):
        return Symptom("Directory", Health.BAD, f"{home} cannot be written", "check its owner and mode")
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        told = f"{home} can be entered by others (mode {stat.S_IMODE(mode):o})"
        return Symptom("Directory", Health.WARNING, told, f"chmod 700 {home}")
    return Symptom("Directory", Health.GOOD, str(home))


async def _check_home(home: Path, *, on_server: bool) -> AsyncIterator[Symptom]:
    """Check the directory of a store, its files, the room on the disk and the owner."""
    if not await in_thread(home.is_dir):
        if on_server:
            yield Symptom("Directory", Health.GOOD, f"{home} is made when the store is opened here")
        else:
            yield Symptom("Directory", Health.BAD, f"{home} is not there", NAME_IT)
        return
    yield await in_thread(partial(_check_directory, home))
    if (files := await in_thread(partial(_check_files, home))) is not None:
        yield files
    yield await in_thread(partial(_check_disk_room, home))
    yield await _check_owner(home, on_server=on_server)


def _check_files(home: Path) -> Symptom | None:
    """Files of the store that others can read, or that belong to somebody else than the directory does."""
    wrong = [
        one
        for one in sorted(home.iterdir())
        if one.name.lstrip(".").startswith(_OWN_FILES) and one.is_file() and is_exposed(one)
    ]
    if not wrong:
        return None
    more = f", and {counted(len(wrong) - 1, 'other file')}" if len(wrong) > 1 else ""
    told, _, next_step = describe_ownership(wrong[0]).partition("; ")
    usable = all(os.access(one, os.R_OK | os.W_OK) for one in wrong)
    health = Health.WARNING if usable else Health.BAD
    return Symptom("Files", health, f"{wrong[0]}: {told}{more}", next_step)


def _check_disk_room(home: Path) -> Symptom:
    free = shutil.disk_usage(home).free
    database = home / DATABASE
    needed = max(LITTLE_ROOM, 2 * database.stat().st_size if database.is_file() else 0)
    if free < needed:
        return Symptom(
            "Room",
            Health.WARNING,
            f"{size_with_unit(free)} are free",
            "free some: copies of the database need it",
        )
    return Symptom("Room", Health.GOOD, f"{size_with_unit(free)} are free")


async def _check_owner(home: Path, *, on_server: bool) -> Symptom:
    try:
        async with connect_to_owner(home) as owner:
            if owner is None:
                told = "nobody has the store open" + (" in that directory" if on_server else "")
                return Symptom("Owner", Health.GOOD, told)
            told = f"process {owner.greeting.pid}, version {owner.greeting.program}, answers"
            return Symptom("Owner", Health.GOOD, told)
    except ControlError as error:
        return Symptom("Owner", Health.BAD, str(error), "look at that process, or start it anew")


async def _check_nodes(client: StoreClient) -> Symptom:
    """Check the nodes that have a database on a server open."""
    found = await client.db.read(nodes.all_nodes)
    silent = [one.name for one in found if one.silent]
    told = counted(len(found), "process has it open", "processes have it open")
    if silent:
        told = f"{told}, and some were not heard: {', '.join(silent)}"
        return Symptom("Nodes", Health.WARNING, told, "the others take over what they did; see what they log")
    return Symptom("Nodes", Health.GOOD, told)


async def _check_content(client: StoreClient) -> AsyncIterator[Symptom]:
    read = client.db.read
    version, lanes = await read(status.schema_version), await read(status.count_lanes)
    yield Symptom("Database", Health.GOOD, f"{client.db.place}, schema {version}, {counted(lanes, 'lane')}")
    waiting = sum(count for count, _ in (await read(waiting_turns.waiting_lanes)).values())
    yield Symptom("Queue", Health.GOOD, f"{counted(waiting, 'turn')} {'waits' if waiting == 1 else 'wait'}")
    letters = len(await read(partial(waiting_turns.dead_letters, MOST)))
    replies = len(await read(partial(outbox.dead_replies, MOST)))
    calls = len(await read(partial(hooks.dead_hook_calls, MOST)))
    if letters or replies:
        told = f"{counted(letters, 'message')} and {counted(replies, 'reply', 'replies')}"
        yield Symptom("Given up", Health.WARNING, told, "gateway-sessions queue list --dead")
    else:
        yield Symptom("Given up", Health.GOOD, "nothing")
    if calls:
        yield Symptom(
            "Hooks", Health.WARNING, f"{counted(calls, 'call')} given up", "store.hooks.requeue tries again"
        )


def _check_backups(home: Path, now: datetime) -> Symptom:
    newest = newest_copy(home)
    if newest is None or now - newest > OLD_COPY:
        told = f"the newest is of {ago(newest, now)}" if newest else "there is none yet"
        return Symptom("Copies", Health.WARNING, told, "a gateway that runs takes one every day")
    return Symptom("Copies", Health.GOOD, f"the newest is of {ago(newest, now)}")


async def _check_soundness(home: Path, database: SessionDBConfig, progress: OnProgress | None) -> Symptom:
    server = database.url if database.is_server else None
    try:
        report = await check_store(
            home, server=server, prepared_statements=database.prepared_statements, progress=progress
        )
    except StorageUnavailableError as error:
        return Symptom("Content", Health.BAD, str(error), "try again: gateway-sessions sessiondb check")
    if report.healthy:
        return Symptom("Content", Health.GOOD, "all tables agree")
    first, *others = report.found
    more = f", and {counted(len(others), 'other thing')}" if others else ""
    return Symptom("Content", Health.BAD, f"{first}{more}", MEND_SERVER if server else MEND_FILE)
