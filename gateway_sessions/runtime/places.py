"""Where the parts of a store are, by what people name it with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from gateway_sessions.config import Config
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.storage.engines import database_path, home_of_server, server_at

DATABASE_FILE: Final = "sessions.db"


def placed(path: str | Path, config: Config) -> tuple[Path, Config]:
    """The directory of a store, and its configuration; for a directory the address of a server will do."""
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
