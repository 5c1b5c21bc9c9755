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

from gateway_sessions.core.context import HomeChannel
from gateway_sessions.core.entry_codec import Dialect
from gateway_sessions.core.instants import LONGEST
from gateway_sessions.core.policies import SessionResetPolicy
from gateway_sessions.errors import ConfigError, ConfigProblem

MOST: Final = 1_000_000
"""More of anything is a mistake."""

_SQLITE_URL: Final = "sqlite:///"
_PASSWORD_IN_AUTHORITY = re.compile(r"(?<=://)([^:/?#]*):.*@")
_PASSWORD_IN_OPTION = re.compile(r"((?:pass\w*|pwd|secret|token)\s*=\s*)[^&\s]+", re.IGNORECASE)


class Provider(StrEnum):
    """The kind of database that holds the truth."""

    SQLITE = "sqlite"


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

    def __post_init__(self) -> None:
        _check(
            "agent",
            off_or_time("gateway_auto_continue_freshness", self.gateway_auto_continue_freshness),
            off_or_time("gateway_timeout", self.gateway_timeout),
            _count("max_restart_attempts", self.max_restart_attempts),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDBConfig:
    """Where the truth is kept, and how safely."""

    provider: Provider = Provider.SQLITE
    url: str | None = None
    """A path or `sqlite:///…`; None: `sessions.db` in the store's directory."""
    durability: Durability = Durability.FULL
    allow_network_filesystem: bool = False

    def __post_init__(self) -> None:
        usable = self.url is None or (
            self.url and ("://" not in self.url or self.url.startswith(_SQLITE_URL))
        )
        _check("sessiondb", None if usable else ("url", f"must be a path or {_SQLITE_URL}<path>"))

    @property
    def shown_url(self) -> str | None:
        """The url for people and logs: without its password."""
        if self.url is None:
            return None
        return _PASSWORD_IN_OPTION.sub(r"\1***", _PASSWORD_IN_AUTHORITY.sub(r"\1:***@", self.url))

    def __repr__(self) -> str:
        return (
            f"SessionDBConfig(provider={self.provider!r}, url={self.shown_url!r}, "
            f"durability={self.durability!r}, allow_network_filesystem={self.allow_network_filesystem!r})"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionsJsonConfig:
    """How the snapshot of the index is written."""

    mode: SnapshotMode = SnapshotMode.COALESCED
    format: Dialect = Dialect.NATIVE
    interval: timedelta = timedelta(seconds=1)
    """How long a change waits for others in mode `coalesced`."""

    def __post_init__(self) -> None:
        _check("sessions_json", _time("interval_seconds", self.interval))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiryWatcherConfig:
    """When sessions that are due are looked for, and old entries removed."""

    first_pass: timedelta = timedelta(minutes=1)
    interval: timedelta = timedelta(minutes=5)
    prune_interval: timedelta = timedelta(hours=1)

    def __post_init__(self) -> None:
        _check(
            "expiry_watcher",
            _time("first_pass_seconds", self.first_pass, zero=True),
            _time("interval_seconds", self.interval),
            _time("prune_interval_seconds", self.prune_interval),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HooksConfig:
    """How patiently hooks are called."""

    timeout: timedelta = timedelta(seconds=30)
    max_attempts: int = 3
    retry: timedelta = timedelta(minutes=1)
    concurrency: int = 8

    def __post_init__(self) -> None:
        _check(
            "hooks",
            _time("timeout_seconds", self.timeout),
            _count("max_attempts", self.max_attempts),
            _time("retry_seconds", self.retry, zero=True),
            _count("concurrency", self.concurrency),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupsConfig:
    """How often the database is copied, and how many copies are kept."""

    interval: timedelta | None = timedelta(days=1)
    """None: never."""
    keep: int = 3

    def __post_init__(self) -> None:
        _check("backups", off_or_time("interval_days", self.interval), _count("keep", self.keep))


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheConfig:
    """How much of the database is kept at hand."""

    entries: int = 4096

    def __post_init__(self) -> None:
        _check("cache", _count("entries", self.entries))


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyConfig:
    """What agents are told about people."""

    redact_pii: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatTypeConfig:
    """What is different for one chat type of a platform."""

    session_reset: SessionResetPolicy | None = None
    """None: the platform's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformConfig:
    """What is different on one platform."""

    enabled: bool = True
    session_reset: SessionResetPolicy | None = None
    """None: the default one."""
    chat_types: Mapping[str, ChatTypeConfig] = field(default_factory=dict[str, ChatTypeConfig])
    home_channel: HomeChannel | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "chat_types", MappingProxyType(dict(self.chat_types)))


def off_or_time(key: str, value: timedelta | None) -> tuple[str, str] | None:
    """Say what is wrong with a duration that can be off."""
    if value is None or timedelta(0) < value <= LONGEST:
        return None
    return key, "must be 0 (off) or more, and a century at most"


def _check(section: str, *findings: tuple[str, str] | None) -> None:
    problems = [ConfigProblem(f"{section}.{key}", message) for key, message in filter(None, findings)]
    if problems:
        raise ConfigError(section, problems)


def _count(key: str, value: int) -> tuple[str, str] | None:
    return None if 1 <= value <= MOST else (key, f"must be from 1 to {MOST}")


def _time(key: str, value: timedelta, *, zero: bool = False) -> tuple[str, str] | None:
    if value < timedelta(0) or (not value and not zero):
        return key, f"must be {'0 or more' if zero else 'more than 0'}"
    return None if value <= LONGEST else (key, "must be a century at most")
