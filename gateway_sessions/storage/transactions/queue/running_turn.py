"""A running turn: its conversation, appended messages, steering, and its end or return to the queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

import msgspec

from gateway_sessions.core.delivery.outbound_messages import Growing
from gateway_sessions.core.instants import to_micros
from gateway_sessions.core.queue.inbound import InboundMessage
from gateway_sessions.core.queue.items import Outcome
from gateway_sessions.core.queue.state_machine import TURN_EVENTS, ItemEvent
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.sessions.state_machine import Event, is_allowed
from gateway_sessions.core.transcript.messages import Message
from gateway_sessions.core.transcript.model_history import Chat
from gateway_sessions.core.usage.usage_events import Usage
from gateway_sessions.errors import FencedError, GatewaySessionsError, StorageCorruptError
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables import lineage
from gateway_sessions.storage.tables.change import Change
from gateway_sessions.storage.tables.entries import load, put_record_and_clocks
from gateway_sessions.storage.tables.lanes import (
    KnownLane,
    LaneRow,
    find_waiting_turn,
    free_calm_lane,
    is_next_turn_ready,
    items_of_waiting_turn,
    promote_next_message,
    put_lane,
    require_held_lane,
    schedule_next_turn,
    update_ready_at,
)
from gateway_sessions.storage.tables.statements import move_items, move_statement
from gateway_sessions.storage.transactions.queue import turn_transcript
from gateway_sessions.storage.transactions.queue.claim import (
    NO_VERSION,
    ClaimedTurn,
    TranscriptVersion,
    TurnStarter,
    begin_next_turn,
    claim,
    transcript_version,
)
from gateway_sessions.storage.transactions.queue.outbox import Owed, note_growing_statement, owe_replies
from gateway_sessions.storage.transactions.queue.turn_transcript import (
    MessageAuthor,
    TurnLease,
    turn_items,
)
from gateway_sessions.storage.transactions.sessions.find_or_create import only_touches_at_end, touch_statement
from gateway_sessions.storage.transactions.sessions.lane_changes import (
    settle_answered_turn,
    settle_internal_turn,
)
from gateway_sessions.storage.transactions.sessions.session_transitions import apply_event
from gateway_sessions.storage.transactions.transcripts import messages as conversations
from gateway_sessions.storage.transactions.transcripts import usage as uses

STOPPED: Final = Message("assistant", "[This turn was stopped.]", finish_reason="interrupted")
"""The text in which a transcript tells a model that a person stopped the turn."""


class TurnSettlement(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a turn, and all that the turn leaves behind."""

    held: TurnLease
    outcome: Outcome
    by: str = "turn"
    messages: Sequence[Message] = ()
    usages: Sequence[Usage] = ()
    replies: Sequence[Owed] = ()
    last_prompt_tokens: int | None = None
    problem: str | None = None
    internal: bool = False
    """True if all messages of the turn came from the program: then the turn moves no interaction clock."""
    begun: ClaimedTurn | None = None
    """The turn as it began, if no message was added to it since, which the holder of the lease knows."""


@dataclass(frozen=True, slots=True)
class SettledTurn:
    """The rows that a turn left behind."""

    entry: SessionEntry | None
    message_ids: list[int] = field(default_factory=list[int])
    reply_ids: tuple[int, ...] = ()
    version: TranscriptVersion = NO_VERSION
    waiting: int = 0
    next: ClaimedTurn | None = None
    lane: KnownLane | None = None
    """The lane, if no turn runs or waits there now."""


class KnownBeforeEnd(msgspec.Struct, frozen=True, kw_only=True):
    """Facts that the process knows before a turn ends; only the database tells whether they are current."""

    entry: SessionEntry | None = None
    starter: TurnStarter | None = None
    """The start of the next turn in the same commit, if one may begin."""
    next_lane: str | None = None
    """The lane of that next turn; None: this lane."""
    others_wait: bool = False
    """True if turns wait on this lane behind the one that ends."""
    versioned: bool = True
    """True if the caller asks for the version of the transcript afterwards."""


NOTHING_KNOWN: Final = KnownBeforeEnd()


