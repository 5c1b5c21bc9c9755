"""What the options in front of all commands say."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

HOME_VARIABLE: Final = "GATEWAY_SESSIONS_HOME"
CONFIG_VARIABLE: Final = "GATEWAY_SESSIONS_CONFIG"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What counts for any command."""

    home: str | None = None
    config: Path | None = None
    as_json: bool = False
    yes: bool = False
    debug: bool = False
