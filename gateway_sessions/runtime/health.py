"""How a store is, from the disk it lies on to what it has given up: each fact with what to do about it."""

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
from typing import Final

from gateway_sessions.clock import SystemClock
from gateway_sessions.config import Config
from gateway_sessions.core.telling import ago, size
from gateway_sessions.errors import (
    ControlError,
    GatewaySessionsError,
    NoStoreError,
    StorageUnavailableError,
    UnsupportedStorageError,
)
from gateway_sessions.runtime.seat import Seat, connect
from gateway_sessions.storage.control_client import connected
from gateway_sessions.storage.engines import OWN_PACKAGE, all_providers
from gateway_sessions.storage.in_thread import in_thread
from gateway_sessions.storage.repair import DATABASE, check_store, newest_copy
from gateway_sessions.storage.verbs import hooks, outbox, queue, status

_REPAIR: Final = "stop the gateway: gateway-sessions sessiondb repair"
_REACH: Final = "see that it can be reached, then look again"
LITTLE_ROOM: Final = 1_000_000_000
"""Bytes on the disk below which somebody should be told."""
OLD_COPY: Final = timedelta(days=2)
MOST: Final = 100


class Health(StrEnum):
    """How one thing is."""

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


async def examine(home: Path, config: Config, *, thorough: bool = True) -> AsyncIterator[Symptom]:
    """Look at everything around a store, the ground first. It may be in use meanwhile."""
    now = SystemClock().now()
    yield Symptom("SQLite", Health.GOOD, sqlite3.sqlite_version)
    yield await in_thread(_kinds)
    yield Symptom("Time zone", Health.GOOD, (await in_thread(config.policy_book)).zone_name)
    if not await in_thread(home.is_dir):
        yield Symptom(
            "Directory", Health.BAD, f"{home} is not there", "name the store's directory: --home DIR"
        )
        return
    yield await in_thread(partial(_directory, home))
    yield await in_thread(partial(_room, home))
    yield await _owner(home)
    try:
        async with connect(home, config) as seat:
            async for one in _content(seat):
                yield one
    except NoStoreError as error:
        yield Symptom("Database", Health.BAD, str(error), "start the gateway once: it makes the store")
        return
    except UnsupportedStorageError as error:
        yield Symptom("Database", Health.BAD, str(error), "see sessiondb in the configuration")
        return
    except GatewaySessionsError as error:
        reachable = not isinstance(error, StorageUnavailableError)
        yield Symptom("Database", Health.BAD, str(error), _REPAIR if reachable else _REACH)
        return
    if not config.sessiondb.is_server and config.sessiondb.url is None:
        yield await in_thread(partial(_copies, home, now))
        if thorough:
            yield await _soundness(home)


def _kinds() -> Symptom:
    """The kinds of databases that are installed."""
    found = all_providers()
    broken = [f"{one.name} cannot be used: {one.problem}" for one in found if one.problem]
    if broken:
        return Symptom("Databases", Health.WARNING, "; ".join(broken), "update that package, or remove it")
    others = [f"{one.name} of {one.package}" for one in found if one.package != OWN_PACKAGE]
    ours = [one.name for one in found if one.package == OWN_PACKAGE]
    return Symptom("Databases", Health.GOOD, ", ".join(ours + others))


def _directory(home: Path) -> Symptom:
    mode = home.stat().st_mode
    if not os.access(home, os.W_OK | os.X_OK):
        return Symptom("Directory", Health.BAD, f"{home} cannot be written", "check its owner and mode")
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        told = f"{home} can be entered by others (mode {stat.S_IMODE(mode):o})"
        return Symptom("Directory", Health.WARNING, told, f"chmod 700 {home}")
    return Symptom("Directory", Health.GOOD, str(home))


def _room(home: Path) -> Symptom:
    free = shutil.disk_usage(home).free
    database = home / DATABASE
    needed = max(LITTLE_ROOM, 2 * database.stat().st_size if database.is_file() else 0)
    if free < needed:
        return Symptom(
            "Room", Health.WARNING, f"{size(free)} are free", "free some: copies of the database need it"
        )
    return Symptom("Room", Health.GOOD, f"{size(free)} are free")


async def _owner(home: Path) -> Symptom:
    try:
        async with connected(home) as owner:
            if owner is None:
                return Symptom("Owner", Health.GOOD, "nobody has the store open")
            told = f"process {owner.greeting.pid}, version {owner.greeting.program}, answers"
            return Symptom("Owner", Health.GOOD, told)
    except ControlError as error:
        return Symptom("Owner", Health.BAD, str(error), "look at that process, or start it anew")


async def _content(seat: Seat) -> AsyncIterator[Symptom]:
    read = seat.db.read
    version, lanes = await read(status.schema_version), await read(status.count_lanes)
    yield Symptom("Database", Health.GOOD, f"{seat.db.place}, schema {version}, {lanes:,} lanes")
    waiting = sum(count for count, _ in (await read(queue.waiting_lanes)).values())
    yield Symptom("Queue", Health.GOOD, f"{waiting:,} turns wait")
    letters = len(await read(partial(queue.dead_letters, MOST)))
    replies = len(await read(partial(outbox.dead, MOST)))
    calls = len(await read(partial(hooks.dead, MOST)))
    if letters or replies:
        told = f"{letters} messages and {replies} replies"
        yield Symptom("Given up", Health.WARNING, told, "gateway-sessions queue list --dead")
    else:
        yield Symptom("Given up", Health.GOOD, "nothing")
    if calls:
        yield Symptom(
            "Hooks", Health.WARNING, f"{calls} calls were given up", "store.hooks.requeue tries again"
        )


def _copies(home: Path, now: datetime) -> Symptom:
    newest = newest_copy(home)
    if newest is None or now - newest > OLD_COPY:
        told = f"the newest is of {ago(newest, now)}" if newest else "there is none yet"
        return Symptom("Copies", Health.WARNING, told, "a gateway that runs takes one every day")
    return Symptom("Copies", Health.GOOD, f"the newest is of {ago(newest, now)}")


async def _soundness(home: Path) -> Symptom:
    report = await check_store(home)
    if report.healthy:
        return Symptom("Content", Health.GOOD, "all tables agree")
    first, *others = report.found
    more = f", and {len(others)} other things" if others else ""
    next_step = _REPAIR
    return Symptom("Content", Health.BAD, f"{first}{more}", next_step)
