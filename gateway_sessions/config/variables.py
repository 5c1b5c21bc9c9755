"""Which environment variables say something about the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

PREFIX: Final = "GATEWAY_SESSIONS__"
HERMES_VARIABLES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "SESSION_IDLE_MINUTES": ("session_reset", "idle_minutes"),
        "SESSION_RESET_HOUR": ("session_reset", "at_hour"),
    }
)


def is_overridden(environ: Mapping[str, str]) -> bool:
    """Whether any variable says something, right or wrong."""
    return any(environ.get(name) for name in HERMES_VARIABLES) or any(
        name.startswith(PREFIX) for name in environ
    )
