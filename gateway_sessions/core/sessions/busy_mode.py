"""`BusyMode`: what a message does to a lane on which a turn runs."""

from __future__ import annotations

from enum import StrEnum


class BusyMode(StrEnum):
    """The effect of a message on a lane on which a turn runs."""

    QUEUE = "queue"  # it waits, and gets a turn of its own
    COLLECT = "collect"  # it waits, and all that one person says until then becomes one turn
    STEER = "steer"  # the running turn gets it, if its agent takes messages
    INTERRUPT = "interrupt"  # the running turn ends, and what it did stands
    REJECT = "reject"  # it is refused, unless it asks to wait
    ROLLBACK = "rollback"  # the running turn ends, and is taken back
