"""Replace, compact or clear a conversation, and edit or retract messages in every copy of it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple

import msgspec

from gateway_sessions.core.instants import from_micros, to_micros
from gateway_sessions.core.queue.edits import (
    Effect,
    Rewording,
    has_message_id,
    plan_transcript_edit,
    replace_text_by_hand,
)
from gateway_sessions.core.storable_text import StorableEncoder
from gateway_sessions.core.transcript.messages import STEERED, Content, Hidden, Message, MessageVersion
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables.change import Change
from gateway_sessions.storage.tables.column_decoding import decode_content_parts, escape_like_pattern
from gateway_sessions.storage.tables.index_notes import note_changed_messages
from gateway_sessions.storage.tables.message_rows import (
    content_columns,
    decode_messages,
    platform_messages_to_store,
)
from gateway_sessions.storage.tables.sql_files import row_of
from gateway_sessions.storage.transactions.transcripts.authors import with_authors_of
from gateway_sessions.storage.transactions.transcripts.messages import (
    Appended,
    append_messages,
    require_session,
)
from gateway_sessions.storage.transactions.transcripts.rewind import adjust_totals, hide_from

_SAID: Final = 2
"""The number of columns, from the first, that say something to people: a change keeps the old version."""
_TOLD: Final = 3
"""The number of columns, from the first, that say something to a model: a change counts as an edit."""


@row_of("message_versions")
class VersionRow(NamedTuple):
    """An earlier version of a message, as it is stored."""

    version: int
    content: str | None
    parts: str | None
    replaced_at: int


@row_of("stored_messages")
class MessagePlaceRow(NamedTuple):
    """A message of a session, hidden or not, and its place."""

    message_id: int
    seq: int
    is_hidden: int


def replace_conversation(
    session_id: str, messages: Sequence[Message], now: datetime, ids: Iterator[int]
) -> Transaction[Appended]:
    """Put *messages* in the place of the conversation; hidden messages stay, in the places before them."""
    whole = yield from with_authors_of(session_id, messages)
    yield from _delete_messages(session_id, ids, hidden_too=False)
    return (yield from append_messages(session_id, whole, now, ids))


def clear_session(session_id: str, ids: Iterator[int]) -> Transaction[int]:
    """Delete every message, hidden ones too; return how many there were."""
    return (yield from _delete_messages(session_id, ids, hidden_too=True))


def compact_session(
    session_id: str, messages: Sequence[Message], now: datetime, ids: Iterator[int]
) -> Transaction[tuple[int, Appended]]:
    """Hide the conversation behind *messages*, a summary of it; return how many messages were hidden."""
    summary = yield from with_authors_of(session_id, messages)
    hidden = yield from hide_from(session_id, 0, Hidden.COMPACTED, ids)
    yield from adjust_totals(session_id, messages=-len(hidden), calls=-sum(one.calls for one in hidden))
    return len(hidden), (yield from append_messages(session_id, summary, now, ids))


def rows_made_of(session_ids: Sequence[str], message_id: str) -> Transaction[list[Message]]:
    """Return the rows in these sessions that were made of a platform's message, hidden ones too."""
    ids = msgspec.json.encode(list(session_ids)).decode()
    like = f"%{escape_like_pattern(json.dumps(message_id, ensure_ascii=False))}%"
    rows = yield Statement("rows_of_platform_message", (ids, message_id, ids, like, like))
    return [one for one in decode_messages(rows) if has_message_id(one, message_id)]


def edit_in_all_sessions(session_key: str, rewording: Rewording, change: Change) -> Transaction[Effect]:
    """Change a message of a lane in every session that has it: it may have been copied or moved."""
    sessions = yield Statement("sessions_said_on", (session_key, session_key))
    found = Effect.NONE
    for row in (yield from rows_made_of([session_id for (session_id,) in sessions], rewording.message_id)):
        if row.from_lane not in (None, session_key):  # another chat's message that has the same id
            continue
        effect = yield from _apply_rewording(row, rewording, change.now, change.ids)
        found = effect if found is Effect.NONE or effect is Effect.CHANGED else found
    return found


def edit_message(
    session_id: str, platform_message_id: str, content: Content, now: datetime, ids: Iterator[int]
) -> Transaction[tuple[bool, bool]]:
    """Change the content of a message and keep the old version.

    Return whether the row was changed, and whether characters were replaced.
    """
    rows = yield from rows_made_of([session_id], platform_message_id)
    if not rows:
        yield from require_session(session_id)
        return False, False
    return (
        yield from _write_row(
            rows[-1], replace_text_by_hand(rows[-1], platform_message_id, content), now, ids
        )
    )


def retract_message(
    session_id: str, platform_message_id: str, now: datetime, ids: Iterator[int]
) -> Transaction[bool]:
    """Hide a message that was deleted on its platform; False if there is none, or that was done before."""
    rows = yield from rows_made_of([session_id], platform_message_id)
    if not rows:
        yield from require_session(session_id)
    deletion = Rewording(message_id=platform_message_id, deletes=True)
    effects: set[Effect] = set()
    for row in rows:
        effects.add((yield from _apply_rewording(row, deletion, now, ids)))
    return not effects.isdisjoint({Effect.CHANGED, Effect.HIDDEN})


