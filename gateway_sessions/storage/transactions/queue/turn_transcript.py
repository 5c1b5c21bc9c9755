"""The transcript rows of a turn: each message has one visible row, however often the turn is tried.

A row is taken away where it stands before its message is appended again elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from gateway_sessions.core.identity.keys import is_room_owner
from gateway_sessions.core.instants import from_micros, to_micros
from gateway_sessions.core.queue.inbound import InboundMessage, make_user_row
from gateway_sessions.core.queue.state_machine import ItemEvent, ItemState, advance_item
from gateway_sessions.core.transcript.messages import Hidden, Message
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables.change import Change
from gateway_sessions.storage.tables.lanes import QueuedItem, decode_message, item_from_row
from gateway_sessions.storage.tables.statements import move_items, move_statement, session_lock
from gateway_sessions.storage.transactions.queue.outbox import forget_growing
from gateway_sessions.storage.transactions.transcripts import messages as transcripts
from gateway_sessions.storage.transactions.transcripts import rewrite
from gateway_sessions.storage.transactions.transcripts.rewind import adjust_totals, hide_from


class TurnLease(msgspec.Struct, frozen=True, kw_only=True):
    """The lease of a turn: the proof that the turn holds its lane."""

    session_key: str
    epoch: int
    token: int
    session_id: str = ""
    """The session that the turn began in; empty: the session of the lane."""


class MessageAuthor(NamedTuple):
    """The author of a message and the lane it came in on."""

    session_key: str
    owner: str
    """The owner of that lane."""
    author: str | None


def turn_items(held: TurnLease) -> Transaction[list[QueuedItem]]:
    """Return the messages of a turn; the one that leads it comes first."""
    rows = yield Statement("items_of_turn", (held.session_key, held.token))
    return list(map(item_from_row, rows))


def missing_rows(held: TurnLease) -> Transaction[list[Message]]:
    """Return the row for the messages of the turn that the transcript does not have yet."""
    return _row_of_items(held.session_key, (yield from turn_items(held)))


def append_turn_rows(
    held: TurnLease, session_id: str, messages: Sequence[Message], change: Change, *, noted: bool = True
) -> Transaction[list[int]]:
    """Append the turn's messages that have no row, and *messages* behind them; return the ids of *messages*.

    Unless *noted*, the ids of the new rows are not stored with the messages: a turn that ends well needs them
    no more.
    """
    said = yield from missing_rows(held)
    return (yield from append_known_rows(said, held, session_id, messages, change, noted=noted))


def append_known_rows(
    said: Sequence[Message],
    held: TurnLease,
    session_id: str,
    messages: Sequence[Message],
    change: Change,
    *,
    noted: bool,
) -> Transaction[list[int]]:
    """Append the rows *said*, which the caller knows to be missing, and *messages*, as `record` does."""
    appended = yield from transcripts.append_messages(
        session_id, [*said, *messages], change.now, change.ids, copied=True
    )
    if said and noted:
        yield Statement("note_rows", (appended.message_ids[0], held.session_key, held.token))
    return appended.message_ids[len(said) :]


def append_waiting_rows(
    session_key: str, items: Sequence[QueuedItem], session_id: str, change: Change
) -> Transaction[None]:
    """Append the messages of a waiting turn that have no row: the turn may never begin."""
    rows = _row_of_items(session_key, items)
    if rows:
        appended = yield from transcripts.append_messages(
            session_id, rows, change.now, change.ids, copied=True
        )
        fresh = [one.item_id for one in items if one.transcript_id is None]
        yield Statement("note_row", many=[(appended.message_ids[0], item_id) for item_id in fresh])


def append_steered_row(
    held: TurnLease, session_id: str, item: QueuedItem, change: Change
) -> Transaction[InboundMessage]:
    """Append a steered message behind the messages that the turn had before; return the message."""
    others = [one for one in (yield from turn_items(held)) if one.item_id != item.item_id]
    before = _row_of_items(held.session_key, others)
    message = decode_message(held.session_key, item.payload)
    steered = make_user_row([message], steered=True, shared=is_room_owner(item.owner)).altered(
        author=item.author, from_lane=held.session_key
    )
    rows = [*before, _with_time(steered, from_micros(item.admitted_at))]
    appended = yield from transcripts.append_messages(session_id, rows, change.now, change.ids, copied=True)
    yield Statement("note_row", (appended.message_ids[-1], item.item_id))
    if before:
        yield Statement("note_rows", (appended.message_ids[0], held.session_key, held.token))
    return message


def hide_turn_rows(held: TurnLease, session_id: str, ids: Iterator[int]) -> Transaction[None]:
    """Hide all rows that the turn has written in the session, and the rows of its messages."""
    which = (held.session_key, held.token, session_id)
    ((seq,),) = yield Statement("first_row_of_turn", which, lock=session_lock(session_id))
    if seq is not None:
        hidden = yield from hide_from(session_id, seq, Hidden.REWOUND, ids)
        calls = sum(one.calls for one in hidden)
        yield from adjust_totals(session_id, messages=-len(hidden), calls=-calls, rewinds=1)
    # A message edited during a turn of over a day may stand in the session that replaced the turn's own.
    yield from withdraw_rows((yield from turn_items(held)))


def withdraw_rows(items: Iterable[QueuedItem]) -> Transaction[None]:
    """Take the rows of messages away: the messages are appended again with their next turn."""
    recorded = [one for one in items if one.transcript_id is not None]
    for message_id in sorted({one.transcript_id for one in recorded if one.transcript_id is not None}):
        rows = yield Statement("message_that_stands", (message_id,))
        for session_id, calls in rows:
            yield Statement("withdraw_message", (message_id,))
            yield from adjust_totals(session_id, messages=-1, calls=-calls)
    yield Statement("note_row", many=[(None, one.item_id) for one in recorded])


def rewrite_row(
    session_key: str, message_id: int, items: Sequence[QueuedItem], change: Change, *, keep: bool
) -> Transaction[None]:
    """Write the present content of a row's messages into it; without messages, nothing is left of it.

    If *keep*, the old version is kept as well.
    """
    told: Message | None = None
    if items:
        ordered = sorted(items, key=lambda one: one.seq)
        said = [decode_message(session_key, one.payload) for one in ordered]
        told = make_user_row(said, shared=is_room_owner(ordered[0].owner))
    yield from rewrite.rewrite_row_of_messages(message_id, told, change.now, change.ids, keep=keep)


def are_rows_visible_in(items: Sequence[QueuedItem], session_id: str) -> Transaction[bool]:
    """Return whether all transcript rows of messages are visible in that session."""
    for message_id in {one.transcript_id for one in items} - {None}:
        rows = yield Statement("message_that_stands", (message_id,))
        if [found for found, _ in rows] != [session_id]:
            return False
    return True


def is_other_turn_behind(items: Sequence[QueuedItem]) -> Transaction[bool]:
    """Return whether another turn is behind the messages' row, and would be hidden with it."""
    mine = sorted({one.transcript_id for one in items if one.transcript_id is not None})
    return bool((yield Statement("spoken_behind", (mine[0], msgspec.json.encode(mine).decode()))))


