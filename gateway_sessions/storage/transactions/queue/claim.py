"""Claim a lane for its next turn: take the lease, collect the turn's messages, find the session."""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple

import msgspec

from gateway_sessions.core.delivery.outbound import Growing
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
from gateway_sessions.storage.tables.inbox import (
    InboxItem,
    NextTurn,
    decode_message,
    is_ready,
    items_of_next,
    next_turn,
)
from gateway_sessions.storage.tables.lanes import LaneRow, put_lane
from gateway_sessions.storage.tables.moves import move_items
from gateway_sessions.storage.transactions.queue import turn_rows
from gateway_sessions.storage.transactions.queue.arrival_lookup import look_at_queue
from gateway_sessions.storage.transactions.queue.growing_replies import growing_in
from gateway_sessions.storage.transactions.queue.turn_rows import Held
from gateway_sessions.storage.transactions.sessions.find_or_create import (
    Granted,
    IdTaken,
    SessionRequest,
    begin_anew,
)


class Version(NamedTuple):
    """Changes whenever anybody writes to a session's transcript."""

    last_seq: int = 0
    message_count: int = 0
    rewind_count: int = 0
    edit_count: int = 0
    """How often anything was edited or deleted where it was said."""


NO_VERSION: Final = Version()
"""Of a transcript that is not there, or that nobody asks for."""


class Starter(msgspec.Struct, frozen=True, kw_only=True):
    """Who begins a turn, and what it takes should the lane's session have to be replaced first."""

    epoch: int
    new_session_id: str
    flags: Isolation
    versioned: bool = True
    """Whether anybody asks what the transcript was like when the turn began."""
    known: SessionEntry | None = None
    """The lane's entry as it is remembered; only the database says whether it is current."""


class IdTakenError(GatewaySessionsError):
    """The id for a new session exists already: nothing was changed, and another one may be free."""

    def __init__(self, session_key: str, session_id: str) -> None:
        self.session_key = session_key
        self.session_id = session_id
        super().__init__(f"session {session_id} exists already; lane {session_key!r} needs another one")


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One of the messages that a turn is about."""

    seq: int
    message: InboundMessage
    admitted_at: datetime
    owner: str
    author: str | None = None
    """The person who said it, by their owner name; None if a room does not tell."""


class ClaimedTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn that has begun."""

    held: Held
    entry: SessionEntry
    items: tuple[Item, ...]
    attempt: int
    """1 for the first try; more if earlier ones were cut off."""
    begun_before: bool
    """Whether an earlier try has put the message into the transcript, and perhaps more."""
    recorded: bool
    """Whether it stands there in its place, with nothing behind it but what that try has added."""
    version: Version
    waiting: int
    next_seq: int
    """The place of the message that comes next on the lane."""
    growing: Growing | None = None
    """Where the reply has grown in an earlier try."""


class Written(NamedTuple):
    """A message that was written down just now, as it is read again, and whether its lane is leased."""

    item: InboxItem
    message: InboundMessage
    leased: bool = False


def claim(starter: Starter, session_key: str, change: Change) -> Transaction[ClaimedTurn | None]:
    """Begin the lane's next turn; None if one runs already, or nothing is ready."""
    queue = yield from look_at_queue(session_key)
    if queue.lane.running or not is_ready(queue.lane, change.now):
        return None
    if not queue.shows(current := starter.known):
        current, starter = None, msgspec.structs.replace(starter, known=None)
    return (yield from begin_turn(starter, queue.lane, change, current, queue.head))


def begin_turn(
    starter: Starter,
    lane: LaneRow,
    change: Change,
    current: SessionEntry | None = None,
    following: NextTurn | None = None,
) -> Transaction[ClaimedTurn | None]:
    """Lease the lane to the turn at the head of its queue: from then on its attempt counts.

    *current* is its entry, and *following* that turn, if they were read or written just now. None if nothing
    of what waits can be read any more, which becomes dead letters.
    """
    head = yield from _readable_head(lane, following, change)
    if head is None:
        lane.waiting, lane.ready_at = 0, None
        yield from put_lane(lane)
        return None
    taken = [(lane.lease_token + 1, one.item_id) for one in head.found]
    yield from move_items("take_item", ItemEvent.BEGUN, taken)
    lane.waiting -= 1
    return (yield from _begin(starter, lane, head, current, change))


