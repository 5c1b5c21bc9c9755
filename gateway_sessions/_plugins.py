"""What other packages bring along for this one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final

PROVIDERS: Final = "gateway_sessions.providers"
"""Kinds of databases. The name of an entry point is what their addresses begin with."""


@cache
def registered(group: str) -> Mapping[str, EntryPoint]:
    """What packages bring along, by name.

    The first to ask looks at all packages, on the disk: only who needs to know should ask, and in a thread.
    """
    return {one.name: one for one in entry_points(group=group)}
