"""What can be typed: a record for each command. `cli/work` does it, and is loaded when it is wanted."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import typer

from gateway_sessions.cli.commands import (
    alone,
    configuration,
    importing,
    privacy,
    queue,
    sessiondb,
    sessions,
)

ALONE: Final = alone.app
"""The commands that belong to no group."""
GROUPS: Final[Mapping[str, typer.Typer]] = MappingProxyType(
    {
        "sessions": sessions.app,
        "queue": queue.app,
        "sessiondb": sessiondb.app,
        "import": importing.app,
        "privacy": privacy.app,
        "config": configuration.app,
    }
)
"""The others, by the names that people type."""
