"""The sections of a configuration that a store reads.

A duration is a `timedelta`; the key in the file carries its unit, which the field drops (`timeout_seconds` is
`timeout`). A zero that means "off" in the file is None here, so that nobody computes with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import ClassVar, Final

from gateway_sessions.config.core_blocks import BUSY, HOME_CHANNEL, RESET_POLICY
from gateway_sessions.config.keys import Contradiction, Section, key, named_blocks
from gateway_sessions.config.kinds import Choice, Count, DatabaseAddress, Duration, Flag, ProviderChoice
from gateway_sessions.core.cluster import POOL_SIZE
from gateway_sessions.core.queue.busy_modes import BusyRules
from gateway_sessions.core.search.stems import Stemming
from gateway_sessions.core.sessions.reset_policy import SessionResetPolicy
from gateway_sessions.core.sessions_json.entries import Dialect
from gateway_sessions.core.transcript.session_context_prompt import HomeChannel

_SQLITE_URL: Final = "sqlite:///"
_PASSWORD_IN_AUTHORITY = re.compile(r"(?<=://)([^:/?#]*):.*@")
_PASSWORD_IN_OPTION = re.compile(r"((?:pass\w*|pwd|secret|token)\s*=\s*)[^&\s]+", re.IGNORECASE)


class Provider(StrEnum):
    """The kinds of databases that the package itself brings."""

    SQLITE = "sqlite"  # a file of this machine
    POSTGRESQL = "postgresql"  # on a server
    MYSQL = "mysql"  # on a server of MySQL or MariaDB


_USUAL: Final = "user@host:port/name"
_SERVER_URLS: Final = MappingProxyType[str, tuple[str, ...]](
    {Provider.POSTGRESQL: ("postgresql://", "postgres://"), Provider.MYSQL: ("mysql://", "mariadb://")}
)


class Durability(StrEnum):
    """The failures that an acknowledged change survives."""

    FULL = "full"  # a power failure, too
    OS = "os"  # the end of the process only: the operating system writes when it likes


class SnapshotMode(StrEnum):
    """The moments at which sessions.json is written."""

    COALESCED = "coalesced"  # a moment after a change, for all changes at once, and at close
    SYNC = "sync"  # before the changing call returns
    OFF = "off"  # never


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig(Section):
    """Limits on the time of an agent, and on the restarts of work that was cut off."""

    section: ClassVar[str] = "agent"
    gateway_auto_continue_freshness: timedelta | None = key(
        Duration(off=True, named=False), timedelta(hours=1)
    )
    """A turn that a restart cut off starts again by itself if it was alive this recently. None: always. An
    older one is put aside, its session goes on, and the person is told."""
    gateway_timeout: timedelta | None = key(Duration(off=True, named=False), timedelta(minutes=30))
    """The time limit for one turn. None: there is no limit."""
    max_restart_attempts: int = key(Count(), 3)
    """The number of times that a turn is started, and cut off by a crash or by a drain that ran out of time,
    before it is given up. Attempts that failed because of a passing fault of the database do not count."""
    farewell: timedelta | None = key(Duration(off=True), timedelta(seconds=20))
    """The time that an agent gets to save what it must keep before a policy ends its session. None: the agent
    is not asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDBConfig(Section):
    """The place of the database that holds the truth, and how safe it is."""

    section: ClassVar[str] = "sessiondb"
    provider: Provider | str = key(
        ProviderChoice(
            Provider,
            kind_name="one that [a package brings](../how-to/prove-a-database.md#bring-a-database-along)",
        ),
        Provider.SQLITE,
    )
    """The kind of database: a file on this machine, or a database on a server; `mysql` means MariaDB, too."""
    url: str | None = key(
        DatabaseAddress(kind_name="path, `sqlite:///path`, `postgresql://…`, `mysql://…`", null=True), None
    )
    """The path or address of the database. None: `sessions.db` in the store's directory; a database on a
    server needs an address."""
    durability: Durability = key(Choice(Durability), Durability.FULL)
    """What an acknowledged change survives: `full` includes a power failure, `os` only the end of the
    process."""
    allow_network_filesystem: bool = key(Flag(), default=False)
    """The database file may lie on a network file system, whose locks and writes are less reliable."""
    prepared_statements: bool = key(Flag(), default=True)
    """The PostgreSQL server keeps prepared statements. Switch this off behind a
    [pooler](../how-to/run-on-postgresql.md) that does not support them."""
    pool_size: int = key(Count(), POOL_SIZE)
    """The largest number of connections to the server for work; one more carries the heartbeat. The pages on
    [PostgreSQL](../how-to/run-on-postgresql.md#what-the-server-should-be) and
    [MySQL](../how-to/run-on-mysql.md#what-the-server-should-be) say how to choose it. A pool that your
    program hands in has its own size."""

    def __post_init__(self) -> None:
        """Replace the name of one of our kinds by its enum member."""
        if self.provider in list(Provider):
            object.__setattr__(self, "provider", Provider(self.provider))
        Section.__post_init__(self)

    def contradictions(self) -> Iterator[Contradiction]:
        """Yield why the address fits no database of this provider."""
        if self.provider == Provider.SQLITE:
            usable = self.url is None or (
                bool(self.url) and ("://" not in self.url or self.url.startswith(_SQLITE_URL))
            )
            others = " or ".join(f"with provider: {one} {urls[0]}…" for one, urls in _SERVER_URLS.items())
            problem = f"must be a path or {_SQLITE_URL}<path>; {others}"
        else:
            urls = _SERVER_URLS.get(self.provider, (f"{self.provider}://",))
            usable = self.url is not None and self.url.startswith(urls)
            usual = _USUAL if self.provider in _SERVER_URLS else "…"
            problem = f"must be {urls[0]}{usual} with provider: {self.provider}"
        if not usable:
            yield "url", problem

    @property
    def is_server(self) -> bool:
        """Whether the database is on a server, where others may reach it as well."""
        return self.provider != Provider.SQLITE

    @property
    def shown_url(self) -> str | None:
        """The url for people and logs: a path without its password, or only the scheme of a server."""
        if self.url is None:
            return None
        if self.is_server:
            return f"{self.provider}://…"
        return _PASSWORD_IN_OPTION.sub(r"\1***", _PASSWORD_IN_AUTHORITY.sub(r"\1:***@", self.url))

    def __repr__(self) -> str:
        return (
            f"SessionDBConfig(provider={self.provider!r}, url={self.shown_url!r}, "
            f"durability={self.durability!r}, allow_network_filesystem={self.allow_network_filesystem!r}, "
            f"prepared_statements={self.prepared_statements!r}, pool_size={self.pool_size!r})"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionsJsonConfig(Section):
    """How the snapshot, `sessions.json`, is written."""

    section: ClassVar[str] = "sessions_json"
    mode: SnapshotMode | None = key(Choice(SnapshotMode, null=True), None)
    """The snapshot is written a moment after changes (`coalesced`), before each call returns (`sync`), or
    never (`off`). None: `coalesced`, or `off` with a database on a server."""
    format: Dialect = key(Choice(Dialect), Dialect.NATIVE)
    """Times are written in UTC, or in local time as Hermes reads them; with `hermes`, keys are
    [spelt as Hermes does](sessions-json.md)."""
    interval: timedelta = key(Duration(), timedelta(seconds=1))
    """The time for which mode `coalesced` collects changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiryWatcherConfig(Section):
    """How often the watcher ends sessions that are due, and removes old entries."""

    section: ClassVar[str] = "expiry_watcher"
    first_pass: timedelta = key(Duration(zero=True), timedelta(minutes=1))
    """The time from the start to the first search for sessions that are due."""
    interval: timedelta = key(Duration(), timedelta(minutes=5))
    """The time between two searches."""
    prune_interval: timedelta = key(Duration(), timedelta(hours=1))
    """The time between two removals of unused entries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HooksConfig(Section):
    """Limits on calls of hooks."""

    section: ClassVar[str] = "hooks"
    timeout: timedelta = key(Duration(), timedelta(seconds=30))
    """The time limit for one call of a hook."""
    max_attempts: int = key(Count(), 3)
    """The number of attempts at one call of a hook."""
    retry: timedelta = key(Duration(zero=True), timedelta(minutes=1))
    """The time between two tries."""
    concurrency: int = key(Count(), 8)
    """The number of calls of one hook that may run at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupsConfig(Section):
    """How often the database is copied, and how many copies are kept."""

    section: ClassVar[str] = "backups"
    interval: timedelta | None = key(Duration("days", off=True), timedelta(days=1))
    """The time between two copies of the database, which are kept in `backups/`. None: no copies are made."""
    keep: int = key(Count(), 3)
    """The number of copies that are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheConfig(Section):
    """The part of the database that is kept in memory."""

    section: ClassVar[str] = "cache"
    entries: int = key(Count(), 4096)
    """The number of entries that are kept in memory, and of lanes whose state after their last turn is kept
    in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchConfig(Section):
    """How searches match words."""

    section: ClassVar[str] = "search"
    stemming: Stemming = key(Choice(Stemming, flag_is_off=True), Stemming.OFF)
    """The language whose words
    [a search finds in all their forms](../how-to/search.md#find-words-in-all-their-forms). `off`: words are
    found as they were written. Changing this rebuilds the search index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyConfig(Section):
    """The personal data that agents get."""

    section: ClassVar[str] = "privacy"
    redact_pii: bool = key(Flag(), default=False)
    """Agents get [pseudonyms](../explanation/privacy.md#what-agents-are-told) instead of names and ids,
    except on Discord, Slack and Matrix, where a reply has to mention people by id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatTypeConfig(Section):
    """The settings of one chat type of a platform."""

    section: ClassVar[str] = "chat_types"
    session_reset: SessionResetPolicy | None = key(RESET_POLICY, None)
    """The reset policy of a chat type on the platform."""
    busy: BusyRules | None = key(BUSY, None)
    """The rules for busy lanes of a chat type on the platform."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformConfig(Section):
    """The settings of one platform."""

    section: ClassVar[str] = "platforms"
    enabled: bool = key(Flag(), default=True)
    """Agents are told the platform's home channel. Where no gateway runs, they are also told that the
    platform is connected; a gateway tells them what its adapters are connected to."""
    session_reset: SessionResetPolicy | None = key(RESET_POLICY, None)
    """The reset policy of the platform."""
    busy: BusyRules | None = key(BUSY, None)
    """The rules for busy lanes of the platform."""
    chat_types: Mapping[str, ChatTypeConfig] = named_blocks(ChatTypeConfig)
    """Settings of a chat type of the platform, by its name."""
    home_channel: HomeChannel | None = key(HOME_CHANNEL, None)
    """The chat for messages that answer nobody."""

    def __post_init__(self) -> None:
        """Let nobody change the chat types."""
        object.__setattr__(self, "chat_types", MappingProxyType(dict(self.chat_types)))
        Section.__post_init__(self)
