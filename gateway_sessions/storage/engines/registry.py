"""The choice of an engine by a URL or path, and the providers that other packages register.

A provider makes engines. A package registers a provider as an entry point of the group
`gateway_sessions.providers`, whose name is the scheme of its addresses: `name://…` is opened with it. Our
own three engines are made by providers as well.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, unquote, urlsplit

from platformdirs import user_state_path

from gateway_sessions._process.installed_packages import installed_providers
from gateway_sessions.core.cluster import POOL_SIZE, ClusterRules
from gateway_sessions.errors import (
    BrokenProviderError,
    InvalidInputError,
    UnknownProviderError,
    UnsupportedStorageError,
)
from gateway_sessions.storage.engines.protocol import Engine
from gateway_sessions.storage.engines.server.driver import PATIENT, USUAL, ServerLimits
from gateway_sessions.storage.engines.sqlite.engine import SqliteEngine, SqliteReadingEngine, Synchronous

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

CONTRACT: Final = 1
"""Rises with every change that a provider has to follow: new queries, tables, or parts of an engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """States which database a provider is asked to open, and how."""

    address: str
    """The address as it was given, which only the provider parses. It may hold a password."""
    home: Path
    """The directory of the files that this machine keeps for the database."""
    survives_power_cut: bool = True
    """Whether a commit must outlive a power cut."""
    allow_network: bool = False
    """Whether the files may lie on a network file system."""
    poll_only: bool = False
    """True if nodes find each other's changes by polling alone, without notifications."""
    prepared_statements: bool = True
    """False if statements must not be prepared on the server, as behind some poolers."""
    pool_size: int = POOL_SIZE
    """The number of connections to a server for the work of this process."""
    patient: bool = False
    """True if a query may take very long, as one that compares whole tables does."""
    pool: object | None = None
    """A connection pool of the program, which the engine never closes; None if the engine makes its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseKind:
    """Names a kind of database by the scheme of its addresses, whether or not it is installed."""

    name: str
    usual: str
    """An example of an address of this kind."""

    @property
    def shown(self) -> str:
        """Return what errors show of an address: its scheme, as the rest may hold a password."""
        return f"{self.name}://…"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDBProvider(DatabaseKind):
    """Makes the engines of a kind of database that is installed."""

    contract: int
    """The `CONTRACT` that the provider was written for."""
    engine: Callable[[Wanted], Engine]
    """Makes the engine of a process that owns the database, or is a node of it."""
    reader: Callable[[Wanted], Engine]
    """Makes an engine that only reads, whoever owns the database."""
    schemes: frozenset[str] = frozenset()
    """Schemes of its addresses beside its name."""
    takes_pools: bool = False
    """True if its engines can work on a connection pool of the program."""

    def answers_to(self, scheme: str) -> bool:
        """Return True if *scheme* begins addresses of this kind of database."""
        return scheme == self.name or scheme in self.schemes


@dataclass(frozen=True, slots=True)
class ProviderListing:
    """Tells which package provides a kind of database here, and whether it works."""

    name: str
    package: str
    problem: str | None = None
    """The reason why it cannot be used; None if it can."""


def load_provider(entry: EntryPoint) -> SessionDBProvider:
    """Return the provider that a package has registered; raise `BrokenProviderError` if it is unusable."""
    try:
        found: object = entry.load()
    except Exception as error:  # foreign code: whatever it raises, the others can be used
        raise _broken_provider(entry, f"cannot be imported ({type(error).__name__}: {error})") from error
    if not isinstance(found, SessionDBProvider):
        raise _broken_provider(entry, "is no SessionDBProvider")
    if found.contract != CONTRACT:
        what = package_with_version(entry) if found.contract < CONTRACT else "gateway-sessions"
        fault = f"was written for contract {found.contract}, and this version has {CONTRACT}: update {what}"
        raise _broken_provider(entry, fault)
    if found.name != entry.name:
        raise _broken_provider(entry, f"calls itself {found.name!r}, and is registered as {entry.name!r}")
    return found


def package_with_version(entry: EntryPoint) -> str:
    """Return the package that registers the entry point, with its version. Reads the disk."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else entry.module


def _broken_provider(entry: EntryPoint, fault: str) -> BrokenProviderError:
    return BrokenProviderError(f"{entry.name}://…", f"{entry.value} of {package_with_version(entry)} {fault}")


