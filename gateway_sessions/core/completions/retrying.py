"""When to ask a model again: only where it is certain that nobody has begun to answer.

A question may cost money, and what has been shown cannot be taken back. So it is asked again if no connection
was made, or if the endpoint itself said when to come back; never after anything else.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from gateway_sessions.model_errors import ModelUnavailableError

TRIES: Final = 3
FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 60.0
"""Seconds. Whoever is told to wait longer tells the person."""


def pause_before_next(
    error: ModelUnavailableError, tries: int, now: datetime, deadline: datetime | None
) -> float | None:
    """Seconds until the next try after so many; None: there is none."""
    if tries >= TRIES or (error.asked and error.retry_after is None):
        return None
    pause = error.retry_after if error.retry_after is not None else FIRST_PAUSE * 2 ** (tries - 1)
    in_time = deadline is None or now + timedelta(seconds=pause) < deadline
    return pause if pause <= LONGEST_PAUSE and in_time else None
