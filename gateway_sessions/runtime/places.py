"""Where the parts of a store are, by what people name it with."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from pathlib import Path
from typing import Final

from gateway_sessions.config import Config
from gateway_sessions.errors import InvalidInputError, UnsupportedStorageError
from gateway_sessions.storage.atomic_file import read_all, remove, write_atomically
from gateway_sessions.storage.engines import database_path, home_of_server, server_at
from gateway_sessions.storage.private_files import refuse_foreign_link

logger = logging.getLogger(__name__)

DATABASE_FILE: Final = "sessions.db"
CONFIG_NOTE: Final = "sessions.config.path"
"""Holds the path of the owner's configuration, so that nobody has to name it again who looks at the store."""


def noted_config(home: Path) -> Path | None:
    """The configuration that the last owner of a store has used, if that file is still there."""
    try:
        refuse_foreign_link(home / CONFIG_NOTE)
        note = read_all(home / CONFIG_NOTE)
        path = None if note is None else Path(os.fsdecode(note))
        return path if path is not None and path.is_file() else None
    except (OSError, ValueError, UnsupportedStorageError):
        return None


def leave_word_of_config(home: Path, file: Path | None) -> None:
    """Note for other programs which file the owner of a store was configured by; None: by none."""
    try:
        if file is None:
            remove(home / CONFIG_NOTE)
        else:
            write_atomically(home / CONFIG_NOTE, os.fsencode(file))
    except (OSError, UnsupportedStorageError) as error:
        facts = {"action": "file_failed", "problem": str(error)}
        logger.warning("a file could not be used", extra=facts)


def placed(path: str | Path, config: Config) -> tuple[Path, Config]:
    """The directory of a store, and its configuration; for a directory the address of a server will do."""
    config.require("sessiondb", "cluster")
    if (server := server_at(path)) is None:
        return Path(path).expanduser().absolute(), config
    address = str(path)
    if config.sessiondb.url not in (None, address):
        problem = "the address that is opened and sessiondb.url are different; give one of them"
        raise InvalidInputError(problem)
    settings = replace(config.sessiondb, provider=server.name, url=address)
    return home_of_server(server, address, config.cluster.name), replace(config, sessiondb=settings)


def database_of(home: Path, url: str | None) -> tuple[str | Path, Path]:
    """The database of the store in a directory, and the directory that it owns."""
    if url is not None and server_at(url) is not None:
        return url, home
    path = home / DATABASE_FILE if url is None else database_path(url)
    return path, path.parent
