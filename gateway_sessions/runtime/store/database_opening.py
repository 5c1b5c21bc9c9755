"""The directory and the database of a store: their place, and the opening of the database."""

from __future__ import annotations

import logging
import os
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from gateway_sessions.config import Config, Durability
from gateway_sessions.errors import InvalidInputError, UnsupportedStorageError
from gateway_sessions.ports import Clock
from gateway_sessions.storage.database import SessionDB
from gateway_sessions.storage.engines.registry import database_path, engine_at, home_of_server, server_at
from gateway_sessions.storage.files.atomic_file import read_whole_file, remove_file, write_atomically
from gateway_sessions.storage.files.private_files import refuse_foreign_link
from gateway_sessions.storage.files.threads import in_thread
from gateway_sessions.storage.home import own_home, prepare_home
from gateway_sessions.storage.listener import DatabaseListener

logger: Final = logging.getLogger(__name__)

DATABASE_FILE: Final = "sessions.db"
CONFIG_NOTE: Final = "sessions.config.path"
"""Holds the path of the owner's configuration, so that nobody has to name it again who looks at the store."""


def noted_config_file(home: Path) -> Path | None:
    """Return the configuration file that the last owner of a store used, if that file is still there."""
    try:
        refuse_foreign_link(home / CONFIG_NOTE)
        note = read_whole_file(home / CONFIG_NOTE)
        path = None if note is None else Path(os.fsdecode(note))
        return path if path is not None and path.is_file() else None
    except (OSError, ValueError, UnsupportedStorageError):
        return None


def note_config_file(home: Path, file: Path | None) -> None:
    """Write down for other programs which file configures the owner of a store; None: there is none."""
    try:
        if file is None:
            remove_file(home / CONFIG_NOTE)
        else:
            write_atomically(home / CONFIG_NOTE, os.fsencode(file))
    except (OSError, UnsupportedStorageError) as error:
        facts = {"action": "file_failed", "problem": str(error)}
        logger.warning("a file could not be used", extra=facts)


def locate_store(path: str | Path, config: Config) -> tuple[Path, Config]:
    """Return the directory of a store and its configuration; *path* may be the address of a server."""
    config.require("sessiondb", "cluster")
    if (server := server_at(path)) is None:
        return Path(path).expanduser().absolute(), config
    address = str(path)
    if config.sessiondb.url not in (None, address):
        problem = "the address that is opened and sessiondb.url are different; give one of them"
        raise InvalidInputError(problem)
    settings = replace(config.sessiondb, provider=server.name, url=address)
    return home_of_server(server, address, config.cluster.name), replace(config, sessiondb=settings)


def locate_database(home: Path, url: str | None) -> tuple[str | Path, Path]:
    """Return the database of the store in a directory, and the directory that the database owns."""
    if url is not None and server_at(url) is not None:
        return url, home
    path = home / DATABASE_FILE if url is None else database_path(url)
    return path, path.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseOpening:
    """Opens the database of a store as its owner."""

    home: Path
    config: Config
    clock: Clock
    wait: float
    """Seconds for which another owner, or a server that is away, is waited for."""
    pool: object | None
    upkeep: bool
    """Whether this owner does the upkeep, so that others shall use its configuration as well."""

    async def open(self, cleanup: AsyncExitStack, listener: DatabaseListener) -> SessionDB:
        """Return the open database; *cleanup* closes it."""
        settings = self.config.sessiondb
        url, home = locate_database(self.home, settings.url)
        if settings.is_server and await in_thread((home / DATABASE_FILE).exists):
            problem = (
                f"holds a database already, {DATABASE_FILE}; give the store on a server another directory"
            )
            raise UnsupportedStorageError(str(home), problem)
        if home != self.home:
            # The files beside the database need an owner as well when they live somewhere else.
            await in_thread(lambda: prepare_home(self.home, allow_network=settings.allow_network_filesystem))
            await cleanup.enter_async_context(own_home(self.home, self.clock, wait=self.wait))
        engine = await in_thread(  # the driver of a server takes its time to be imported
            partial(
                engine_at,
                url,
                survives_power_cut=settings.durability is Durability.FULL,
                allow_network=settings.allow_network_filesystem,
                home=home,
                cluster=self.config.cluster,
                prepared_statements=settings.prepared_statements,
                pool_size=settings.pool_size,
                pool=self.pool,
            )
        )
        db = SessionDB(
            engine,
            self.clock,
            wait=self.wait,
            cluster=self.config.cluster,
            stemming=self.config.search.stemming,
            listener=listener,
        )
        await cleanup.enter_async_context(db)
        if self.upkeep:
            await in_thread(partial(note_config_file, self.home, self.config.file))
        return db
