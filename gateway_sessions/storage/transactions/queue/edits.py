"""Edits and deletions of accepted messages, in the queue, a running turn and every transcript.

A message that waits is rewritten in the queue. A message of a running turn is changed in the transcript, and
written there at once if it is not there yet: so the end of the turn notices that one of its messages has
changed. A dead letter is changed in both places. A message in a transcript is changed in every session that
has it. An older edit that comes after a newer one changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gateway_sessions.core.instants import to_micros
from gateway_sessions.core.queue.edits import Effect, is_older
from gateway_sessions.core.queue.inbound import (
    Duplicate,
    InboundMessage,
    MessageKind,
    RejectReason,
    encode_message,
    rewording_from,
)
from gateway_sessions.core.queue.items import ItemKind, Outcome
from gateway_sessions.core.queue.state_machine import ItemEvent
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables.change import Change
from gateway_sessions.storage.tables.entries import load
from gateway_sessions.storage.tables.lanes import (
    AcceptedItem,
    LaneRow,
    NewQueuedItem,
    QueuedItem,
    decode_message,
    item_from_row,
    item_of_event,
    load_lane,
    place_of_seq,
    put_lane,
)
from gateway_sessions.storage.tables.statements import move_items, move_statement
from gateway_sessions.storage.transactions.queue import turn_transcript
from gateway_sessions.storage.transactions.queue.admit import (
    MessageRefusedError,
    canonical_sender,
    find_duplicate,
    refuse_erased_sender,
)
from gateway_sessions.storage.transactions.queue.turn_transcript import TurnLease
from gateway_sessions.storage.transactions.queue.waiting import (
    TurnMessage,
    leave_turn,
    take_from_turn,
    withdraw_turn_rows,
)
from gateway_sessions.storage.transactions.sessions.find_or_create import (
    AliasesUnknown,
    SessionRequest,
    find_lane_key,
)
from gateway_sessions.storage.transactions.transcripts import rewrite
from gateway_sessions.storage.transactions.transcripts.rewind import adjust_totals


@dataclass(frozen=True, slots=True)
class EditResult:
    """The message that an edit or a deletion concerned, and the result."""

    session_key: str
    """The lane that the message came in on."""
    seq: int | None = None
    """The seq of the message on its lane; None if it is not known any more."""
    running: bool = False
    """True if the message is part of a running turn."""
    stands: bool = False
    """True if the message did not change: it had that content already, or a newer edit stands."""
    lane: LaneRow | None = field(default=None, compare=False)
    """The lane of the message as it is now, if the message waits there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedEdit:
    """An edit or a deletion that was carried out, and written down as such."""

    seq: int
    """The seq of the edit itself on the lane that it came in on."""
    session_key: str
    session_id: str | None
    """The session of that lane."""
    lane: LaneRow
    reworded: EditResult


def apply_edit(
    message: InboundMessage, request: SessionRequest, change: Change
) -> Transaction[AppliedEdit | Duplicate | AliasesUnknown]:
    """Carry out an edit or a deletion and write it down, both or nothing.

    Raise `MessageRefusedError` if no message is known to which it belongs: no row of it is kept, so it is no
    duplicate when it is delivered again.
    """
    kept = yield from item_of_event(message.original_key)  # without a lock: it may concern any lane
    if (known := (yield from find_duplicate(_duplicate_key(message)))) is not None:
        return known
    found = yield from find_lane_key(request)
    if isinstance(found, AliasesUnknown):
        return found
    yield from refuse_erased_sender(message, request, request.owner, found)
    reworded = yield from _edit_everywhere(kept, message, found, "person", change)
    if reworded is None:
        raise MessageRefusedError(found, RejectReason.UNKNOWN)
    lane = yield from load_lane(found)
    seq, lane.next_seq = lane.next_seq, lane.next_seq + 1
    yield _applied_edit_statement(message, request, lane.session_key, seq, change)
    yield from put_lane(lane)
    entry = yield from load(found)
    session_id = entry.session_id if entry is not None else None
    return AppliedEdit(seq=seq, session_key=found, session_id=session_id, lane=lane, reworded=reworded)


def reapply_edit(
    message: InboundMessage, session_key: str, by: str, change: Change
) -> Transaction[EditResult | None]:
    """Carry out an edit or a deletion that came in on a lane; None if its message is not known."""
    kept = yield from item_of_event(message.original_key)
    return (yield from _edit_everywhere(kept, message, session_key, by, change))


def _edit_everywhere(
    kept: AcceptedItem | None, message: InboundMessage, session_key: str, by: str, change: Change
) -> Transaction[EditResult | None]:
    reworded = None if kept is None else (yield from _edit_queued_message(kept, message, by, change))
    said_on = session_key if kept is None else kept.session_key
    effect = yield from rewrite.edit_in_all_sessions(said_on, rewording_from(message), change)
    if reworded is not None:
        return reworded
    if effect is Effect.NONE:
        return None
    return EditResult(said_on, None if kept is None else kept.seq, stands=effect is Effect.STANDS)


def _edit_queued_message(
    kept: AcceptedItem, message: InboundMessage, by: str, change: Change
) -> Transaction[EditResult | None]:
    """Change a message that waits, runs or has failed; None if it is settled otherwise."""
    item_id, session_key, seq, merged_into, token, outcome, payload = kept
    if outcome not in (None, Outcome.DEAD):
        return None
    part = TurnMessage(item_id, seq, seq if merged_into is None else merged_into, payload)
    said = message if message.kind is MessageKind.EDIT else None
    running = outcome is None and token is not None
    if said is not None and is_older(said.revision, decode_message(session_key, payload).revision):
        return EditResult(session_key, seq, running=running, stands=True)
    lane = yield from load_lane(session_key)
    if outcome is None and token is None:
        yield from _edit_waiting_message(lane, part, said, by, change)
        return EditResult(session_key, seq, lane=lane)
    turn = yield from _load_turn(lane, part, token if running else None)
    if said is None:
        yield from _delete_turn_message(turn, part, by, change)
    else:
        yield from _edit_begun_message(turn, part, said, change)
    if running:
        yield from _count_edit(session_key)
    return EditResult(session_key, seq, running=running)


