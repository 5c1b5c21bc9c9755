"""Notes for the search index that messages it has read were changed, removed or moved.

No note is made when a message is hidden or shown again: the index does not store whether a message is hidden,
and each search asks the message's row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables.sessions import stored_session


def note_changed_messages(message_ids: Iterable[int], ids: Iterator[int]) -> Transaction[None]:
    """Note that these messages were edited, removed or given to another owner."""
    if rows := [(next(ids), message_id) for message_id in message_ids]:
        yield Statement("add_index_change", many=rows)


def note_moved_session(
    session_id: str, session_key: str, owner: str, ids: Iterator[int]
) -> Transaction[None]:
    """Note that a session moves to that lane and owner: its messages are found there from now on."""
    was = yield from stored_session(session_id)
    if was is not None and (was.session_key, was.owner) != (session_key, owner):
        yield from _note_session_messages(session_id, ids)


def note_new_lane(session_id: str, ids: Iterator[int]) -> Transaction[None]:
    """Note that a session gets a lane, if it has none."""
    session = yield from stored_session(session_id)
    if session is not None and session.session_key is None:
        yield from _note_session_messages(session_id, ids)


def _note_session_messages(session_id: str, ids: Iterator[int]) -> Transaction[None]:
    said = yield Statement("message_ids_of_session", (session_id,))
    yield from note_changed_messages((message_id for (message_id,) in said), ids)
