"""Import entries of lanes from a snapshot or from Hermes; a lane with a session keeps it.

Writing imported entries; a lane that has a session already keeps it, so an import can be repeated.

What is here already of a Hermes home that is taken in.
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
from gateway_sessions.storage.tables.columns import from_json
from gateway_sessions.storage.tables.entries import put
from gateway_sessions.storage.tables.meta import remember
from gateway_sessions.storage.transactions.sessions.replace import transition
from gateway_sessions.storage.transactions.sessions.session_rows import add_row
from gateway_sessions.storage.transactions.transfer.import_session import columns_of, note_in

IMPORTED = "index_imported"
"""Set once the file that was found at the first start has been taken in, or there was none."""


def import_entries(change: Change, entries: Sequence[SessionEntry]) -> Transaction[int]:
    """Write those entries whose lane and session are not known yet; how many that were.

    Not those that began before their owner was erased.
    """
    written = 0
    for entry in entries:
        if (yield from tombstones.erased_since(entry.owner, to_micros(entry.created_at))) is not None:
            continue
        if (yield Statement("entry_by_key", (entry.session_key,))):
            continue
        if (yield Statement("entry_by_session", (entry.session_id,))):
            # The import was cut off, and the file has moved the session meanwhile: the lane will be told so.
            yield Statement("mark_moved", (entry.session_key, entry.session_id))
            continue
        if not (yield Statement("session_exists", (entry.session_id,))):
            yield from add_row(entry, entry.created_at, entry.previous_session_id)
        new = entry.altered(entry_id=next(change.entry_ids), version=max(entry.version, 1))
        stored = yield from put(change.scheduled(new))
        yield transition(change, stored, LaneEvent.IMPORTED)
        written += 1
    return written


def import_done() -> Transaction[None]:
    """Never look at that file again."""
    yield from remember(IMPORTED, 1)


@dataclass(frozen=True, slots=True)
class KnownSession:
    """A session that is here."""

    provenance: Mapping[str, Any] | None
    """How far it reached when it was taken in; None: it came from somewhere else."""
    empty: bool
    parent: str | None = None
    """The parent it still waits for."""
    relation: str | None = None


@dataclass(frozen=True, slots=True)
class LaneState:
    """What is on a lane, and where the session is that it is to have."""

    session_id: str | None
    holder: str | None
    erased: bool = False
    """Whether its owner was erased since it began."""

    @property
    def free(self) -> bool:
        """Whether the lane can have the session."""
        return self.session_id is None and self.holder is None and not self.erased


def known(session_ids: Sequence[str], member: str) -> Transaction[dict[str, KnownSession]]:
    """Those of the sessions that are here."""
    found: dict[str, KnownSession] = {}
    for session_id in session_ids:
        rows = yield Statement("session_as_taken_in", (session_id,))
        if not rows:
            continue
        columns = columns_of(rows[0])
        extra = from_json(f"session {session_id!r}", columns["extra"] or "{}", dict[str, Any])
        counts = yield Statement("stored_messages_of_session", (session_id,))
        note = note_in(columns)
        empty = not counts or counts[0][1] == 0
        found[session_id] = KnownSession(
            extra.get(member), empty, note.get("parent_session_id"), note.get("relation")
        )
    return found


def lane_states(entries: Sequence[SessionEntry]) -> Transaction[list[LaneState]]:
    """What stands in the way of each lane."""
    states: list[LaneState] = []
    for entry in entries:
        here = yield Statement("entry_by_key", (entry.session_key,))
        holder = yield Statement("lane_of_session", (entry.session_id,))
        erased = yield from tombstones.erased_since(entry.owner, to_micros(entry.created_at))
        there = here[0][2] if here else None
        states.append(LaneState(there, holder[0][0] if holder else None, erased is not None))
    return states