def rewrite_row_of_messages(
    message_id: int, told: Message | None, now: datetime, ids: Iterator[int], *, keep: bool
) -> Transaction[None]:
    """Write the present content of the messages that a row was made of, or hide the row if there are none.

    If *keep*, the old version is kept. What a person deleted is not kept.
    """
    rows = decode_messages((yield Statement("message_by_id", (message_id,))))
    if not rows:
        return
    row = rows[0]
    if told is None:
        yield from _hide_row(row, ids)
        return
    extra = dict(told.extra)
    if row.extra.get(STEERED):
        extra[STEERED] = True
    becomes = row.altered(
        content=told.content,
        api_content=told.api_content,
        platform_message_id=told.platform_message_id,
        platform_messages=told.platform_messages,
        extra=extra,
    )
    yield from _write_row(row, becomes, now, ids, keep=keep)


def load_versions(session_id: str, message_id: int) -> Transaction[list[MessageVersion]]:
    """Return the earlier versions of a message, the first one first."""
    rows = yield Statement("message_versions", (session_id, message_id))
    return [
        MessageVersion(
            one.version,
            one.content if one.parts is None else decode_content_parts(f"message {message_id}", one.parts),
            from_micros(one.replaced_at),
        )
        for one in map(VersionRow._make, rows)
    ]


def _apply_rewording(
    row: Message, rewording: Rewording, now: datetime, ids: Iterator[int]
) -> Transaction[Effect]:
    """Carry out an edit or a deletion on a row."""
    effect, becomes = plan_transcript_edit(row, rewording)
    if effect is Effect.HIDDEN:
        yield from _hide_row(row, ids)
    elif effect is Effect.CHANGED:
        yield from _write_row(row, becomes, now, ids, keep=not rewording.deletes)
    return effect


def _hide_row(row: Message, ids: Iterator[int]) -> Transaction[None]:
    """Remove the content of the row and hide it, unless that was done."""
    if row.hidden_because is Hidden.RETRACTED:
        return
    yield Statement("retract_message", (next(ids), row.message_id))
    calls = len(row.tool_calls or ()) if row.active else 0
    yield from adjust_totals(row.session_id, messages=-int(row.active), calls=-calls, edits=1)


def _write_row(
    was: Message, becomes: Message, now: datetime, ids: Iterator[int], *, keep: bool = True
) -> Transaction[tuple[bool, bool]]:
    """Write the new columns of a row; return whether its content changed and characters were replaced.

    If *keep*, the old version is kept; otherwise all earlier versions are deleted.
    """
    before, after = StorableEncoder(), StorableEncoder()
    old, new = _editable_columns(before, was), _editable_columns(after, becomes)
    if not keep:
        yield Statement("delete_message_versions", (was.message_id,))
    if old == new:
        return False, False
    otherwise = old[:_TOLD] != new[:_TOLD]
    if keep and old[:_SAID] != new[:_SAID]:
        yield Statement("keep_message_version", (to_micros(now), was.message_id))
    edited_at = now if otherwise else was.edited_at
    at = None if edited_at is None else to_micros(edited_at)
    yield Statement("reword_row", (*new, at, was.message_id))
    if otherwise:
        yield from note_changed_messages((was.message_id,), ids)
    yield from adjust_totals(was.session_id, size=after.size - before.size, edits=int(otherwise))
    return otherwise, after.replaced


def _editable_columns(intake: StorableEncoder, row: Message) -> tuple[str | None, ...]:
    """Return the columns of a row that an edit or a deletion may change: the content first."""
    return (
        *content_columns(intake, row.content),
        intake.json("api_content", row.api_content),
        intake.text("platform_message_id", row.platform_message_id),
        intake.json("platform_messages", platform_messages_to_store(row)),
        intake.json("extra", dict(row.extra) or None),
    )


def remove_messages(session_id: str, message_ids: Collection[int], ids: Iterator[int]) -> Transaction[int]:
    """Delete some messages, hidden ones too; return how many. The others do not change."""
    rows = yield from _stored_messages(session_id)
    chosen = frozenset(message_ids)
    gone = yield from _delete_and_renumber(session_id, rows, chosen, ids)
    if gone:
        ((size,),) = yield Statement("bytes_of_messages", (session_id,))
        yield Statement("recount_totals", (size, session_id))
        yield from adjust_totals(session_id, edits=1)
    return gone


def _delete_messages(session_id: str, ids: Iterator[int], *, hidden_too: bool) -> Transaction[int]:
    """Delete the conversation, or all messages; return how many were deleted."""
    rows = yield from _stored_messages(session_id)
    if not rows:
        yield from require_session(session_id)
        return 0
    chosen = frozenset(one.message_id for one in rows if hidden_too or not one.is_hidden)
    gone = yield from _delete_and_renumber(session_id, rows, chosen, ids)
    ((size,),) = yield Statement("bytes_of_messages", (session_id,))
    yield Statement("reset_totals", (len(rows) - gone, size, session_id))
    return gone


def _stored_messages(session_id: str) -> Transaction[list[MessagePlaceRow]]:
    """Return the places of all messages of a session, hidden ones too, in their order."""
    rows = yield Statement("stored_messages", (session_id,))
    return [MessagePlaceRow._make(row) for row in rows]


def _delete_and_renumber(
    session_id: str, rows: Sequence[MessagePlaceRow], chosen: Collection[int], ids: Iterator[int]
) -> Transaction[int]:
    """Delete messages of a session and renumber the others without gaps; return how many were deleted."""
    gone = [(one.message_id,) for one in rows if one.message_id in chosen]
    left = [one for one in rows if one.message_id not in chosen]
    yield Statement("delete_message", many=gone)
    yield Statement("delete_message_versions", many=gone)
    yield from note_changed_messages((message_id for (message_id,) in gone), ids)
    # In ascending order, because a place must be free when a message moves there: places are unique.
    moved = [(at, one.message_id) for at, one in enumerate(left, start=1) if one.seq != at]
    yield Statement("move_message", many=moved)
    return len(gone)
