"""The whole configuration as one frozen record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Self

from gateway_sessions.config.gateway_sections import (
    AgentCacheConfig,
    DeliveryConfig,
    DisplayConfig,
    GatewayConfig,
    ModelConfig,
    ServeConfig,
)
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
from gateway_sessions.config.zones import similar_zone, system_zone_name
from gateway_sessions.core.boundaries import zone_named
from gateway_sessions.core.budgets import Budgets
from gateway_sessions.core.busy import BusyRules
from gateway_sessions.core.busy_book import BusyBook
from gateway_sessions.core.busy_mode import BusyMode
from gateway_sessions.core.cluster import ClusterRules
from gateway_sessions.core.keys import Isolation
from gateway_sessions.core.limits import off_or_time
from gateway_sessions.core.policies import SessionResetPolicy
from gateway_sessions.core.policy_book import PolicyBook
from gateway_sessions.error_details import ConfigProblem
from gateway_sessions.errors import ConfigError, InvalidPolicyError

OF_PROGRAMS: Final = frozenset({"serve", "model", "display"})
"""What only the program reads that serves, answers or shows, and no store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything that can be set; without arguments, the defaults."""

    group_sessions_per_user: bool = True
    thread_sessions_per_user: bool = False
    multiplex_profiles: bool = False
    """Whether the `profile` of a message's source chooses the namespace of its lane."""
    allow_unidentified_sources: bool = False
    session_store_max_age: timedelta | None = None
    """How long an unused entry is kept; None: for ever."""
    session_retention: timedelta | None = None
    """How long a session is kept that has ended and that nobody has touched since; None: for ever."""
    timezone: str | None = None
    """The zone of policies that name none; None: the machine's."""
    session_reset: SessionResetPolicy = field(default_factory=SessionResetPolicy)
    busy: BusyRules = field(default_factory=BusyRules)
    """What becomes of messages that come while their lane is busy."""
    agent: AgentConfig = field(default_factory=AgentConfig)
    agent_cache: AgentCacheConfig = field(default_factory=AgentCacheConfig)
    budgets: Budgets = field(default_factory=Budgets)
    gateway: GatewayConfig = field(default_factory=GatewayConfig)
    delivery: DeliveryConfig = field(default_factory=DeliveryConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    """Read by the agent that is called `openai` on the command line."""
    serve: ServeConfig = field(default_factory=ServeConfig)
    """Read by `gateway-sessions serve` only."""
    display: DisplayConfig = field(default_factory=DisplayConfig)
    """Read by the command line only."""
    sessiondb: SessionDBConfig = field(default_factory=SessionDBConfig)
    cluster: ClusterRules = field(default_factory=ClusterRules)
    """How the processes get along that have one database on a server open."""
    sessions_json: SessionsJsonConfig = field(default_factory=SessionsJsonConfig)
    expiry_watcher: ExpiryWatcherConfig = field(default_factory=ExpiryWatcherConfig)
    hooks: HooksConfig = field(default_factory=HooksConfig)
    backups: BackupsConfig = field(default_factory=BackupsConfig)
    cache: CacheConfig = field(default_factory=CacheConfig)
    search: SearchConfig = field(default_factory=SearchConfig)
    privacy: PrivacyConfig = field(default_factory=PrivacyConfig)
    platforms: Mapping[str, PlatformConfig] = field(default_factory=dict[str, PlatformConfig])
    """By name, written as message sources write it: in lower case."""

    file: Path | None = field(default=None, compare=False)
    """Where it was read, if it was a file."""
    unresolved: tuple[ConfigProblem, ...] = field(default=(), compare=False)
    """Values that stand for variables that are not set, if that was allowed."""

    def __post_init__(self) -> None:
        platforms = {name.strip().lower(): platform for name, platform in self.platforms.items()}
        problems = [*self._problems()]
        if len(platforms) != len(self.platforms) or "" in platforms:
            problems.append(ConfigProblem("platforms", "must be named, each differently in lower case"))
        if problems:
            raise ConfigError("configuration", problems)
        object.__setattr__(self, "platforms", MappingProxyType(platforms))

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Self:
        """Return the configuration that the keys of a file would give, without the environment."""
        # Imported when needed: pydantic and YAML would double the time that importing the package takes.
        from gateway_sessions.config.reading import read_mapping  # noqa: PLC0415

        return read_mapping(cls, values)

    def require(self, *sections: str) -> None:
        """Raise `ConfigError` if a value of one of these sections stands for a variable that is not set."""
        needed = [one for one in self.unresolved if _section_of(one) in sections]
        if needed:
            raise ConfigError(str(self.file or "configuration"), needed)

    def require_for_store(self) -> None:
        """Raise `ConfigError` if that is so of anything that counts for whoever owns a store."""
        self.require(*{_section_of(one) for one in self.unresolved} - OF_PROGRAMS)

    @property
    def isolation(self) -> Isolation:
        """Who shares a conversation with whom."""
        return Isolation(
            group_sessions_per_user=self.group_sessions_per_user,
            thread_sessions_per_user=self.thread_sessions_per_user,
            multiplex_profiles=self.multiplex_profiles,
        )

    @property
    def snapshot_mode(self) -> SnapshotMode:
        """When sessions.json is written: with a server never, unless somebody wants that."""
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

    def _problems(self) -> list[ConfigProblem]:
        problems: list[ConfigProblem] = []
        if finding := off_or_time("session_store_max_age_days", self.session_store_max_age):
            problems.append(ConfigProblem(*finding))
        if finding := off_or_time("session_retention_days", self.session_retention):
            problems.append(ConfigProblem(*finding))
        if self.timezone is not None:
            try:
                zone_named(self.timezone)
            except InvalidPolicyError as error:
                suggestion = similar_zone(self.timezone)
                problems.append(ConfigProblem("timezone", error.problem, suggestion=suggestion))
        return problems


def _section_of(problem: ConfigProblem) -> str:
    """The section of a path, or its first key; where a platform's home is says nothing of its policies."""
    if ".home_channel" in problem.path:
        return "home_channel"
    return problem.path.partition(".")[0].partition("[")[0]
