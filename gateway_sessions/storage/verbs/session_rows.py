"""The row of a session: there from its beginning, whatever becomes of it."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Final

from gateway_sessions.core.instants import to_micros
from gateway_sessions.core.session import SessionEntry
from gateway_sessions.ports import Statement, Verb

UNKNOWN_SOURCE: Final = "unknown"


class Relation(StrEnum):
    """How a session came from its parent."""

    SUCCESSION = "succession"  # a reset or a move took the parent's place
    CONTINUATION = "continuation"  # the parent was compressed, and goes on here
    BRANCH = "branch"  # a copy of the parent up to some message
    DELEGATE = "delegate"  # the work of a sub-agent


def add_row(
    entry: SessionEntry, started_at: datetime, parent: str | None, relation: Relation = Relation.SUCCESSION
) -> Verb[None]:
    """A new session of a lane, with nothing said in it."""
    micros = to_micros(started_at)
    who = (entry.owner, entry.platform or UNKNOWN_SOURCE, entry.origin and entry.origin.participant_id)
    came = (parent, str(relation)) if parent is not None else (None, None)
    yield Statement("add_session", (entry.session_id, entry.session_key, *who, *came, micros))
    yield Statement("add_totals", (entry.session_id, micros))