class TurnChangedError(GatewaySessionsError):
    """The messages of the turn are not those that its holder knows; no row was changed: read them again."""

    def __init__(self, session_key: str) -> None:
        self.session_key = session_key
        super().__init__(f"the turn on lane {session_key!r} is not about what it began with")


def append_messages(held: TurnLease, messages: Sequence[Message], change: Change) -> Transaction[list[int]]:
    """Add messages to the transcript while the turn runs, behind the messages of the turn."""
    yield from require_held_lane(held.session_key, held.epoch, held.token)
    session_id = yield from _current_session(held)
    return (yield from turn_transcript.append_turn_rows(held, session_id, messages, change))


def note_growing_reply(held: TurnLease, growing: Growing) -> Transaction[None]:
    """Store the platform message in which the turn's reply grows."""
    yield from require_held_lane(held.session_key, held.epoch, held.token)
    yield note_growing_statement(held.session_key, held.token, growing)


def owe_during_turn(
    held: TurnLease, owed: Sequence[Owed], change: Change, growing: Growing | None = None
) -> Transaction[tuple[int, ...]]:
    """Owe messages while the turn runs, before its own reply and in the place of the *growing* one."""
    yield from require_held_lane(held.session_key, held.epoch, held.token)
    if growing is not None:
        yield note_growing_statement(held.session_key, held.token, growing)
    entry = yield from load(held.session_key)
    return (yield from owe_replies(owed, entry, held.session_key, change))


def turn_conversation(held: TurnLease, session_id: str, limit: int | None) -> Transaction[list[Chat]]:
    """Return the conversation in the form that a model gets, with the messages of the turn at its end."""
    pending = yield from turn_transcript.missing_rows(held)
    return (
        yield from conversations.load_conversation(
            session_id, limit, include_ancestors=False, pending=pending
        )
    )


def record_stopped_turn(lane: LaneRow, change: Change) -> Transaction[None]:
    """Append the messages of a turn to the transcript, before the turn is stopped from outside."""
    held = TurnLease(session_key=lane.session_key, epoch=lane.lease_epoch or 0, token=lane.lease_token)
    entry = yield from load(lane.session_key)
    if entry is None:
        return
    try:
        yield from turn_transcript.append_turn_rows(held, entry.session_id, [STOPPED], change, noted=False)
    except StorageCorruptError:
        # A message that cannot be read must not keep people from stopping its turn.
        return


class SteeredMessage(NamedTuple):
    """A message that became part of a running turn."""

    lane: LaneRow
    message: InboundMessage
    """The message as it is now: it may have been edited since it was accepted."""


def steer_message(held: TurnLease, seq: int, change: Change) -> Transaction[SteeredMessage | None]:
    """Let a waiting message join the running turn; None if it does not wait any more.

    Other messages of its turn wait on without it: the running turn was not told of them.
    """
    lane = yield from require_held_lane(held.session_key, held.epoch, held.token)
    session_id = yield from _current_session(held)
    item_id = yield from find_waiting_turn(held.session_key, seq)
    if item_id is None:
        return None
    # An earlier try may have appended it elsewhere in the transcript, in one row with others.
    together = yield from items_of_waiting_turn(held.session_key, item_id, seq)
    yield from turn_transcript.withdraw_rows(together)
    others = [one for one in together if one.item_id != item_id]
    if (yield from promote_next_message(item_id, others)) is None:
        lane.waiting -= 1
        yield from put_lane(lane)
    yield from move_items("steer_item", ItemEvent.STEERED, [(held.token, held.token, item_id)])
    item = next(one for one in (yield from turn_items(held)) if one.seq == seq)
    return SteeredMessage(
        lane, (yield from turn_transcript.append_steered_row(held, session_id, item, change))
    )


