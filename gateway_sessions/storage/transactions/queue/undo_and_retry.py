"""Take turns back for `/undo`, and let answered or failed turns wait again for `/retry`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from gateway_sessions.core.instants import from_micros, to_micros
from gateway_sessions.core.queue.inbound import InboundMessage, encode_message
from gateway_sessions.core.queue.slash_commands import retried_messages
from gateway_sessions.core.queue.state_machine import ItemEvent
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.transcript.messages import STEERED, Message, Rewind
from gateway_sessions.errors import SessionBusyError
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables.change import Change
from gateway_sessions.storage.tables.column_decoding import decode_json
from gateway_sessions.storage.tables.entries import load
from gateway_sessions.storage.tables.lanes import (
    LaneRow,
    NewQueuedItem,
    decode_message,
    is_running,
    item_kind,
    item_of_event,
    load_lane,
    place_of_seq,
    put_lane,
    update_ready_at,
)
from gateway_sessions.storage.tables.sql_files import row_of
from gateway_sessions.storage.tables.statements import move_statement
from gateway_sessions.storage.transactions.queue import waiting
from gateway_sessions.storage.transactions.transcripts import rewind as rewinds
from gateway_sessions.storage.transactions.transcripts.messages import EVERYTHING, MessagePage, load_page

HEADS: Final = 32
"""The number of turns read by one query."""


@row_of("dead_turn_of_lane")
class DeadTurnItem(NamedTuple):
    """A message of the turn that failed last on a lane."""

    item_id: int
    seq: int
    merged_into: int | None
    admitted_at: int
    payload: str | None


@row_of("recent_turn_heads")
class TurnHead(NamedTuple):
    """The first row of a turn in a transcript."""

    seq: int
    message_id: int
    extra: str | None


def entry_without_turn(session_key: str) -> Transaction[SessionEntry | None]:
    """Return the lane's entry, if it has one; `SessionBusyError` while a turn runs."""
    entry = yield from load(session_key)
    if entry is not None and (yield from is_running(session_key)):
        raise SessionBusyError(session_key, entry.session_id)
    return entry


@dataclass(frozen=True, slots=True)
class UndoneTurns:
    """Turns that are no longer part of the conversation."""

    session_id: str
    turns: int
    rewind: Rewind
    said: Sequence[Message]
    """All rows of the first of these turns."""


def undo_turns(session_key: str, turns: int, change: Change) -> Transaction[UndoneTurns | None]:
    """Take back the last turns, as far as there are any; `SessionBusyError` while a turn runs."""
    entry = yield from entry_without_turn(session_key)
    if entry is None:
        return None
    heads = yield from _last_turn_heads(entry.session_id, turns)
    if not heads:
        return None
    head = heads[-1]
    until = heads[-2].seq if len(heads) > 1 else EVERYTHING
    rows = yield from load_page(entry.session_id, MessagePage(after_seq=head.seq - 1, before_seq=until))
    rewind = yield from rewinds.rewind_to_message(entry.session_id, head.message_id, change.ids)
    return UndoneTurns(entry.session_id, len(heads), rewind, rows)


def retry_failed_turn(session_key: str, change: Change) -> Transaction[LaneRow | None]:
    """Let the lane's last turn wait again if it has failed; None if it has not."""
    rows = yield Statement("dead_turn_of_lane", (session_key, session_key))
    if not rows:
        return None
    items = [DeadTurnItem._make(row) for row in rows]
    entry = yield from load(session_key)
    heads = (yield from _last_turn_heads(entry.session_id, 1)) if entry is not None else []
    if entry is not None and heads:
        (last,) = yield from load_page(entry.session_id, MessagePage(after_seq=heads[0].seq - 1, limit=1))
        message = decode_message(session_key, items[0].payload)
        own = _is_made_of(last, message)
        if (
            not own
            and last.sent_at is not None
            and last.sent_at >= (message.sent_at or from_micros(items[0].admitted_at))
        ):
            return None
        if own and not (yield from is_running(session_key)):
            yield from rewinds.rewind_to_message(entry.session_id, heads[0].message_id, change.ids)
    for one in items:
        if one.merged_into is None:
            yield from waiting.requeue_dead_letter(one.item_id, change)
    return (yield from load_lane(session_key))