OWN_PACKAGE: Final = "gateway-sessions"
_DIGITS: Final = 16
"""Hexadecimal digits of the hash in a home's name: 64 bits, so that two databases do not share a home."""
_NAMING: Final = ("host", "port", "dbname", "database", "unix-socket", "unix_socket")
"""Options of an address that choose the database. All others, a password for example, may change without a
new home."""


def _sqlite_engine(wanted: Wanted) -> Engine:
    path = database_path(wanted.address)
    if wanted.home != path.parent:
        problem = f"home must be the directory of the database {path}, or be left out"
        raise InvalidInputError(problem)
    synchronous = Synchronous.FULL if wanted.survives_power_cut else Synchronous.NORMAL
    return SqliteEngine(path, synchronous=synchronous, allow_network=wanted.allow_network)


def _sqlite_reading_engine(wanted: Wanted) -> Engine:
    return SqliteReadingEngine(database_path(wanted.address))


# Engines of servers are imported late: their drivers are extras, and only programs that use one have it.
def _postgresql_engine(wanted: Wanted) -> Engine:
    with _driver_installed(POSTGRESQL, "asyncpg", "postgres"):
        from gateway_sessions.storage.engines.postgresql.engine import PostgresEngine  # noqa: PLC0415 -- see above

        return PostgresEngine(
            wanted.address,
            wanted.home,
            limits=_server_limits(wanted),
            allow_network=wanted.allow_network,
            poll_only=wanted.poll_only,
            prepared_statements=wanted.prepared_statements,
            pool=wanted.pool,
        )


def _postgresql_reading_engine(wanted: Wanted) -> Engine:
    with _driver_installed(POSTGRESQL, "asyncpg", "postgres"):
        from gateway_sessions.storage.engines.postgresql.engine import PostgresReadingEngine  # noqa: PLC0415 -- as above

        return PostgresReadingEngine(
            wanted.address,
            wanted.home,
            limits=_server_limits(wanted),
            prepared_statements=wanted.prepared_statements,
        )


def _mysql_engine(wanted: Wanted) -> Engine:
    with _driver_installed(MYSQL, "asyncmy", "mysql"):
        from gateway_sessions.storage.engines.mysql.engine import MySQLEngine  # noqa: PLC0415 -- as above

        return MySQLEngine(
            wanted.address,
            wanted.home,
            limits=_server_limits(wanted),
            allow_network=wanted.allow_network,
            pool=wanted.pool,
        )


def _mysql_reading_engine(wanted: Wanted) -> Engine:
    with _driver_installed(MYSQL, "asyncmy", "mysql"):
        from gateway_sessions.storage.engines.mysql.engine import MySQLReadingEngine  # noqa: PLC0415 -- as above

        return MySQLReadingEngine(wanted.address, wanted.home, limits=_server_limits(wanted))


def _server_limits(wanted: Wanted) -> ServerLimits:
    return replace(PATIENT if wanted.patient else USUAL, connections=wanted.pool_size)


SQLITE: Final = SessionDBProvider(
    name="sqlite",
    contract=CONTRACT,
    usual="sqlite:///path",
    engine=_sqlite_engine,
    reader=_sqlite_reading_engine,
)
POSTGRESQL: Final = SessionDBProvider(
    name="postgresql",
    contract=CONTRACT,
    usual="postgresql://user@host:5432/name",
    engine=_postgresql_engine,
    reader=_postgresql_reading_engine,
    schemes=frozenset({"postgres"}),
    takes_pools=True,
)
MYSQL: Final = SessionDBProvider(
    name="mysql",
    contract=CONTRACT,
    usual="mysql://user@host:3306/name",
    engine=_mysql_engine,
    reader=_mysql_reading_engine,
    schemes=frozenset({"mariadb"}),
    takes_pools=True,
)
OURS: Final = (SQLITE, POSTGRESQL, MYSQL)
SERVERS: Final = (POSTGRESQL, MYSQL)


def provider_of(url_or_path: str | Path) -> SessionDBProvider:
    """Return the provider for a URL or path; raise `UnknownProviderError` if it is not installed."""
    kind = server_at(url_or_path)
    if kind is None:
        return SQLITE
    if isinstance(kind, SessionDBProvider):
        return kind
    scheme, others = kind.name, installed_providers()
    if scheme not in others:
        known = [one.name for one in OURS] + sorted(others)
        hint = "".join(f" (did you mean {one!r}?)" for one in get_close_matches(scheme, known, 1))
        problem = f"is a kind of database that is not installed{hint}; there is {', '.join(known)}"
        raise UnknownProviderError(kind.shown, problem)
    return load_provider(others[scheme])


