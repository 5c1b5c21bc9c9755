"""Claim a lane for its next turn: take the lease, collect the turn's messages, find the session."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final, NamedTuple, TypeVar

import msgspec

from gateway_sessions.core.delivery.outbound_messages import Growing
from gateway_sessions.core.identity.keys import Isolation
from gateway_sessions.core.instants import from_micros, to_micros
from gateway_sessions.core.queue.inbound import InboundMessage
from gateway_sessions.core.queue.state_machine import ItemEvent
from gateway_sessions.core.sessions.entry import SessionEntry, SessionState
from gateway_sessions.core.sessions.reasons import EndReason
from gateway_sessions.errors import GatewaySessionsError, StorageCorruptError
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables.change import Change
from gateway_sessions.storage.tables.entries import load
from gateway_sessions.storage.tables.lanes import (
    LaneRow,
    NextTurn,
    QueuedItem,
    decode_message,
    is_next_turn_ready,
    items_of_waiting_turn,
    next_turn,
    put_lane,
)
from gateway_sessions.storage.tables.sql_files import row_of
from gateway_sessions.storage.tables.statements import move_items
from gateway_sessions.storage.transactions.queue import turn_transcript
from gateway_sessions.storage.transactions.queue.lane_and_queue_lookup import look_up_queue
from gateway_sessions.storage.transactions.queue.outbox import decode_growing
from gateway_sessions.storage.transactions.queue.turn_transcript import TurnLease
from gateway_sessions.storage.transactions.sessions.find_or_create import (
    GrantedSession,
    SessionIdTaken,
    SessionRequest,
    begin_session,
)

T = TypeVar("T")


@row_of("transcript_version")
class TranscriptVersion(NamedTuple):
    """The version of a session's transcript: it differs after every write."""

    last_seq: int = 0
    message_count: int = 0
    rewind_count: int = 0
    edit_count: int = 0
    """The number of edits and deletions of messages in the transcript."""


NO_VERSION: Final = TranscriptVersion()
"""The version of a transcript that does not exist, or that no caller asks for."""


class TurnStarter(msgspec.Struct, frozen=True, kw_only=True):
    """The facts for the start of a turn, and for a new session if the lane's has to be replaced first."""

    epoch: int
    new_session_id: str
    flags: Isolation
    versioned: bool = True
    """True if the caller asks for the version of the transcript when the turn began."""
    known: SessionEntry | None = None
    """The lane's entry as the process knows it; only the database tells whether that is current."""


class IdTakenError(GatewaySessionsError):
    """The id for a new session exists already; no row was changed, and another id may be free."""

    def __init__(self, session_key: str, session_id: str) -> None:
        self.session_key = session_key
        self.session_id = session_id
        super().__init__(f"session {session_id} exists already; lane {session_key!r} needs another one")


class TurnItem(msgspec.Struct, frozen=True, kw_only=True):
    """One of the messages of a turn."""

    seq: int
    message: InboundMessage
    admitted_at: datetime
    owner: str
    author: str | None = None
    """The owner name of the person who said the message; None if a room does not tell."""


class ClaimedTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn that has begun."""

    held: TurnLease
    entry: SessionEntry
    items: tuple[TurnItem, ...]
    attempt: int
    """1 for the first try; more if earlier ones were cut off."""
    begun_before: bool
    """True if an earlier try has put the messages into the transcript, and perhaps more."""
    recorded: bool
    """True if the messages stand in the transcript, and only rows of that try stand behind them."""
    version: TranscriptVersion
    waiting: int
    next_seq: int
    """The seq of the message that comes next on the lane."""
    growing: Growing | None = None
    """The reply of an earlier try, as far as it has grown."""


class AddedItem(NamedTuple):
    """A message that was added in this transaction, and whether its lane is leased already."""

    item: QueuedItem
    message: InboundMessage
    leased: bool = False


def claim(starter: TurnStarter, session_key: str, change: Change) -> Transaction[ClaimedTurn | None]:
    """Begin the lane's next turn; None if a turn runs already, or none is ready."""
    queue = yield from look_up_queue(session_key)
    if queue.lane.running or not is_next_turn_ready(queue.lane, change.now):
        return None
    if not queue.has_current_entry(current := starter.known):
        current, starter = None, msgspec.structs.replace(starter, known=None)
    return (yield from begin_next_turn(starter, queue.lane, change, current, queue.head))


def begin_next_turn(
    starter: TurnStarter,
    lane: LaneRow,
    change: Change,
    current: SessionEntry | None = None,
    following: NextTurn | None = None,
) -> Transaction[ClaimedTurn | None]:
    """Lease the lane to the turn at the head of its queue: from then on its attempt counts.

    *current* is the lane's entry, and *following* that turn, if they were read or written in this
    transaction. None if no waiting message can be read: the damaged ones become dead letters.
    """
    head = yield from _next_readable_turn(lane, following, change)
    if head is None:
        lane.waiting, lane.ready_at = 0, None
        yield from put_lane(lane)
        return None
    taken = [(lane.lease_token + 1, one.item_id) for one in head.found]
    yield from move_items("take_item", ItemEvent.BEGUN, taken)
    lane.waiting -= 1
    return (yield from _lease_and_claim(starter, lane, head, current, change))


