"""Which database a URL or path names."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

from platformdirs import user_state_path

from gateway_sessions.core.cluster import ClusterRules
from gateway_sessions.errors import InvalidInputError, UnsupportedStorageError
from gateway_sessions.storage.drivers.sqlite import Synchronous
from gateway_sessions.storage.drivers.sqlite_engine import SqliteEngine, SqliteReadingEngine
from gateway_sessions.storage.engine import Engine


@dataclass(frozen=True, slots=True)
class Server:
    """A kind of database on a server."""

    name: str
    schemes: frozenset[str]
    usual: str
    """How an address of it looks."""
    package: str
    extra: str

    @property
    def shown(self) -> str:
        """What an address of it is shown as: the rest may hold a password."""
        return f"{self.name}://…"


SERVERS: Final = (
    Server(
        "postgresql",
        frozenset({"postgresql", "postgres"}),
        "postgresql://user@host:5432/name",
        "asyncpg",
        "postgres",
    ),
    Server("mysql", frozenset({"mysql", "mariadb"}), "mysql://user@host:3306/name", "asyncmy", "mysql"),
)
NO_DATABASE: Final = (
    "is no database that this version can use; give a path, sqlite:///path, postgresql://user@host/name "
    "or mysql://user@host/name"
)
_DIGITS: Final = 16
_NAMING: Final = ("host", "port", "dbname", "database", "unix-socket", "unix_socket")
"""Options that say which database is meant."""


def server_at(url_or_path: str | Path) -> Server | None:
    """The kind of server on which a database is; None if it is a file."""
    scheme, separator, _ = str(url_or_path).partition("://")
    if not separator:
        return None
    return next((one for one in SERVERS if scheme.lower() in one.schemes), None)


def engine_at(
    url_or_path: str | Path,
    *,
    home: str | Path | None,
    survives_power_cut: bool,
    allow_network: bool,
    cluster: ClusterRules,
) -> Engine:
    """The database that a URL or path names; those that we do not know are refused by name."""
    if (server := server_at(url_or_path)) is not None:
        return _owned(server, str(url_or_path), home, allow_network=allow_network, cluster=cluster)
    path = database_path(url_or_path)
    if home is not None and Path(home).expanduser().absolute() != path.parent:
        problem = f"home must be the directory of the database {path}, or be left out"
        raise InvalidInputError(problem)
    synchronous = Synchronous.FULL if survives_power_cut else Synchronous.NORMAL
    return SqliteEngine(path, synchronous=synchronous, allow_network=allow_network)


def reading_engine_at(url_or_path: str | Path, *, home: str | Path | None) -> Engine:
    """The same database, which another process may own, for reading only."""
    if (server := server_at(url_or_path)) is not None:
        return _read(server, str(url_or_path), home)
    return SqliteReadingEngine(database_path(url_or_path))


def database_path(url_or_path: str | Path) -> Path:
    """The file that a URL or path names; other databases are refused by name."""
    text = str(url_or_path)
    if "://" not in text:
        return Path(text).expanduser().absolute()
    parts = urlsplit(text)
    if parts.scheme != "sqlite" or parts.netloc:
        raise UnsupportedStorageError(f"{parts.scheme}://…", NO_DATABASE)
    return Path(unquote(parts.path.removeprefix("/"))).absolute()


def home_of_server(server: Server, url: str, node: str | None = None) -> Path:
    """Where this machine keeps what a node needs beside a database on a server, if nobody says where."""
    try:
        parts = urlsplit(url)
    except ValueError:
        problem = f"this is no address of a {server.name} database: {server.usual}"
        raise InvalidInputError(problem) from None
    options = parse_qs(parts.query)
    named = [parts.netloc.rpartition("@")[2], parts.path]
    named += [value for name in _NAMING for value in options.get(name, ())]
    named += [node] if node is not None else []
    digest = sha256("\n".join(named).encode("utf-8", "surrogatepass")).hexdigest()
    return user_state_path("gateway-sessions") / f"{server.name}-{digest[:_DIGITS]}"


def _owned(
    server: Server, url: str, home: str | Path | None, *, allow_network: bool, cluster: ClusterRules
) -> Engine:
    place = _home_of(server, url, home)
    # Only who uses a server has its driver.
    with _its_driver_is_there(server):
        if server.name == "mysql":
            from gateway_sessions.storage.drivers.mysql_engine import MySQLEngine  # noqa: PLC0415 -- see above

            return MySQLEngine(url, place, allow_network=allow_network)
        from gateway_sessions.storage.drivers.postgresql_engine import PostgresEngine  # noqa: PLC0415 -- the same

        return PostgresEngine(url, place, allow_network=allow_network, poll_only=cluster.poll_only)


def _read(server: Server, url: str, home: str | Path | None) -> Engine:
    place = _home_of(server, url, home)
    with _its_driver_is_there(server):
        if server.name == "mysql":
            from gateway_sessions.storage.drivers.mysql_reader import MySQLReadingEngine  # noqa: PLC0415 -- as above

            return MySQLReadingEngine(url, place)
        from gateway_sessions.storage.drivers.postgresql_reader import (  # noqa: PLC0415 -- as above
            PostgresReadingEngine,
        )

        return PostgresReadingEngine(url, place)


def _home_of(server: Server, url: str, home: str | Path | None) -> Path:
    return Path(home).expanduser().absolute() if home is not None else home_of_server(server, url)


@contextmanager
def _its_driver_is_there(server: Server) -> Generator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != server.package:
            raise
        problem = f"needs a package that is not installed: pip install 'gateway-sessions[{server.extra}]'"
        raise UnsupportedStorageError(server.shown, problem) from None
