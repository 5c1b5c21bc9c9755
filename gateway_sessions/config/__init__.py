"""A configuration is read once at the edge, checked as a whole, and frozen.

- ``core_blocks``: Blocks whose records belong to the core take fields, defaults, limits and descriptions
  from there.
- ``draft``: A draft is a configuration while it is read: plain values, their lines, and what is wrong so
  far.
- ``environment_names``: The names of environment variables that override the configuration file;
  `overrides` reads their values.
- ``gateway_sections``: These sections are read by a gateway only: turns, replies, warm agents, adapters.
- ``keys``: A key is declared once, on the field of the record that holds its value.
- ``kinds``: A kind knows how a file writes a value, which values are right, and what the reference calls
  them.
- ``loading``: A configuration comes from a file and the environment, read once.
- ``misspellings``: Names are free to choose, and those that are nearly well-known ones are probably slips.
- ``model``: The whole configuration is one frozen record.
- ``origins``: Each value has an origin: the line, the variable or the session that has set it.
- ``overrides``: Variables of the environment set values as a file would.
- ``reading``: Reading goes on after each mistake, and tells all of them at the end.
- ``sections``: These sections are read by a store.
- ``yaml_source``: YAML text becomes plain values, with the line of every key.
- ``zones``: The machine has a zone, and a name of none may be meant for one that is like it.
"""

from gateway_sessions.config.gateway_sections import (
    AgentCacheConfig,
    Ambiguous,
    DeliveryConfig,
    DisplayConfig,
    GatewayConfig,
    ModelConfig,
    ServeConfig,
    UnknownCommands,
)
from gateway_sessions.config.loading import load_config, parse_config
from gateway_sessions.config.model import Config
from gateway_sessions.config.sections import (
    AgentConfig,
    BackupsConfig,
    CacheConfig,
    ChatTypeConfig,
    Durability,
    ExpiryWatcherConfig,
    HooksConfig,
    PlatformConfig,
    PrivacyConfig,
    Provider,
    SearchConfig,
    SessionDBConfig,
    SessionsJsonConfig,
    SnapshotMode,
)
from gateway_sessions.config.zones import system_zone_name

__all__ = [
    "AgentCacheConfig",
    "AgentConfig",
    "Ambiguous",
    "BackupsConfig",
    "CacheConfig",
    "ChatTypeConfig",
    "Config",
    "DeliveryConfig",
    "DisplayConfig",
    "Durability",
    "ExpiryWatcherConfig",
    "GatewayConfig",
    "HooksConfig",
    "ModelConfig",
    "PlatformConfig",
    "PrivacyConfig",
    "Provider",
    "SearchConfig",
    "ServeConfig",
    "SessionDBConfig",
    "SessionsJsonConfig",
    "SnapshotMode",
    "UnknownCommands",
    "load_config",
    "parse_config",
    "system_zone_name",
]
