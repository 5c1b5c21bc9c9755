"""Entry points by which other packages extend this one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final

PROVIDERS: Final = "gateway_sessions.providers"
"""The group of packages that bring a kind of database. The name of an entry point is the scheme of its
addresses."""


@cache
def registered(group: str) -> Mapping[str, EntryPoint]:
    """Return the entry points of a group, by name.

    The first call reads the list of all installed packages from the disk, so it should be made in a thread,
    and only if needed.
    """
    return {one.name: one for one in entry_points(group=group)}
