"""Records of what a transaction changed (`Transition`, `SessionEnd`), passed on after its commit.

A transaction says with a statement what that statement means. The driver passes it on once the commit stands,
and only then; so nobody hears of anything that was undone.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """A row of the transition log."""

    at: datetime
    session_key: str
    session_id: str
    """The session that the lane has from now on, or, where it loses its session, that one."""
    event: str
    from_state: str | None
    to_state: str
    reason: str | None
    actor: str
    previous_session_id: str | None = None
    """The session that this one comes from, or takes the place of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEnd:
    """A session of a lane is over. One that had ended already does not end again."""

    at: datetime
    session_key: str
    session_id: str
    reason: str


News: TypeAlias = Transition | SessionEnd
