"""Named points at which a test can stop, kill or fail the program; nothing happens unless one is armed."""

from __future__ import annotations

from collections.abc import Callable

_armed: Callable[[str], None] | None = None


def failpoint(name: str) -> None:
    """Pass the point *name*."""
    if _armed is not None:
        _armed(name)


def arm(action: Callable[[str], None] | None) -> None:
    """Call *action* at every point passed from now on; None disarms."""
    global _armed  # noqa: PLW0603 -- one process-wide switch, set only by tests
    _armed = action