def end_turn(
    settlement: TurnSettlement, change: Change, known: KnownBeforeEnd = NOTHING_KNOWN
) -> Transaction[SettledTurn]:
    """Write all that the turn leaves behind and give the lane back, or on to its next turn.

    The next turn may be one of another lane that waits until fewer turns run.
    """
    held = settlement.held
    freed = None if known.others_wait else (yield from _free_lane_if_calm(settlement))
    lane = freed or (yield from require_held_lane(held.session_key, held.epoch, held.token))
    entry, ids = yield from _write_to_session(settlement, change, known)
    yield from _settle_items(settlement, lane, change)
    replies = yield from owe_replies(settlement.replies, entry, held.session_key, change)
    following: ClaimedTurn | None = None
    if freed is None:
        starter = known.starter if known.next_lane is None else None
        following = yield from _free_or_begin_next(lane, entry, change, starter)
    if known.starter is not None and known.next_lane is not None:
        following = yield from claim(known.starter, known.next_lane, change)
    version = NO_VERSION
    if known.versioned and entry is not None:
        version = yield from transcript_version(entry.session_id)
    left = None
    if freed is not None and settlement.begun is not None:
        left = KnownLane(settlement.begun.next_seq, held.token)
    return SettledTurn(entry, ids, replies, version, lane.waiting, following, left)


def _free_lane_if_calm(settlement: TurnSettlement) -> Transaction[LaneRow | None]:
    """Give the lane back by one statement if the turn still holds it and no turn waits; else None."""
    held = settlement.held
    if settlement.outcome is Outcome.DEAD:  # its steered messages wait again
        return None
    return (yield from free_calm_lane(held.session_key, held.epoch, held.token))


def _free_or_begin_next(
    lane: LaneRow, entry: SessionEntry | None, change: Change, starter: TurnStarter | None
) -> Transaction[ClaimedTurn | None]:
    """Give the lane back, or on to its next turn."""
    lane.lease_epoch, lane.leased_at = None, None
    following = yield from schedule_next_turn(lane, change.now)
    lane.attempts = following.tries if following is not None else 0
    if starter is not None and is_next_turn_ready(lane, change.now):
        return (yield from begin_next_turn(starter, lane, change, entry, following))
    yield from put_lane(lane)
    if following is not None:
        yield Statement("set_ready_at", (lane.ready_at, following.item_id))
    return None


def _write_to_session(
    settlement: TurnSettlement, change: Change, known: KnownBeforeEnd
) -> Transaction[tuple[SessionEntry | None, list[int]]]:
    """Write the turn's rows in its session; return the entry, and the ids of the turn's messages."""
    held = settlement.held
    entry = yield from _touch_known_entry(settlement, change, known.entry)
    if entry is not None:
        return entry, (yield from _write_transcript_rows(settlement, entry.session_id, change))
    entry = yield from load(held.session_key, known.entry)
    if entry is None:
        return None, []
    session_id = yield from _session_to_write(held, entry)
    ids = yield from _write_transcript_rows(settlement, session_id, change)
    counted = yield from uses.count_turn_usage(session_id, settlement.usages)
    if session_id == entry.session_id:
        used = uses.entry_with_use(entry, counted)
        return (yield from _advance_session_entry(settlement, entry, used, change)), ids
    yield from uses.count_on_entry(session_id, counted, change.now)
    return entry, ids


def _touch_known_entry(
    settlement: TurnSettlement, change: Change, entry: SessionEntry | None
) -> Transaction[SessionEntry | None]:
    """Return the entry after the turn if it is as known and only its clocks move; else None.

    The quick way beside `load` and `_advance_session_entry`: `KnownLane` names what shows its gain and holds
    both equal.
    """
    if entry is None or settlement.usages or settlement.internal:
        return None
    if settlement.outcome is Outcome.ROLLED_BACK:
        return None
    if settlement.held.session_id not in ("", entry.session_id):
        return None
    if not only_touches_at_end(change, entry, settlement.last_prompt_tokens):
        return None
    ((moved,),) = yield touch_statement(entry, change.now, alone=False)
    return entry.evolve(change.now, last_interaction_at=change.now) if moved else None


def give_back_turn(
    held: TurnLease, retry_at: datetime | None, change: Change, *, counted: bool
) -> Transaction[LaneRow]:
    """Let the turn wait again in its old place, because it did not come to an end."""
    lane = yield from require_held_lane(held.session_key, held.epoch, held.token)
    again, tried = yield from turn_transcript.requeue_turn(held, to_micros(retry_at or change.now))
    lane.waiting += again
    lane.revoke_lease()
    if tried:
        lane.attempts += counted
    # People may have deleted all messages that it began with: then another turn is next.
    yield from update_ready_at(lane, another=not tried)
    yield from put_lane(lane)
    return lane