def _duplicate_key(message: InboundMessage) -> str | None:
    """Return the key that makes a second delivery a duplicate; None if each may be another change."""
    return None if message.is_uncounted else message.idempotency_key


def _applied_edit_statement(
    message: InboundMessage, request: SessionRequest, session_key: str, seq: int, change: Change
) -> Statement:
    """Return the statement that writes down a change, so that a second delivery of it is known."""
    now = to_micros(change.now)
    item = NewQueuedItem(
        item_id=next(change.ids),
        session_key=session_key,
        seq=seq,
        place=place_of_seq(seq),
        event=_duplicate_key(message),
        owner=request.owner,
        sender=canonical_sender(message, request),
        kind=str(ItemKind.CHANGE),
        solo=1,
        media=0,
        merged_into=None,
        messages=1,
        characters=0,
        last_at=now,
        admitted_at=now,
        ready_at=now,
        outcome=str(Outcome.APPLIED),
        settled_at=now,
        settled_by="person",
    )
    return move_statement("add_item", ItemEvent.APPLIED, params=item)


class _TurnMessages(NamedTuple):
    """A turn that runs or has failed, and its messages."""

    session_key: str
    held: TurnLease | None
    """The lease of the turn; None: the turn has failed."""
    items: list[QueuedItem]

    def messages_in_row_of(self, item: QueuedItem) -> list[QueuedItem]:
        """Return the messages in the same row of the transcript; none if they have no row yet."""
        row = item.transcript_id
        return [] if row is None else [one for one in self.items if one.transcript_id == row]


def _load_turn(lane: LaneRow, part: TurnMessage, token: int | None) -> Transaction[_TurnMessages]:
    """Return the turn with that token, or without a token the failed turn of the message."""
    key = lane.session_key
    if token is None:
        rows = yield Statement("dead_turn", (key, part.head, part.head))
        return _TurnMessages(key, None, list(map(item_from_row, rows)))
    held = TurnLease(session_key=key, epoch=lane.lease_epoch or 0, token=token)
    return _TurnMessages(key, held, (yield from turn_transcript.turn_items(held)))


def _edit_waiting_message(
    lane: LaneRow, part: TurnMessage, said: InboundMessage | None, by: str, change: Change
) -> Transaction[None]:
    if said is None:
        yield from take_from_turn(lane, part, by, change, event=ItemEvent.DELETED)
        return
    items = yield from withdraw_turn_rows(lane.session_key, part)
    yield from _rewrite_payload(lane.session_key, part, said, items)


def _edit_begun_message(
    turn: _TurnMessages, part: TurnMessage, said: InboundMessage, change: Change
) -> Transaction[None]:
    payload = yield from _rewrite_payload(turn.session_key, part, said, turn.items)
    item = next(one for one in turn.items if one.item_id == part.item_id)
    if item.transcript_id is None:
        yield from _append_turn_messages(turn, change)
        return
    told = [one._replace(payload=payload) if one is item else one for one in turn.messages_in_row_of(item)]
    yield from turn_transcript.rewrite_row(turn.session_key, item.transcript_id, told, change, keep=True)


def _delete_turn_message(
    turn: _TurnMessages, part: TurnMessage, by: str, change: Change
) -> Transaction[None]:
    item = next(one for one in turn.items if one.item_id == part.item_id)
    yield from leave_turn(turn.session_key, part, turn.items)
    moment = to_micros(change.now)
    row = (str(Outcome.CANCELLED), moment, by, part.item_id)
    yield from move_items("drop_dead_item" if turn.held is None else "retract_item", ItemEvent.DELETED, [row])
    if item.transcript_id is None:
        return
    left = [one for one in turn.messages_in_row_of(item) if one is not item]
    yield from turn_transcript.rewrite_row(turn.session_key, item.transcript_id, left, change, keep=False)


def _rewrite_payload(
    session_key: str, part: TurnMessage, said: InboundMessage, items: Sequence[QueuedItem]
) -> Transaction[str]:
    """Change the content of a message in the queue; return its stored form."""
    message = decode_message(session_key, part.payload)
    revision = max(message.revision, said.revision)
    new = message.with_text(said.text, said.attachments or message.attachments, revision)
    payload = encode_message(new)
    yield Statement("set_payload", (payload, part.item_id))
    head_id = next((one.item_id for one in items if one.seq == part.head), 0)
    yield Statement("change_size", (0, len(new.text) - len(message.text), head_id))
    return payload


def _count_edit(session_key: str) -> Transaction[None]:
    """Count an edit in the version of the transcript, so that the running turn notices it."""
    entry = yield from load(session_key)
    if entry is not None:
        yield from adjust_totals(entry.session_id, edits=1)


def _append_turn_messages(turn: _TurnMessages, change: Change) -> Transaction[None]:
    """Append the messages of a running turn to its transcript, before any row of the turn itself.

    The process that runs the turn would append them later, with the content that it read at the beginning.
    """
    entry = yield from load(turn.session_key)
    if turn.held is not None and entry is not None:
        yield from turn_transcript.append_turn_rows(turn.held, entry.session_id, (), change)