def server_at(url_or_path: str | Path) -> DatabaseKind | None:
    """Return the kind of database that an address names, installed or not; None if it is a file."""
    scheme, separator, _ = str(url_or_path).partition("://")
    scheme = scheme.lower()
    if not separator or SQLITE.answers_to(scheme):
        return None
    ours = next((one for one in SERVERS if one.answers_to(scheme)), None)
    return ours or DatabaseKind(name=scheme, usual=f"{scheme}://…")


def all_providers() -> Sequence[ProviderListing]:
    """Return all kinds of databases that are installed, ours first. Imports the other packages."""
    found = [ProviderListing(one.name, OWN_PACKAGE) for one in OURS]
    for name, entry in sorted(installed_providers().items()):
        problem = None
        if any(one.answers_to(name) for one in OURS):
            problem = "its name is that of a kind of ours, which is used instead"
        else:
            try:
                load_provider(entry)
            except BrokenProviderError as error:
                problem = error.problem
        found.append(ProviderListing(name, package_with_version(entry), problem))
    return found


def engine_at(
    url_or_path: str | Path,
    *,
    home: str | Path | None,
    survives_power_cut: bool,
    allow_network: bool,
    cluster: ClusterRules,
    prepared_statements: bool = True,
    pool_size: int = POOL_SIZE,
    pool: object | None = None,
    patient: bool = False,
) -> Engine:
    """Return the engine for the owner of the database that a URL or path names."""
    provider = provider_of(url_or_path)
    if pool is not None and not provider.takes_pools:
        problem = f"{provider.shown} makes its own connections: leave pool out"
        raise InvalidInputError(problem)
    wanted = Wanted(
        address=str(url_or_path),
        home=_home_or_usual(provider, url_or_path, home),
        survives_power_cut=survives_power_cut,
        allow_network=allow_network,
        poll_only=cluster.poll_only,
        prepared_statements=prepared_statements,
        pool_size=_checked_pool_size(pool_size),
        pool=pool,
        patient=patient,
    )
    return provider.engine(wanted)


def reading_engine_at(
    url_or_path: str | Path,
    *,
    home: str | Path | None,
    prepared_statements: bool = True,
    pool_size: int = POOL_SIZE,
    patient: bool = False,
) -> Engine:
    """Return an engine that only reads the database, which another process may own."""
    provider = provider_of(url_or_path)
    wanted = Wanted(
        address=str(url_or_path),
        home=_home_or_usual(provider, url_or_path, home),
        prepared_statements=prepared_statements,
        pool_size=_checked_pool_size(pool_size),
        patient=patient,
    )
    return provider.reader(wanted)


def database_path(url_or_path: str | Path) -> Path:
    """Return the file that a URL or path names; raise `UnsupportedStorageError` for a server."""
    text = str(url_or_path)
    if "://" not in text:
        return Path(text).expanduser().absolute()
    parts = urlsplit(text)
    if parts.scheme != "sqlite" or parts.netloc:
        raise UnsupportedStorageError(f"{parts.scheme}://…", f"is no file; give a path or {SQLITE.usual}")
    return Path(unquote(parts.path.removeprefix("/"))).absolute()


def home_of_server(server: DatabaseKind, url: str, node: str | None = None) -> Path:
    """Return the usual home of a node whose database is on a server."""
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


def _checked_pool_size(pool_size: int) -> int:
    if pool_size < 1:
        problem = f"pool_size = {pool_size} must be 1 or more"
        raise InvalidInputError(problem)
    return pool_size


def _home_or_usual(provider: SessionDBProvider, address: str | Path, home: str | Path | None) -> Path:
    if home is not None:
        return Path(home).expanduser().absolute()
    return database_path(address).parent if provider is SQLITE else home_of_server(provider, str(address))


@contextmanager
def _driver_installed(provider: SessionDBProvider, package: str, extra: str) -> Generator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        problem = f"needs a package that is not installed: pip install 'gateway-sessions[{extra}]'"
        raise UnsupportedStorageError(provider.shown, problem) from None