def begin_turn_with(
    starter: TurnStarter, lane: LaneRow, written: AddedItem, current: SessionEntry, change: Change
) -> Transaction[ClaimedTurn]:
    """Begin a turn with a message that was added in this transaction."""
    item, message, leased = written
    whole = TurnItem(
        seq=item.seq, message=message, admitted_at=change.now, owner=item.owner, author=item.author
    )
    head = _DecodedTurn([item], (whole,), leased)
    return (yield from _lease_and_claim(starter, lane, head, current, change))


def _lease_and_claim(
    starter: TurnStarter,
    lane: LaneRow,
    head: _DecodedTurn,
    current: SessionEntry | None,
    change: Change,
) -> Transaction[ClaimedTurn]:
    found, items, leased = head
    entry = current or (yield from load(lane.session_key, starter.known))
    granted = yield from _session_of_turn(
        starter, lane, entry, _HeadMessage(items[0].message, found[0].owner), change
    )
    session_id = granted.entry.session_id
    written = found[0].transcript_id is not None
    begun_before = written and (yield from turn_transcript.are_rows_visible_in(found, session_id))
    recorded = begun_before and not (yield from turn_transcript.is_other_turn_behind(found))
    if written and not recorded:
        yield from turn_transcript.withdraw_rows(found)
    if not leased:
        lane.lease(starter.epoch, to_micros(change.now))
        yield from put_lane(lane)
    return ClaimedTurn(
        held=TurnLease(
            session_key=lane.session_key,
            epoch=starter.epoch,
            token=lane.lease_token,
            session_id=session_id,
        ),
        entry=granted.entry,
        items=items,
        attempt=lane.attempts + 1,
        begun_before=begun_before,
        recorded=recorded,
        version=(yield from transcript_version(session_id)) if starter.versioned else NO_VERSION,
        waiting=lane.waiting,
        next_seq=lane.next_seq,
        growing=decode_growing(found[0].growing),
    )


def transcript_version(session_id: str) -> Transaction[TranscriptVersion]:
    """Return the version of the session's transcript."""
    rows = yield Statement("transcript_version", (session_id,))
    return TranscriptVersion(*rows[0]) if rows else NO_VERSION


def _next_readable_turn(
    lane: LaneRow, following: NextTurn | None, change: Change
) -> Transaction[_DecodedTurn | None]:
    """Return the next turn; damaged turns before it become dead letters, so that they block no other."""
    buried = False
    following = following or (yield from next_turn(lane.session_key))
    while following is not None:
        lane.attempts = following.tries if buried else lane.attempts
        found = yield from items_of_waiting_turn(lane.session_key, following.item_id, following.seq)
        try:
            return _DecodedTurn(found, tuple(_decode_item(lane.session_key, one) for one in found))
        except StorageCorruptError as error:
            because = (to_micros(change.now), "claim", str(error))
            set_aside = [(*because, one.item_id) for one in found]
            yield from move_items("bury_item", ItemEvent.SET_ASIDE, set_aside)
            lane.waiting -= 1
            buried = True
            following = yield from next_turn(lane.session_key)
    lane.attempts = 0 if buried else lane.attempts
    return None


def _decode_item(session_key: str, item: QueuedItem) -> TurnItem:
    message = decode_message(session_key, item.payload)
    admitted_at = from_micros(item.admitted_at)
    return TurnItem(
        seq=item.seq, message=message, admitted_at=admitted_at, owner=item.owner, author=item.author
    )


class _DecodedTurn(NamedTuple):
    """All messages of a turn, as they are stored and as they are decoded."""

    found: list[QueuedItem]
    items: tuple[TurnItem, ...]
    leased: bool = False


class _HeadMessage(NamedTuple):
    message: InboundMessage
    owner: str


def _session_of_turn(
    starter: TurnStarter, lane: LaneRow, entry: SessionEntry | None, head: _HeadMessage, change: Change
) -> Transaction[GrantedSession]:
    """Return the session of the turn: the lane's, or a new one if that may not go on."""
    reason = _end_reason_of(entry) if entry is not None else None
    if entry is not None and reason is None:
        return GrantedSession(entry)
    request = SessionRequest(
        source=head.message.source,
        key=lane.session_key,
        flags=starter.flags,
        new_session_id=starter.new_session_id,
        known_owner=head.owner,
    )
    if reason in (
        None,
        EndReason.SUSPENDED,
    ):  # after any other end, the tries of the turn count in the new session
        lane.attempts = 0
    lane.moved_session_id = None
    granted = yield from begin_session(request, change, entry, reason)
    if isinstance(granted, SessionIdTaken):
        raise IdTakenError(lane.session_key, starter.new_session_id)
    return granted


def _end_reason_of(entry: SessionEntry) -> EndReason | None:
    """Return the reason why the lane's session may not go on; None if it may."""
    match entry.state:
        case SessionState.SUSPENDED:
            return EndReason.SUSPENDED
        case SessionState.EXPIRED:
            return EndReason(entry.state_reason or EndReason.IDLE)
        case _:
            return None


def keep_result(
    transaction: Callable[[Change], Transaction[T]], found: list[T], change: Change
) -> Transaction[T]:
    """Run a transaction and keep its result in *found*, in case nobody waits for the result any more."""
    found[:] = [(yield from transaction(change))]
    return found[0]
