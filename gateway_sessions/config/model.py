"""The whole configuration is one frozen record."""

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
"""What only the program reads that serves, answers or shows, and no store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(Section):
    """Everything that can be set; without arguments, the defaults."""

    group_sessions_per_user: bool = key(Flag(), default=True)
    """Everybody in a group or channel has a session of their own."""
    thread_sessions_per_user: bool = key(Flag(), default=False)
    """Everybody in a thread has a session of their own."""
    multiplex_profiles: bool = key(Flag(), default=False)
    """The `profile` of a message's source chooses the namespace of its lane, `agent:<profile>:…`; no profile,
    and `default`, mean `main`. Off, the profile is kept with the source and changes no key."""
    allow_unidentified_sources: bool = key(Flag(), default=False)
    """Messages that name no chat, person or thread are accepted; per platform and chat type they all share
    one session."""
    session_store_max_age: timedelta | None = key(Duration("days", off=True), None)
    """Entries that nothing was written to for that long are removed; None keeps them."""
    session_retention: timedelta | None = key(Duration("days", off=True), None)
    """Sessions that have ended, and that nobody has touched for that long, are removed with all that was
    said in them, as [`sessions prune`](../how-to/keep-and-forget.md) does; None keeps them."""
    timezone: str | None = key(ZONE, None)
    """The IANA zone of policies that name none. None is the zone of the machine: what `TZ`, else
    `/etc/localtime`, else `/etc/timezone` names, else UTC."""
    session_reset: SessionResetPolicy = block(SessionResetPolicy, RESET_POLICY)
    """When a session ends by itself: these keys, or one word, `never` or `hermes-classic`."""
    busy: BusyRules = block(BusyRules, BUSY)
    """What becomes of messages that come while their lane is busy."""
    agent: AgentConfig = block(AgentConfig)
    """How long an agent may work, and what happens to work that a restart cut off."""
    agent_cache: AgentCacheConfig = block(AgentCacheConfig)
    """How many agents are kept warm, and how long."""
    budgets: Budgets = block(Budgets, BUDGETS)
    """How much may be spent, in dollars and in tokens."""
    gateway: GatewayConfig = block(GatewayConfig)
    """How much a gateway takes on, and how it ends and starts."""
    delivery: DeliveryConfig = block(DeliveryConfig)
    """How patiently replies are sent."""
    model: ModelConfig = block(ModelConfig)
    """The model that answers with `--agent openai`, at any endpoint for chat completions."""
    serve: ServeConfig = block(ServeConfig)
    """What `gateway-sessions serve` connects to, and where it listens."""
    display: DisplayConfig = block(DisplayConfig)
    """What the command line shows."""
    sessiondb: SessionDBConfig = block(SessionDBConfig)
    """Where the truth is kept, and how safely."""
    cluster: ClusterRules = block(ClusterRules, CLUSTER)
    """How processes get along that have one database on a server open."""
    sessions_json: SessionsJsonConfig = block(
        SessionsJsonConfig, block_of_record(SessionsJsonConfig, word_of="mode")
    )
    """The readable copy of all entries. One word sets the mode: `sessions_json: off`."""
    expiry_watcher: ExpiryWatcherConfig = block(ExpiryWatcherConfig)
    """When sessions that are due are looked for, and old entries removed."""
    hooks: HooksConfig = block(HooksConfig)
    """How patiently hooks are called."""
    backups: BackupsConfig = block(BackupsConfig)
    """How often the database is copied, and how many copies are kept."""
    cache: CacheConfig = block(CacheConfig)
    """How much of the database is kept at hand."""
    search: SearchConfig = block(SearchConfig)
    """How searches understand words."""
    privacy: PrivacyConfig = block(PrivacyConfig)
    """What agents are told about people."""
    platforms: Mapping[str, PlatformConfig] = named_blocks(PlatformConfig)
    """What is different on one platform, by its name in lower case. What an override does not set, it takes
    from the level above."""

    file: Path | None = field(default=None, compare=False)
    """Where it was read, if it was a file."""
    unresolved: tuple[ConfigProblem, ...] = field(default=(), compare=False)
    """Values that stand for variables that are not set, if that was allowed."""

    def __post_init__(self) -> None:
        """Call each platform as message sources do, and let nobody change them."""
        Section.__post_init__(self)
        platforms = {name.strip().lower(): platform for name, platform in self.platforms.items()}
        object.__setattr__(self, "platforms", MappingProxyType(platforms))

    def contradictions(self) -> Iterator[Contradiction]:
        """Yield names that stand for one platform, or for none."""
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
        """Raise `ConfigError` if that is so of anything that counts for whoever owns a store."""
        self.require(*{_section_of(one) for one in self.unresolved} - PROGRAM_SECTIONS)

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


ALL_KEYS: Final = block_of_record(Config)
"""All keys there are."""


def _section_of(problem: ConfigProblem) -> str:
    """The section of a path, or its first key; where a platform's home is says nothing of its policies."""
    if ".home_channel" in problem.path:
        return "home_channel"
    return problem.path.partition(".")[0].partition("[")[0]
