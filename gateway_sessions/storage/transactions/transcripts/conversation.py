"""The conversation of a session for a model, with the sessions that it continues."""

from __future__ import annotations

from collections.abc import Sequence

from gateway_sessions.core.sessions.record import Relation
from gateway_sessions.core.transcript.messages import Message, ModelMessage
from gateway_sessions.core.transcript.model_history import Chat, conversation_of
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables.message_rows import decode_spoken
from gateway_sessions.storage.transactions.transcripts.messages import must_exist, rows_of

MAX_ANCESTORS = 1000
"""The largest number of sessions that a conversation reads back through."""
MAX_OVERLAP = 64
"""The largest number of its parent's last messages that a continuation may begin with."""


def conversation(
    session_id: str, limit: int | None, *, include_ancestors: bool, pending: Sequence[Message] = ()
) -> Transaction[list[Chat]]:
    """Return the conversation in the form that a model gets; it is valid whatever happened to the transcript.

    The *pending* messages, which are not in the transcript yet, stand at its end.
    """
    said = yield from _said(session_id, limit)
    if not said:
        yield from must_exist(session_id)
    seen = {session_id}
    child = session_id
    while include_ancestors and (limit is None or len(said) < limit) and len(seen) < MAX_ANCESTORS:
        parent = None
        for came_from, relation in (yield Statement("parent_of_session", (child,))):
            parent = came_from if relation == Relation.CONTINUATION else None
        if parent is None or parent in seen:
            break
        before = yield from _said(parent, limit)
        said = before + said[_overlap(before, said) :]
        seen.add(parent)
        child = parent
    return conversation_of([*said, *pending], limit=None if limit is None else limit + len(pending))


def _said(session_id: str, limit: int | None) -> Transaction[list[ModelMessage]]:
    if limit is None:
        return decode_spoken((yield Statement("conversation_of_session", (session_id,))))
    rows = yield Statement("end_of_conversation", (session_id, rows_of(limit)))
    return decode_spoken(reversed(rows))


def _overlap(before: list[ModelMessage], behind: list[ModelMessage]) -> int:
    """Return how many of its parent's last messages a continuation repeats at its beginning."""
    for count in range(min(len(before), len(behind), MAX_OVERLAP), 0, -1):
        if all(map(_same, before[-count:], behind[:count])):
            return count
    return 0


def _same(one: ModelMessage, other: ModelMessage) -> bool:
    return (one.role, one.content, one.tool_call_id, one.tool_calls) == (
        other.role,
        other.content,
        other.tool_call_id,
        other.tool_calls,
    )
