"""Reads that cross lanes; each takes a scope."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import msgspec

from gateway_sessions.core.instants import from_micros, to_micros
from gateway_sessions.core.scope import Scope
from gateway_sessions.core.session import SessionEntry
from gateway_sessions.ports import Statement, Verb
from gateway_sessions.storage.verbs.entries import (
    ENTRY_ID,
    UPDATED_AT,
    load_by_session,
    readable,
    unarchive,
)
from gateway_sessions.storage.verbs.lane_rows import load_lane

FAR_FUTURE = 1 << 62


@dataclass(frozen=True, slots=True)
class Transition:
    """One thing that happened to a session."""

    at: datetime
    session_id: str
    event: str
    from_state: str | None
    to_state: str
    reason: str | None
    actor: str


@dataclass(frozen=True, slots=True)
class Lane:
    """What is known of a lane besides its session."""

    running: bool = False
    attempts: int = 0
    moved_session_id: str | None = None
    epoch: int | None = None
    """Which opening of the store runs the turn."""
    token: int | None = None
    """The lease of the turn: how many have been given the lane."""
    running_since: datetime | None = None
    cut_off: bool = False
    """Whether the process is gone that began the turn, as far as somebody has looked."""


def list_entries(
    scope: Scope, since: datetime | None, after: SessionEntry | None, limit: int
) -> Verb[list[SessionEntry]]:
    """Visible entries, the latest written first, behind the one that ended the page before.

    Damaged ones are left aside; a page that is not full is the last one all the same.
    """
    oldest = to_micros(since) if since is not None else -FAR_FUTURE
    position = (to_micros(after.updated_at), after.entry_id) if after is not None else (FAR_FUTURE, 0)
    name, asked = "list_entries", tuple[Any, ...]()
    if not scope.sees_everything:
        owners = msgspec.json.encode(sorted(scope.owners)).decode()
        name, asked = "list_entries_of_owners", (owners, scope.session_key)
    found: list[SessionEntry] = []
    while room := limit - len(found):
        rows = yield Statement(name, (*asked, oldest, *position, room))
        found += readable(rows)
        if len(rows) < room:
            break
        position = rows[-1][UPDATED_AT], rows[-1][ENTRY_ID]
    return found


def entry_of_session(session_id: str, scope: Scope) -> Verb[SessionEntry | None]:
    """The entry that holds a session now, if it is visible."""
    entry = yield from load_by_session(session_id)
    if entry is None or not scope.sees(owner=entry.owner, session_key=entry.session_key):
        return None
    return entry


def ended_entry(session_id: str) -> Verb[SessionEntry | None]:
    """The record of a session that is over; None if it goes on, or is gone."""
    rows = yield Statement("get_session", (session_id,))
    ended_at, record = (rows[0][2], rows[0][5]) if rows else (None, None)
    return unarchive(record) if ended_at is not None and record is not None else None


def lane(session_key: str) -> Verb[Lane]:
    """Whether a turn runs and by which lease, how often it was cut off, and what was resumed elsewhere."""
    row = yield from load_lane(session_key)
    known = Lane(running=row.running, attempts=row.attempts, moved_session_id=row.moved_session_id)
    if row.lease_epoch is None or row.leased_at is None:
        return known
    since = from_micros(row.leased_at)
    return replace(known, epoch=row.lease_epoch, token=row.lease_token, running_since=since)


def transitions(session_key: str, limit: int) -> Verb[list[Transition]]:
    """The latest things that happened on a lane, newest first."""
    rows = yield Statement("transitions_of_lane", (session_key, limit))
    return [Transition(from_micros(row[0]), *row[1:]) for row in rows]


def any_session() -> Verb[bool]:
    """Whether there has ever been a session."""
    return bool((yield Statement("any_session")))
