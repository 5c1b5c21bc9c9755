"""The names of the locks that transactions take on servers.

Only the transactions of every message name locks. They take the lock of their lane before they look at
anything of it, its entry included, and the lock of a session behind that: always in this order, so that no
two wait for each other. All other transactions name none: they run alone, and may look wherever they like.
"""

from __future__ import annotations

from typing import Final

_LANE: Final = "lane "


def of_lane(session_key: str) -> str:
    """A lane with its entry, its queue and its lease."""
    return f"{_LANE}{session_key}"


def is_of_lane(lock: str) -> bool:
    """Whether it is the lock of a lane."""
    return lock.startswith(_LANE)


def of_session(session_id: str) -> str:
    """The transcript of a session, and what it adds up to."""
    return f"session {session_id}"


OF_INDEX: Final = "index"
"""What the search index in the database does not know yet."""


def of_reply(reply_id: int) -> str:
    """A reply on its way out."""
    return f"reply {reply_id}"


def of_signals(epoch: int) -> str:
    """What others ask a node for."""
    return f"mail {epoch}"
