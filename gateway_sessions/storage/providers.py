"""Kinds of databases: what ours are to the store, so are those that other packages bring along.

A provider makes engines. A package registers one as an entry point of the group `gateway_sessions.providers`,
whose name is the scheme of its addresses: whoever opens `name://…` gets it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Final

from gateway_sessions.core.cluster import POOL_SIZE
from gateway_sessions.storage.engine import Engine
from gateway_sessions.storage_errors import BrokenProviderError

CONTRACT: Final = 1
"""Rises with every change that a provider has to follow: new queries, tables, or parts of an engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is to be opened, and how."""

    address: str
    """As it was given; only the provider reads it. It may hold a password."""
    home: Path
    """The directory of what this machine keeps of the database."""
    survives_power_cut: bool = True
    allow_network: bool = False
    poll_only: bool = False
    """Whether nodes wake each other by looking alone."""
    prepared_statements: bool = True
    """Whether statements may be kept on a connection of the server."""
    pool_size: int = POOL_SIZE
    """Connections to a server for the work of this process."""
    patient: bool = False
    """Whether a server may take as long as it likes: whoever asks wants to know everything."""
    pool: object | None = None
    """Connections that the program hands in, which are never closed here; None: the engine makes its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of database that is named by addresses, whether or not it is installed here."""

    name: str
    usual: str
    """How an address of it looks."""

    @property
    def shown(self) -> str:
        """What an address of it is shown as: the rest may hold a password."""
        return f"{self.name}://…"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDBProvider(Kind):
    """A kind of database that is installed, and who makes its engines."""

    contract: int
    """The `CONTRACT` that it was written for."""
    engine: Callable[[Wanted], Engine]
    """The database for whoever owns it, or is a node of it."""
    reader: Callable[[Wanted], Engine]
    """The same database for reading only, whoever owns it."""
    schemes: frozenset[str] = frozenset()
    """What its addresses may begin with besides its name."""
    takes_pools: bool = False
    """Whether it works on connections that are handed in."""

    def answers_to(self, scheme: str) -> bool:
        """Whether addresses that begin with it are addresses of this kind."""
        return scheme == self.name or scheme in self.schemes


@dataclass(frozen=True, slots=True)
class Listing:
    """A kind of database as it is found here."""

    name: str
    package: str
    problem: str | None = None
    """Why it cannot be used."""


def loaded(entry: EntryPoint) -> SessionDBProvider:
    """The provider that a package has registered; `BrokenProviderError` if it cannot be used."""
    try:
        found: object = entry.load()
    except Exception as error:  # foreign code: whatever it raises, the others can be used
        raise _broken(entry, f"cannot be imported ({type(error).__name__}: {error})") from error
    if not isinstance(found, SessionDBProvider):
        raise _broken(entry, "is no SessionDBProvider")
    if found.contract != CONTRACT:
        what = package_of(entry) if found.contract < CONTRACT else "gateway-sessions"
        fault = f"was written for contract {found.contract}, and this version has {CONTRACT}: update {what}"
        raise _broken(entry, fault)
    if found.name != entry.name:
        raise _broken(entry, f"calls itself {found.name!r}, and is registered as {entry.name!r}")
    return found


def package_of(entry: EntryPoint) -> str:
    """The package that brings it along, with its version. Looks at the disk."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else entry.module


def _broken(entry: EntryPoint, fault: str) -> BrokenProviderError:
    return BrokenProviderError(f"{entry.name}://…", f"{entry.value} of {package_of(entry)} {fault}")
