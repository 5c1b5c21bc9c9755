"""Configuration: read once at the edge, checked as a whole, then frozen.

What is written (YAML, references to the environment, overriding variables) is known to `reading` and what it
uses; everybody else sees the records of `model` and `sections`, which import neither pydantic nor YAML.
"""

from gateway_sessions.config.gateway_sections import (
    AgentCacheConfig,
    Ambiguous,
    DeliveryConfig,
    DisplayConfig,
    GatewayConfig,
    ModelConfig,
    ServeConfig,
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
    "load_config",
    "parse_config",
    "system_zone_name",
]
