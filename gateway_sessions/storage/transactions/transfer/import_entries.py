"""Import entries of lanes from a snapshot or from Hermes; a lane with a session keeps it.

Because a lane keeps its session, an import can be repeated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway_sessions.core.instants import to_micros
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables import tombstones
from gateway_sessions.storage.tables.change import Change, LaneEvent
from gateway_sessions.storage.tables.column_decoding import decode_json
from gateway_sessions.storage.tables.entries import EntryRow, put
from gateway_sessions.storage.tables.meta import set_fact
from gateway_sessions.storage.transactions.sessions.session_rows import add_session_row
from gateway_sessions.storage.transactions.sessions.session_transitions import transition_statement
from gateway_sessions.storage.transactions.transfer.import_session import load_session_columns, read_note

IMPORTED = "index_imported"
"""The fact that the file found at the first start was imported, or that there was none."""


def import_entries(change: Change, entries: Sequence[SessionEntry]) -> Transaction[int]:
    """Write the entries whose lane and session are not known yet; return how many.

    Entries that began before an erasure of their owner are left out.
    """
    written = 0
    for entry in entries:
        if (yield from tombstones.erased_since(entry.owner, to_micros(entry.created_at))) is not None:
            continue
        if (yield Statement("entry_by_key", (entry.session_key,))):
            continue
        if (yield Statement("entry_by_session", (entry.session_id,))):
            # An import was cut off, and the file has moved the session since: its people are told so.
            yield Statement("mark_moved", (entry.session_key, entry.session_id))
            continue
        if not (yield Statement("session_exists", (entry.session_id,))):
            yield from add_session_row(entry, entry.created_at, entry.previous_session_id)
        new = entry.altered(entry_id=next(change.entry_ids), version=max(entry.version, 1))
        stored = yield from put(change.with_due_instant(new))
        yield transition_statement(change, stored, LaneEvent.IMPORTED)
        written += 1
    return written


def mark_import_done() -> Transaction[None]:
    """Store that the file was imported, so that it is never read again."""
    yield from set_fact(IMPORTED, 1)


@dataclass(frozen=True, slots=True)
class KnownSession:
    """A session that the store has already."""

    provenance: Mapping[str, Any] | None
    """The note of how much of it was imported before; None: the session came from somewhere else."""
    empty: bool
    parent: str | None = None
    """The parent that the session still waits for."""
    relation: str | None = None


@dataclass(frozen=True, slots=True)
class LaneState:
    """The session that a lane has, and the lane that has the session to import."""

    session_id: str | None
    holder: str | None
    erased: bool = False
    """True if the owner was erased since the session began."""

    @property
    def free(self) -> bool:
        """Return whether the lane can have the session."""
        return self.session_id is None and self.holder is None and not self.erased


def load_known_sessions(session_ids: Sequence[str], member: str) -> Transaction[dict[str, KnownSession]]:
    """Return those of the sessions that the store has already."""
    found: dict[str, KnownSession] = {}
    for session_id in session_ids:
        columns = yield from load_session_columns(session_id)
        if columns is None:
            continue
        extra = decode_json(f"session {session_id!r}", columns.extra or "{}", dict[str, Any])
        counts = yield Statement("stored_messages_of_session", (session_id,))
        note = read_note(columns.extra)
        empty = not any(stored for _, stored in counts)
        found[session_id] = KnownSession(
            extra.get(member), empty, note.get("parent_session_id"), note.get("relation")
        )
    return found


def load_lane_states(entries: Sequence[SessionEntry]) -> Transaction[list[LaneState]]:
    """Return the obstacles to an import for each lane."""
    states: list[LaneState] = []
    for entry in entries:
        rows = yield Statement("entry_by_key", (entry.session_key,))
        session_id = EntryRow._make(rows[0]).session_id if rows else None
        holders = yield Statement("lane_of_session", (entry.session_id,))
        holder = next((session_key for (session_key,) in holders), None)
        erased = yield from tombstones.erased_since(entry.owner, to_micros(entry.created_at))
        states.append(LaneState(session_id, holder, erased is not None))
    return states
