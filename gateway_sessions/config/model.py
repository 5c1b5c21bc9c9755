"""`Config`: the whole configuration as one frozen record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Self

from gateway_sessions.config.core_blocks import BUDGETS, BUSY, CLUSTER, RESET_POLICY
from gateway_sessions.config.gateway_sections import (
    AgentCacheConfig,
    DeliveryConfig,
    DisplayConfig,
    GatewayConfig,
    ModelConfig,
    ServeConfig,
)
from gateway_sessions.config.keys import Contradiction, Section, block, block_of_record, key, named_blocks
from gateway_sessions.config.kinds import ZONE, Duration, Flag
from gateway_sessions.config.sections import (
    AgentConfig,
    BackupsConfig,
    CacheConfig,
    ExpiryWatcherConfig,
    HooksConfig,
    PlatformConfig,
    PrivacyConfig,
    SearchConfig,
    SessionDBConfig,
    SessionsJsonConfig,
    SnapshotMode,
)
from gateway_sessions.config.zones import system_zone_name
from gateway_sessions.core.cluster import ClusterRules
from gateway_sessions.core.identity.keys import Isolation
from gateway_sessions.core.queue.busy_modes import BusyBook, BusyRules
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.core.sessions.policy_rules import PolicyBook
from gateway_sessions.core.sessions.reset_policy import SessionResetPolicy
from gateway_sessions.core.usage.budgets import Budgets
from gateway_sessions.errors import ConfigError, ConfigProblem

PROGRAM_SECTIONS: Final = frozenset({"serve", "model", "display"})
"""Sections that only `serve`, the agent for models or the command line read, and no store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(Section):
    """Everything that can be set; without arguments, the defaults."""

    group_sessions_per_user: bool = key(Flag(), default=True)
    """Each person in a group or channel has a session of their own."""
    thread_sessions_per_user: bool = key(Flag(), default=False)
    """Each person in a thread has a session of their own."""
    multiplex_profiles: bool = key(Flag(), default=False)
    """The `profile` of a message's source chooses the namespace of its lane, `agent:<profile>:…`; no profile,
    and `default`, mean `main`. Off, the profile is kept with the source and changes no key."""
    allow_unidentified_sources: bool = key(Flag(), default=False)
    """Messages that name no chat, person or thread are accepted; on one platform, all of one chat type share
    one session."""
    session_store_max_age: timedelta | None = key(Duration("days", off=True), None)
    """The age at which an entry that nothing is written to is removed. None: entries are kept."""
    session_retention: timedelta | None = key(Duration("days", off=True), None)
    """The age at which an ended session that nobody has touched is removed with its messages, as
    [`sessions prune`](../how-to/keep-and-forget.md) does. None: sessions are kept."""
    timezone: str | None = key(ZONE, None)
    """The IANA zone of policies that name none. None: the zone of the machine, which `TZ`, else
    `/etc/localtime`, else `/etc/timezone` names, else UTC."""
    session_reset: SessionResetPolicy = block(SessionResetPolicy, RESET_POLICY)
    """When a session ends by itself: a block of these keys, or the word `never` or `hermes-classic`."""
    busy: BusyRules = block(BusyRules, BUSY)
    """What happens to messages that arrive while their lane is busy."""
    agent: AgentConfig = block(AgentConfig)
    """Time limits of agents, and what happens to work that a restart cut off."""
    agent_cache: AgentCacheConfig = block(AgentCacheConfig)
    """The cache of idle agents."""
    budgets: Budgets = block(Budgets, BUDGETS)
    """Limits on use, in dollars and in tokens."""
    gateway: GatewayConfig = block(GatewayConfig)
    """Limits of a gateway, and how it starts and ends."""
    delivery: DeliveryConfig = block(DeliveryConfig)
    """Time limits and retries for sending replies."""
    model: ModelConfig = block(ModelConfig)
    """The model that answers with `--agent openai`, at any endpoint for chat completions."""
    serve: ServeConfig = block(ServeConfig)
    """The connections of `gateway-sessions serve`, and its ports."""
    display: DisplayConfig = block(DisplayConfig)
    """How the command line shows a conversation."""
    sessiondb: SessionDBConfig = block(SessionDBConfig)
    """The database: its kind, its place, and how safe writes are."""
    cluster: ClusterRules = block(ClusterRules, CLUSTER)
    """How several processes share one database on a server."""
    sessions_json: SessionsJsonConfig = block(
        SessionsJsonConfig, block_of_record(SessionsJsonConfig, word_of="mode")
    )
    """The readable snapshot of all entries. One word sets the mode: `sessions_json: off`."""
    expiry_watcher: ExpiryWatcherConfig = block(ExpiryWatcherConfig)
    """How often sessions that are due are ended, and old entries removed."""
    hooks: HooksConfig = block(HooksConfig)
    """Time limits and retries for calls of hooks."""
    backups: BackupsConfig = block(BackupsConfig)
    """How often the database is copied, and how many copies are kept."""
    cache: CacheConfig = block(CacheConfig)
    """The part of the database that is kept in memory."""
    search: SearchConfig = block(SearchConfig)
    """How searches match words."""
    privacy: PrivacyConfig = block(PrivacyConfig)
    """The personal data that agents get."""
    platforms: Mapping[str, PlatformConfig] = named_blocks(PlatformConfig)
    """Settings of single platforms, by their names in lower case. A key that is not set there has the value
    of the level above."""

    file: Path | None = field(default=None, compare=False)
    """The file that was read, if there was one."""
    unresolved: tuple[ConfigProblem, ...] = field(default=(), compare=False)
    """Problems of values that name variables that are not set, if reading was lenient."""

    def __post_init__(self) -> None:
        """Write the names of platforms as message sources do, and make the mapping read-only."""
        Section.__post_init__(self)
        platforms = {name.strip().lower(): platform for name, platform in self.platforms.items()}
        object.__setattr__(self, "platforms", MappingProxyType(platforms))

    def contradictions(self) -> Iterator[Contradiction]:
        """Yield a problem if two names mean one platform, or a name is empty."""
        names = {name.strip().lower() for name in self.platforms}
        if len(names) != len(self.platforms) or "" in names:
            yield "platforms", "must be named, each differently in lower case"

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Self:
        """Return the configuration that the keys of a file would give, without the environment."""
        # Imported when needed: programs without a file need no YAML.
        from gateway_sessions.config.reading import read_config_mapping  # noqa: PLC0415

        return read_config_mapping(cls, values)

    def require(self, *sections: str) -> None:
        """Raise `ConfigError` if a value of one of these sections stands for a variable that is not set."""
        needed = [one for one in self.unresolved if _section_of(one) in sections]
        if needed:
            raise ConfigError(str(self.file or "configuration"), needed)

    def require_for_store(self) -> None:
        """Raise `ConfigError` if a value that the owner of a store needs is such a value."""
        self.require(*{_section_of(one) for one in self.unresolved} - PROGRAM_SECTIONS)

    @property
    def isolation(self) -> Isolation:
        """The rules by which people share a conversation."""
        return Isolation(
            group_sessions_per_user=self.group_sessions_per_user,
            thread_sessions_per_user=self.thread_sessions_per_user,
            multiplex_profiles=self.multiplex_profiles,
        )

    @property
    def snapshot_mode(self) -> SnapshotMode:
        """The mode of the snapshot; with a database on a server it is `off` unless it is set."""
        if self.sessions_json.mode is not None:
            return self.sessions_json.mode
        return SnapshotMode.OFF if self.sessiondb.is_server else SnapshotMode.COALESCED

    def policy_book(self, system_zone: str | None = None) -> PolicyBook:
        """Return all reset policies; *system_zone*, else the machine's, counts where none is named."""
        self.require("timezone", "session_reset", "platforms")
        policies = {name: one.session_reset for name, one in self.platforms.items() if one.session_reset}
        chat_types = {
            (name, kind): chat_type.session_reset
            for name, platform in self.platforms.items()
            for kind, chat_type in platform.chat_types.items()
            if chat_type.session_reset
        }
        return PolicyBook(
            default=self.session_reset,
            by_platform=policies,
            by_chat_type=chat_types,
            zone_name=self.timezone or system_zone or system_zone_name(),
        )

    def get_reset_policy(self, platform: str, chat_type: str = "dm") -> SessionResetPolicy:
        """Return the policy of a chat type on a platform, else the platform's, else the default one."""
        return self.policy_book("UTC").resolve(platform.strip().lower(), chat_type).policy

    def busy_book(self) -> BusyBook:
        """Return all rules for busy lanes."""
        self.require("busy", "platforms")
        platforms = self.platforms.items()
        chat_types = {
            (name, kind): chat_type.busy
            for name, platform in platforms
            for kind, chat_type in platform.chat_types.items()
            if chat_type.busy
        }
        by_platform = {name: platform.busy for name, platform in platforms if platform.busy}
        return BusyBook(default=self.busy, by_platform=by_platform, by_chat_type=chat_types)

    def busy_rules_for(
        self, platform: str, chat_type: str = "dm", override: BusyRules | BusyMode | None = None
    ) -> BusyRules:
        """Return the session's own rules, else those of a chat type, of its platform, or the default ones."""
        return self.busy_book().rules_for(platform.strip().lower(), chat_type, override)


ALL_KEYS: Final = block_of_record(Config)
"""All keys there are."""


def _section_of(problem: ConfigProblem) -> str:
    """Return the first key of a problem's path; a home channel counts as a section of its own."""
    if ".home_channel" in problem.path:
        return "home_channel"
    return problem.path.partition(".")[0].partition("[")[0]
