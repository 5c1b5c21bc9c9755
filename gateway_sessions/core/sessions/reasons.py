"""`EndReason`: why a session ended, as rows, the transition log and notices say it."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class EndReason(StrEnum):
    """The reason of a session's end, in its row, in the transition log, and in the next session's notice."""

    IDLE = "idle"
    DAILY = "daily"
    CRON = "cron"
    SUSPENDED = "suspended"
    RESUME_PENDING_EXPIRED = "resume_pending_expired"
    MOVED = "moved"  # the session was resumed on another lane
    SESSION_RESET = "session_reset"  # a person asked for a new session
    SESSION_SWITCH = "session_switch"  # a person went to another session
    RESET_UNDONE = "reset_undone"  # a person went back to the session before
    PRUNED = "pruned"
    COMPRESSION = "compression"  # a summary of it goes on in a session of its own

    @property
    def is_automatic(self) -> bool:
        """Whether the end came without a request from the chat, so that a notice must tell people."""
        return self in _AUTOMATIC


_AUTOMATIC: Final = frozenset(
    {
        EndReason.IDLE,
        EndReason.DAILY,
        EndReason.CRON,
        EndReason.SUSPENDED,
        EndReason.RESUME_PENDING_EXPIRED,
        EndReason.MOVED,
    }
)