def _current_session(held: TurnLease) -> Transaction[str]:
    entry = yield from load(held.session_key)
    if entry is None:  # a leased lane keeps its session, unless another program wrote to the database
        raise FencedError(held.session_key, held.token)
    return (yield from _session_to_write(held, entry))


def _session_to_write(held: TurnLease, entry: SessionEntry) -> Transaction[str]:
    """Return the session that the turn writes to: its own, or the continuation after a compression."""
    if held.session_id in ("", entry.session_id):
        return entry.session_id
    line = yield from lineage.compression_line_ids(held.session_id)
    behind = line[line.index(held.session_id) :]
    return entry.session_id if entry.session_id in behind else held.session_id


def _write_transcript_rows(
    settlement: TurnSettlement, session_id: str, change: Change
) -> Transaction[list[int]]:
    """Write the turn's rows in the transcript; return the ids of its last messages."""
    held, outcome = settlement.held, settlement.outcome
    if outcome is Outcome.ROLLED_BACK:
        yield from turn_transcript.hide_turn_rows(held, session_id, change.ids)
        return []
    noted, begun, messages = outcome is Outcome.DEAD, settlement.begun, settlement.messages
    # A failed turn is read again here, because `bury_turn` does not check that its messages are still those.
    if begun is None or begun.recorded or outcome is Outcome.DEAD:
        return (yield from turn_transcript.append_turn_rows(held, session_id, messages, change, noted=noted))
    items = begun.items if len(begun.items) == 1 else sorted(begun.items, key=lambda one: one.seq)
    first = items[0]
    spoken = [one.message for one in items]
    said = [
        turn_transcript.row_of_messages(
            spoken, MessageAuthor(held.session_key, first.owner, first.author), first.admitted_at
        )
    ]
    return (
        yield from turn_transcript.append_known_rows(said, held, session_id, messages, change, noted=noted)
    )


def _settle_items(settlement: TurnSettlement, lane: LaneRow, change: Change) -> Transaction[None]:
    held = settlement.held
    if settlement.outcome is Outcome.DEAD:
        lane.waiting += yield from turn_transcript.bury_turn(held, settlement.by, settlement.problem, change)
        return
    event = TURN_EVENTS[settlement.outcome]
    settled = (str(settlement.outcome), to_micros(change.now), settlement.by, settlement.problem)
    params = (*settled, held.session_key, held.token)
    begun = settlement.begun
    # An edited message has a row by now, and the one just written has its old text: the count tells.
    as_begun = begun is not None and not begun.recorded
    if as_begun:
        ((ended,),) = yield move_statement("settle_turn_as_begun", event, params=params)
    else:
        ((ended,),) = yield move_statement("settle_turn", event, params=params)
    if begun is not None and ended != len(begun.items):
        raise TurnChangedError(held.session_key)


def _advance_session_entry(
    settlement: TurnSettlement, entry: SessionEntry, used: SessionEntry, change: Change
) -> Transaction[SessionEntry]:
    """Write the entry with its use, move its clocks, and clear its mark of an interruption.

    No turn waits to be resumed any more. *used* is the *entry* with the use of the turn.
    """
    settled = used
    if settlement.outcome is not Outcome.ROLLED_BACK:
        ended = settle_internal_turn if settlement.internal else settle_answered_turn
        settled = yield from ended(change, used, settlement.last_prompt_tokens)
    if settled is used is not entry:  # no clock moved, so the use is not written yet
        settled = yield from put_record_and_clocks(used.evolve(change.now))
    return (yield from clear_entry_interruption(change, settled))


def clear_interruption(session_key: str, change: Change) -> Transaction[None]:
    """Clear the mark of an interruption: no turn of the lane waits to be resumed."""
    entry = yield from load(session_key)
    if entry is not None:
        yield from clear_entry_interruption(change, entry)


def clear_entry_interruption(change: Change, entry: SessionEntry) -> Transaction[SessionEntry]:
    """Return the entry without the mark of an interruption."""
    if not is_allowed(entry.state, Event.RECOVERED):
        return entry
    return (yield from apply_event(change, entry, Event.RECOVERED, None))
