"""The options in front of all commands, and the names of the program."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

NAMES: Final = ("gateway-sessions", "gsess")
HOME_VARIABLE: Final = "GATEWAY_SESSIONS_HOME"
CONFIG_VARIABLE: Final = "GATEWAY_SESSIONS_CONFIG"
PATIENCE_SECONDS: Final = 600
"""The time limit for long work of the process that has the store open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The options for all commands."""

    home: str | None = None
    config: Path | None = None
    as_json: bool = False
    yes: bool = False
    debug: bool = False


def name_of_program() -> str:
    """Return the name by which the program was called."""
    called = Path(sys.argv[0]).name
    return called if called in NAMES else NAMES[0]
