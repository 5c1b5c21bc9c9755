"""Writing imported entries; a lane that has a session already keeps it, so an import can be repeated."""

from __future__ import annotations

from collections.abc import Sequence

from gateway_sessions.core.instants import to_micros
from gateway_sessions.core.session import SessionEntry
from gateway_sessions.ports import Statement, Verb
from gateway_sessions.storage.verbs import tombstones
from gateway_sessions.storage.verbs.change import Change, LaneEvent
from gateway_sessions.storage.verbs.entries import put
from gateway_sessions.storage.verbs.meta import remember
from gateway_sessions.storage.verbs.session_rows import add_row
from gateway_sessions.storage.verbs.succession import transition

IMPORTED = "index_imported"
"""Set once the file that was found at the first start has been taken in, or there was none."""


def import_entries(change: Change, entries: Sequence[SessionEntry]) -> Verb[int]:
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


def import_done() -> Verb[None]:
    """Never look at that file again."""
    yield from remember(IMPORTED, 1)
