"""The version that is installed here, for reports of what went wrong."""

from __future__ import annotations

import platform
import sqlite3
from importlib.metadata import version

from gateway_sessions.cli.settings import NAMES


def installed() -> str:
    """Return the version of this package, and what decides how it behaves."""
    behind = f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {platform.platform()}"
    return f"{NAMES[0]} {version(NAMES[0])} ({behind})"
