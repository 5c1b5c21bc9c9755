"""The names of environment variables that override the configuration file; `overrides` reads their values.

`GATEWAY_SESSIONS__SECTION__KEY=value` sets any key; the value is a YAML scalar, or a bracketed list or block.
Hermes' two variables for the default reset policy are known as well, and weaker.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

PREFIX: Final = "GATEWAY_SESSIONS__"
HERMES_VARIABLES: Final = MappingProxyType[str, tuple[str, ...]](
    {
        "SESSION_IDLE_MINUTES": ("session_reset", "idle_minutes"),
        "SESSION_RESET_HOUR": ("session_reset", "at_hour"),
    }
)


def is_overridden(environ: Mapping[str, str]) -> bool:
    """Return whether any variable overrides the configuration, correctly or not."""
    return any(environ.get(name) for name in HERMES_VARIABLES) or any(
        name.startswith(PREFIX) for name in environ
    )