def retry_answered_turn(
    session_key: str, asked: InboundMessage, change: Change
) -> Transaction[LaneRow | None]:
    """Take the lane's last turn back and let its messages wait once more; None if it has none.

    The idempotency keys of its messages go to those that wait now. `SessionBusyError` while a turn runs.
    """
    entry = yield from entry_without_turn(session_key)
    heads = (yield from _last_turn_heads(entry.session_id, 1)) if entry is not None else []
    if entry is None or not heads:
        return None
    head = heads[0]
    said = retried_messages(
        (yield from load_page(entry.session_id, MessagePage(after_seq=head.seq - 1))), asked, entry
    )
    if not said:
        return None
    lane = yield from load_lane(session_key)
    if (yield from _is_waiting_already(said)):  # the turn was cut off, and is tried again by itself
        return lane
    yield from rewinds.rewind_to_message(entry.session_id, head.message_id, change.ids)
    yield Statement("hand_over_event", many=[(one.idempotency_key,) for one in said if one.message_id])
    first_seq = lane.next_seq
    rows = [
        _retried_item(one, entry, first_seq, first_seq + at, change, among=said)
        for at, one in enumerate(said)
    ]
    yield move_statement("add_item", ItemEvent.QUEUED, ItemEvent.JOINED, many=rows)
    lane.next_seq += len(said)
    lane.waiting += 1
    yield from update_ready_at(lane)
    yield from put_lane(lane)
    return lane


def _is_waiting_already(said: Sequence[InboundMessage]) -> Transaction[bool]:
    for one in said:
        kept = (yield from item_of_event(one.idempotency_key)) if one.message_id else None
        if kept is not None and kept.outcome is None:
            return True
    return False


def _retried_item(
    message: InboundMessage,
    entry: SessionEntry,
    head: int,
    seq: int,
    change: Change,
    *,
    among: Sequence[InboundMessage],
) -> NewQueuedItem:
    """Return the row of a message whose turn a person asked for explicitly."""
    now, leads = to_micros(change.now), seq == head
    turn = among if leads else [message]  # the message that leads a turn counts the others
    return NewQueuedItem(
        item_id=next(change.ids),
        session_key=entry.session_key,
        seq=seq,
        place=place_of_seq(seq),
        event=message.idempotency_key,
        owner=entry.owner,
        sender=message.sender,
        kind=item_kind(message),
        solo=1,
        media=int(any(one.has_media for one in turn)),
        merged_into=None if leads else head,
        messages=len(turn),
        characters=sum(len(one.text) for one in turn),
        last_at=now,
        admitted_at=now,
        ready_at=now,
        payload=encode_message(message),
    )


def _last_turn_heads(session_id: str, turns: int) -> Transaction[list[TurnHead]]:
    """Return the first rows of the last turns, the latest first; a steered message begins no turn."""
    found: list[TurnHead] = []
    before = EVERYTHING
    while len(found) < turns:
        rows = yield Statement("recent_turn_heads", (session_id, before, HEADS))
        heads = [TurnHead._make(row) for row in rows]
        found += [one for one in heads if not _decode_extra(one.extra).get(STEERED)]
        if len(heads) < HEADS:
            break
        before = heads[-1].seq
    return found[:turns]


def _is_made_of(row: Message, message: InboundMessage) -> bool:
    """Return whether a row of the transcript was made of that message."""
    if message.message_id is not None:
        ids = row.extra.get("platform_message_ids") or [row.platform_message_id]
        return message.message_id in ids
    return row.platform_message_id is None and row.text.startswith(message.text.strip())


def _decode_extra(text: str | None) -> dict[str, Any]:
    return decode_json("a message", text or "{}", dict[str, Any])
