"""Named points at which a test can stop, kill or fail the program; nothing happens unless one is armed."""

from __future__ import annotations

from collections.abc import Callable

_armed: Callable[[str], None] | None = None


def failpoint(name: str) -> None:
    """Run the armed action, if there is one, at the point *name*."""
    if _armed is not None:
        _armed(name)


def arm_failpoints(action: Callable[[str], None] | None) -> None:
    """Call *action* at every point that is passed from now on; None disarms all points."""
    global _armed  # noqa: PLW0603 -- one process-wide switch, set only by tests
    _armed = action
