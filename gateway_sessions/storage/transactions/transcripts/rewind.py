"""Rewind a conversation by turns or to a message, and restore what was hidden."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gateway_sessions.core.transcript.messages import PREVIEW_READS, Hidden, Rewind, preview_of
from gateway_sessions.errors import InvalidInputError, NothingToUndoError
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables.sql_files import row_of
from gateway_sessions.storage.tables.statements import session_lock
from gateway_sessions.storage.transactions.transcripts.messages import require_session

PREVIEW_PAGE = 20
"""The number of texts read at a time: nearly always the first one has a preview."""


@row_of("recent_user_turns", "user_turn")
class UserTurnRow(NamedTuple):
    """A message by which a person began a turn."""

    message_id: int
    seq: int
    sent_at: int
    content: str | None


@row_of("active_messages_from")
class ActiveMessage(NamedTuple):
    """A message of the conversation, with its share of the totals."""

    message_id: int
    calls: int
    """The number of tool calls in it."""
    begins_turn: int


def rewind_turns(session_id: str, turns: int, ids: Iterator[int]) -> Transaction[Rewind | None]:
    """Take back the last turns, as far as there are any; None if no person has said anything to the agent."""
    rows = yield Statement("recent_user_turns", (session_id, max(turns, 1)))
    if not rows:
        yield from require_session(session_id)
        return None
    return (yield from _rewind_to_turn(session_id, UserTurnRow._make(rows[-1]), ids))


def rewind_to_message(session_id: str, message_id: int, ids: Iterator[int]) -> Transaction[Rewind]:
    """Take back a message of a person and all messages after it."""
    rows = yield Statement("user_turn", (message_id, session_id))
    if not rows:
        yield from require_session(session_id)
        problem = f"message {message_id} is none that a person said in session {session_id!r}"
        raise InvalidInputError(problem)
    return (yield from _rewind_to_turn(session_id, UserTurnRow._make(rows[0]), ids))


def restore_rewound(session_id: str) -> Transaction[int]:
    """Show the messages again that the last rewind hid, unless the conversation has gone on since."""
    rows = yield Statement("last_rewind", (session_id,))
    if not rows:
        yield from require_session(session_id)
        raise NothingToUndoError(session_id, "nothing was taken back")
    change_id, last_seq = rows[0]
    if (yield Statement("turn_goes_on_behind", (session_id, last_seq))):
        raise NothingToUndoError(session_id, "the conversation has gone on since something was taken back")
    shown = yield Statement("messages_rewound_by", (session_id, change_id))
    yield Statement("show_messages_rewound_by", (session_id, change_id))
    yield from adjust_totals(session_id, messages=len(shown), calls=sum(calls for _, calls in shown))
    return len(shown)


def hide_from(
    session_id: str, seq: int, because: Hidden, ids: Iterator[int]
) -> Transaction[list[ActiveMessage]]:
    """Hide the messages of the conversation from a place on; return the rows that were hidden.

    What was only observed belongs to no turn: it stays when turns are taken back, and goes into a summary.
    """
    which = (session_id, seq, int(because is not Hidden.REWOUND))
    rows = yield Statement("active_messages_from", which)
    if rows:
        # Ids rise with time, but the clock may have been set back: `restore` must find this one as the last.
        change_id = next(ids)
        for last, _ in (yield Statement("last_rewind", (session_id,))):
            change_id = max(change_id, last + 1)
        yield Statement("hide_messages_from", (str(because), change_id, *which))
    return [ActiveMessage._make(row) for row in rows]


def adjust_totals(
    session_id: str, *, messages: int = 0, calls: int = 0, size: int = 0, rewinds: int = 0, edits: int = 0
) -> Transaction[None]:
    """Add to the totals, and set the preview anew: the beginning of the conversation may have changed."""
    preview = yield from _find_preview(session_id)
    yield Statement("adjust_totals", (messages, calls, size, rewinds, edits, preview, session_id))


def _rewind_to_turn(session_id: str, target: UserTurnRow, ids: Iterator[int]) -> Transaction[Rewind]:
    hidden = yield from hide_from(session_id, target.seq, Hidden.REWOUND, ids)
    if hidden:
        calls = sum(one.calls for one in hidden)
        yield from adjust_totals(session_id, messages=-len(hidden), calls=-calls, rewinds=1)
    head = yield Statement("last_active_message", (session_id,))
    return Rewind(
        rewound_count=len(hidden),
        turns_undone=sum(one.begins_turn for one in hidden),
        target_text=target.content or "",
        target_message_id=target.message_id,
        new_head_id=next((message_id for (message_id,) in head), None),
    )


def _first_texts_query(session_id: str, after_seq: int) -> Statement:
    which = (PREVIEW_READS, session_id, after_seq, PREVIEW_PAGE)
    return Statement("first_user_texts", which, lock=session_lock(session_id))


def _find_preview(session_id: str) -> Transaction[str | None]:
    seq = 0
    while rows := (yield _first_texts_query(session_id, seq)):
        for _, text in rows:
            if (preview := preview_of(text)) is not None:
                return preview
        seq, _ = rows[-1]
    return None
