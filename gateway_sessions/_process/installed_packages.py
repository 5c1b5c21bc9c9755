"""The installed packages: the version of this one, and those that bring kinds of databases along.

`importlib.metadata` is imported late: that takes milliseconds, and these functions read the disk anyway.
"""

# ruff: noqa: PLC0415 -- see above

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


@cache
def program_version() -> str:
    """Return the version of this package. Call it in a thread: it reads the disk."""
    from importlib.metadata import version

    return version("gateway-sessions")


@cache
def installed_providers() -> Mapping[str, EntryPoint]:
    """Return the entry points of the installed providers, by the scheme of their databases' addresses.

    The first call reads the list of all installed packages from the disk: make it in a thread, and only if
    the address is of no kind that this package knows.
    """
    from importlib.metadata import entry_points

    return {one.name: one for one in entry_points(group="gateway_sessions.providers")}


@cache
def installed_adapters() -> Mapping[str, EntryPoint]:
    """Return the entry points of the installed adapters, by the name of their platform.

    The first call reads the list of all installed packages from the disk: make it in a thread, and only for
    a platform that this package does not bring along.
    """
    from importlib.metadata import entry_points

    return {one.name: one for one in entry_points(group="gateway_sessions.adapters")}
