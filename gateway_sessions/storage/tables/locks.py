"""The names of the locks that transactions take on servers.

Only the transactions that run for every message name locks. They take the lock of their lane before they read
any row of the lane, its entry included, and the lock of a session after that: always in this order, so that
no two of them wait for each other. All other transactions name no lock: they run alone, and may read any row.
"""

from __future__ import annotations

from typing import Final

_LANE: Final = "lane "


def of_lane(session_key: str) -> str:
    """Return the name of the lock on a lane with its entry, its queue and its lease."""
    return f"{_LANE}{session_key}"


def is_of_lane(lock: str) -> bool:
    """Return whether a lock is the lock of a lane."""
    return lock.startswith(_LANE)


def of_session(session_id: str) -> str:
    """Return the name of the lock on the transcript of a session and its totals."""
    return f"session {session_id}"


OF_INDEX: Final = "index"
"""The lock on the notes of changes that the search index in the database has not read yet."""


def of_reply(reply_id: int) -> str:
    """Return the name of the lock on a reply that is being sent."""
    return f"reply {reply_id}"


def of_signals(epoch: int) -> str:
    """What others ask a node for."""
    return f"mail {epoch}"