def begin_with(
    starter: Starter, lane: LaneRow, written: Written, current: SessionEntry, change: Change
) -> Transaction[ClaimedTurn]:
    """The same with a message that was written down just now as part of the turn that comes next.

    A lane that is *leased* already is leased to that turn.
    """
    item, message, leased = written
    whole = Item(seq=item.seq, message=message, admitted_at=change.now, owner=item.owner, author=item.author)
    head = _Whole([item], (whole,), leased)
    return (yield from _begin(starter, lane, head, current, change))


def _begin(
    starter: Starter,
    lane: LaneRow,
    head: _Whole,
    current: SessionEntry | None,
    change: Change,
) -> Transaction[ClaimedTurn]:
    found, items, leased = head
    entry = current or (yield from load(lane.session_key, starter.known))
    granted = yield from _session_for(starter, lane, entry, _Head(items[0].message, found[0].owner), change)
    session_id = granted.entry.session_id
    written = found[0].transcript_id is not None
    begun_before = written and (yield from turn_rows.stands_in(found, session_id))
    recorded = begun_before and not (yield from turn_rows.others_spoke_behind(found))
    if written and not recorded:
        yield from turn_rows.withdraw(found)
    if not leased:
        lane.lease(starter.epoch, to_micros(change.now))
        yield from put_lane(lane)
    return ClaimedTurn(
        held=Held(
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
        version=(yield from version_of(session_id)) if starter.versioned else NO_VERSION,
        waiting=lane.waiting,
        next_seq=lane.next_seq,
        growing=growing_in(found[0].growing),
    )


def version_of(session_id: str) -> Transaction[Version]:
    """What changes whenever anybody writes to the session's transcript."""
    rows = yield Statement("transcript_version", (session_id,))
    return Version(*rows[0]) if rows else NO_VERSION


def _readable_head(lane: LaneRow, following: NextTurn | None, change: Change) -> Transaction[_Whole | None]:
    """What the next turn is about; what cannot be read any more is put aside, so that it blocks nothing."""
    buried = False
    following = following or (yield from next_turn(lane.session_key))
    while following is not None:
        lane.attempts = following.tries if buried else lane.attempts
        found = yield from items_of_next(lane.session_key, following.item_id, following.seq)
        try:
            return _Whole(found, tuple(_item(lane.session_key, one) for one in found))
        except StorageCorruptError as error:
            because = (to_micros(change.now), "claim", str(error))
            set_aside = [(*because, one.item_id) for one in found]
            yield from move_items("bury_item", ItemEvent.SET_ASIDE, set_aside)
            lane.waiting -= 1
            buried = True
            following = yield from next_turn(lane.session_key)
    lane.attempts = 0 if buried else lane.attempts
    return None


def _item(session_key: str, item: InboxItem) -> Item:
    message = decode_message(session_key, item.payload)
    admitted_at = from_micros(item.admitted_at)
    return Item(seq=item.seq, message=message, admitted_at=admitted_at, owner=item.owner, author=item.author)


class _Whole(NamedTuple):
    """All that a turn is about, as it is stored and as it is read."""

    found: list[InboxItem]
    items: tuple[Item, ...]
    leased: bool = False


class _Head(NamedTuple):
    message: InboundMessage
    owner: str


def _session_for(
    starter: Starter, lane: LaneRow, entry: SessionEntry | None, head: _Head, change: Change
) -> Transaction[Granted]:
    """The session the turn belongs to: the lane's, unless that may not go on."""
    reason = _over(entry) if entry is not None else None
    if entry is not None and reason is None:
        return Granted(entry)
    request = SessionRequest(
        source=head.message.source,
        key=lane.session_key,
        flags=starter.flags,
        new_session_id=starter.new_session_id,
        known_owner=head.owner,
    )
    if reason in (None, EndReason.SUSPENDED):  # else it is the turn that was cut off, wherever it goes on
        lane.attempts = 0
    lane.moved_session_id = None
    granted = yield from begin_anew(request, change, entry, reason)
    if isinstance(granted, IdTaken):
        raise IdTakenError(lane.session_key, starter.new_session_id)
    return granted


def _over(entry: SessionEntry) -> EndReason | None:
    """Why the turn may not go on with the lane's session, if that is so."""
    match entry.state:
        case SessionState.SUSPENDED:
            return EndReason.SUSPENDED
        case SessionState.EXPIRED:
            return EndReason(entry.state_reason or EndReason.IDLE)
        case _:
            return None