def requeue_turn(held: TurnLease, ready_at: int) -> Transaction[tuple[int, bool]]:
    """Give the messages of a turn back to the queue; each steered message gets a turn of its own.

    Return how many turns wait now that did not before, and whether the turn has messages that it began with.
    """
    items = yield from turn_items(held)
    others = steered_items(items)
    yield from withdraw_rows(others)
    yield move_statement(
        "give_back_turn", ItemEvent.RELEASED, params=(ready_at, held.session_key, held.token)
    )
    after = [advance_item(one.state_in_turn, ItemEvent.RELEASED) for one in items]
    return after.count(ItemState.WAITING), len(others) < len(items)


def bury_turn(held: TurnLease, by: str, problem: str | None, change: Change) -> Transaction[int]:
    """Make dead letters of the turn's messages; steered ones wait again. Return the number of these."""
    now = to_micros(change.now)
    items = yield from turn_items(held)
    others = steered_items(items)
    yield from forget_growing(items)
    yield from withdraw_rows(others)
    yield from move_items("give_back_item", ItemEvent.RELEASED, [(now, one.item_id) for one in others])
    yield move_statement(
        "bury_turn", ItemEvent.GIVEN_UP, params=(now, by, problem, held.session_key, held.token)
    )
    return len(others)


def steered_items(items: Iterable[QueuedItem]) -> list[QueuedItem]:
    """Return those of a turn's messages that were given to it while it ran."""
    return [one for one in items if one.steered]


def _row_of_items(session_key: str, items: Iterable[QueuedItem]) -> list[Message]:
    fresh = sorted((one for one in items if one.transcript_id is None), key=lambda one: one.seq)
    if not fresh:
        return []
    said = [decode_message(session_key, one.payload) for one in fresh]
    speaker = MessageAuthor(session_key, fresh[0].owner, fresh[0].author)
    return [row_of_messages(said, speaker, from_micros(fresh[0].admitted_at))]


def row_of_messages(said: Sequence[InboundMessage], speaker: MessageAuthor, admitted_at: datetime) -> Message:
    """Return the row for some messages, with the time of their admission if the platform told none."""
    row = make_user_row(said, shared=is_room_owner(speaker.owner))
    return row.altered(
        author=speaker.author, from_lane=speaker.session_key, sent_at=row.sent_at or admitted_at
    )


def _with_time(row: Message, admitted_at: datetime) -> Message:
    return row if row.sent_at is not None else row.altered(sent_at=admitted_at)
