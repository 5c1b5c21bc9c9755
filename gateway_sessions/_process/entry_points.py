"""The entry points by which other packages bring kinds of databases."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points


@cache
def installed_providers() -> Mapping[str, EntryPoint]:
    """Return the entry points of the installed providers, by the scheme of their databases' addresses.

    The first call reads the list of all installed packages from the disk: make it in a thread, and only if
    the address is of no kind that this package knows.
    """
    return {one.name: one for one in entry_points(group="gateway_sessions.providers")}
