"""The parts of a configuration: frozen records whose defaults and limits stand here and nowhere else.

A duration is a `timedelta`; the key in the file carries its unit, which the field drops (`timeout_seconds` is
`timeout`). A zero that means "off" in the file is None here, so that nobody computes with it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from gateway_sessions.core.busy import BusyRules
from gateway_sessions.core.cluster import POOL_SIZE
from gateway_sessions.core.context import HomeChannel
from gateway_sessions.core.entry_codec import Dialect
from gateway_sessions.core.limits import check_section, count, off_or_time, time
from gateway_sessions.core.policies import SessionResetPolicy
from gateway_sessions.core.search_stems import Stemming

_SQLITE_URL: Final = "sqlite:///"
_PASSWORD_IN_AUTHORITY = re.compile(r"(?<=://)([^:/?#]*):.*@")
_PASSWORD_IN_OPTION = re.compile(r"((?:pass\w*|pwd|secret|token)\s*=\s*)[^&\s]+", re.IGNORECASE)


class Provider(StrEnum):
    """The kind of database that holds the truth."""

    SQLITE = "sqlite"  # a file of this machine
    POSTGRESQL = "postgresql"  # on a server
    MYSQL = "mysql"  # on a server of MySQL or MariaDB


_USUAL: Final = "user@host:port/name"
_SERVER_URLS: Final = MappingProxyType[str, tuple[str, ...]](
    {
        Provider.POSTGRESQL: ("postgresql://", "postgres://"),
        Provider.MYSQL: ("mysql://", "mariadb://"),
    }
)


class Durability(StrEnum):
    """What an acknowledged change survives."""

    FULL = "full"  # a power failure
    OS = "os"  # the end of the process; the operating system writes when it likes


class SnapshotMode(StrEnum):
    """When sessions.json is written."""

    COALESCED = "coalesced"  # a moment after a change, for all changes at once, and at close
    SYNC = "sync"  # before the changing call returns
    OFF = "off"  # never


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """How long an agent may work, and what happens to work that a restart cut off."""

    gateway_auto_continue_freshness: timedelta | None = timedelta(hours=1)
    """How old an interruption may be to be continued; None: of any age."""
    gateway_timeout: timedelta | None = timedelta(minutes=30)
    """How long a turn may take; None: as long as it likes."""
    max_restart_attempts: int = 3
    """How often a turn that never ends well is begun."""
    farewell: timedelta | None = timedelta(seconds=20)
    """How long an agent may take to save what it must keep before a policy ends a session; None: no time."""

    def __post_init__(self) -> None:
        check_section(
            "agent",
            off_or_time("gateway_auto_continue_freshness", self.gateway_auto_continue_freshness),
            off_or_time("gateway_timeout", self.gateway_timeout),
            count("max_restart_attempts", self.max_restart_attempts),
            off_or_time("farewell_seconds", self.farewell),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDBConfig:
    """Where the truth is kept, and how safely."""

    provider: Provider | str = Provider.SQLITE
    """One of ours, or the name under which a package has registered its own."""
    url: str | None = None
    """A path or `sqlite:///…`; of a server its address. None: `sessions.db` in the store's directory."""
    durability: Durability = Durability.FULL
    allow_network_filesystem: bool = False
    prepared_statements: bool = True
    """Whether a server keeps statements that it has understood. Some poolers let them get lost."""
    pool_size: int = POOL_SIZE
    """Connections to a server for the work of this process."""

    def __post_init__(self) -> None:
        if self.provider in list(Provider):
            object.__setattr__(self, "provider", Provider(self.provider))
        if self.provider == Provider.SQLITE:
            usable = self.url is None or (
                bool(self.url) and ("://" not in self.url or self.url.startswith(_SQLITE_URL))
            )
            others = " or ".join(f"with provider: {one} {urls[0]}…" for one, urls in _SERVER_URLS.items())
            problem = f"must be a path or {_SQLITE_URL}<path>; {others}"
        else:
            urls = _SERVER_URLS.get(self.provider, (f"{self.provider}://",))
            usable = self.url is not None and self.url.startswith(urls)
            problem = f"must be {urls[0]}{_USUAL if self.provider in _SERVER_URLS else '…'}"
        size = count("pool_size", self.pool_size)
        check_section("sessiondb", None if usable else ("url", problem), size)

    @property
    def is_server(self) -> bool:
        """Whether the database is on a server, where others may reach it as well."""
        return self.provider != Provider.SQLITE

    @property
    def shown_url(self) -> str | None:
        """The url for people and logs: without its password, and of a server nothing at all."""
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
class SessionsJsonConfig:
    """How the snapshot of the index is written."""

    mode: SnapshotMode | None = None
    """None: `coalesced`, or `off` with a database on a server."""
    format: Dialect = Dialect.NATIVE
    interval: timedelta = timedelta(seconds=1)
    """How long a change waits for others in mode `coalesced`."""

    def __post_init__(self) -> None:
        check_section("sessions_json", time("interval_seconds", self.interval))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiryWatcherConfig:
    """When sessions that are due are looked for, and old entries removed."""

    first_pass: timedelta = timedelta(minutes=1)
    interval: timedelta = timedelta(minutes=5)
    prune_interval: timedelta = timedelta(hours=1)

    def __post_init__(self) -> None:
        check_section(
            "expiry_watcher",
            time("first_pass_seconds", self.first_pass, zero=True),
            time("interval_seconds", self.interval),
            time("prune_interval_seconds", self.prune_interval),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HooksConfig:
    """How patiently hooks are called."""

    timeout: timedelta = timedelta(seconds=30)
    max_attempts: int = 3
    retry: timedelta = timedelta(minutes=1)
    concurrency: int = 8

    def __post_init__(self) -> None:
        check_section(
            "hooks",
            time("timeout_seconds", self.timeout),
            count("max_attempts", self.max_attempts),
            time("retry_seconds", self.retry, zero=True),
            count("concurrency", self.concurrency),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupsConfig:
    """How often the database is copied, and how many copies are kept."""

    interval: timedelta | None = timedelta(days=1)
    """None: never."""
    keep: int = 3

    def __post_init__(self) -> None:
        check_section("backups", off_or_time("interval_days", self.interval), count("keep", self.keep))


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheConfig:
    """How much of the database is kept at hand."""

    entries: int = 4096

    def __post_init__(self) -> None:
        check_section("cache", count("entries", self.entries))


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchConfig:
    """How searches understand words."""

    stemming: Stemming = Stemming.OFF
    """The language whose words are found in all their forms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyConfig:
    """What agents are told about people."""

    redact_pii: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatTypeConfig:
    """What is different for one chat type of a platform."""

    session_reset: SessionResetPolicy | None = None
    """None: the platform's."""
    busy: BusyRules | None = None
    """None: the platform's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformConfig:
    """What is different on one platform."""

    enabled: bool = True
    session_reset: SessionResetPolicy | None = None
    """None: the default one."""
    busy: BusyRules | None = None
    """None: the default ones."""
    chat_types: Mapping[str, ChatTypeConfig] = field(default_factory=dict[str, ChatTypeConfig])
    home_channel: HomeChannel | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "chat_types", MappingProxyType(dict(self.chat_types)))
