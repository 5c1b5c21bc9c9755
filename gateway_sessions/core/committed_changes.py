"""Records of what a transaction changed (`Transition`, `SessionEnd`), passed on after its commit.

A transaction attaches such a record to the statement that makes the change. The driver passes the record on
only once the commit stands, so nobody hears of a change that was rolled back.
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
    """The id of the lane's session from now on; if the lane loses its session, the id of the lost one."""
    event: str
    from_state: str | None
    to_state: str
    reason: str | None
    actor: str
    previous_session_id: str | None = None
    """The id of the session that this one continues or replaces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEnd:
    """The end of a lane's session; a session that has ended already does not end again."""

    at: datetime
    session_key: str
    session_id: str
    reason: str


CommittedChange: TypeAlias = Transition | SessionEnd
