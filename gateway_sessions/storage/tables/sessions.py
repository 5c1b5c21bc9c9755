"""The rows of sessions as many transactions read them: whose a session is, and how it ended."""

from __future__ import annotations

from typing import NamedTuple

from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables.sql_files import row_of


@row_of("get_session")
class StoredSession(NamedTuple):
    """The owner and the lane of a session, and its end, if it has ended."""

    session_key: str | None
    owner: str
    ended_at: int | None
    end_reason: str | None
    ends: int
    """The number of times that the session ended."""
    entry: str | None
    """The lane's entry as it was when the session ended."""


@row_of("session_to_descend_from")
class AncestorRow(NamedTuple):
    """The columns of a session that its continuation or branch takes over."""

    owner: str
    title: str | None
    ended_at: int | None
    end_reason: str | None
    started_at: int


def stored_session(session_id: str) -> Transaction[StoredSession | None]:
    """Return whose a session is and how it ended; None if there is no such session."""
    rows = yield Statement("get_session", (session_id,))
    return StoredSession._make(rows[0]) if rows else None


def ancestor(session_id: str) -> Transaction[AncestorRow | None]:
    """Return what a descendant takes from a session; None if there is no such session."""
    rows = yield Statement("session_to_descend_from", (session_id,))
    return AncestorRow._make(rows[0]) if rows else None
