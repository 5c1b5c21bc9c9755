"""The configuration: read once, checked as a whole, and frozen.

- ``core_blocks``: The blocks whose records belong to the core, with the kind of each field.
- ``draft``: `Draft`: a configuration while it is read, with its plain values, their lines, and the problems
  so far.
- ``environment_names``: The names of environment variables that override the configuration file;
  `overrides` reads their values.
- ``environment_overrides``: Values that environment variables set.
- ``gateway_sections``: The sections of a configuration that only a gateway or the command line reads.
- ``keys``: The declaration of keys: each one stands on the field of the record that holds its value.
- ``kinds``: The kinds of values: each reads a value of a file, checks it, writes it, and names itself in
  the reference.
- ``loading``: Loading of a configuration from a file and the environment.
- ``misspellings``: Warnings about names of platforms and chat types that look like misspelt well-known
  ones.
- ``model``: `Config`: the whole configuration as one frozen record.
- ``origins``: The origin of each value: the line, the variable or the session that has set it.
- ``reading``: Reading of a configuration into records, which reports all problems at the end.
- ``sections``: The sections of a configuration that a store reads.
- ``yaml_source``: Reading of YAML text into plain values, with the line of every key.
- ``zones``: The zone of the machine, and suggestions for misspelt names of zones.
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
