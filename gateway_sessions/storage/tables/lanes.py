"""The row of a lane and the rows of its queue: its lease, its messages in order, and which turn is next."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from gateway_sessions.core.identity.keys import author_on_lane
from gateway_sessions.core.instants import to_micros
from gateway_sessions.core.queue.inbound import Duplicate, InboundMessage
from gateway_sessions.core.queue.items import ItemKind
from gateway_sessions.core.queue.state_machine import ItemEvent, ItemState
from gateway_sessions.errors import FencedError, StorageCorruptError
from gateway_sessions.ports import Row, Rows, Statement, Transaction
from gateway_sessions.storage.tables.column_decoding import DAMAGE, raise_damaged
from gateway_sessions.storage.tables.sql_files import record_of, row_of
from gateway_sessions.storage.tables.statements import lane_lock, move_items


@record_of("put_lane_row")
class LaneRow(msgspec.Struct, kw_only=True, gc=False):
    """The row of a lane. Transactions change the value and write it back."""

    session_key: str
    lease_epoch: int | None = None
    """The opening of the store that runs a turn here; None: no turn runs."""
    lease_token: int = 0
    """Rises each time the lane is leased or taken away; a write with an older token is refused."""
    leased_at: int | None = None
    attempts: int = 0
    """The number of cut-off tries in a row of the turn that runs or is next, without the try that runs."""
    moved_session_id: str | None = None
    next_seq: int = 1
    waiting: int = 0
    """The number of waiting turns; the running turn and merged messages do not count."""
    ready_at: int | None = None
    """The time at which the next turn may begin; None while a turn runs or none waits."""

    @property
    def running(self) -> bool:
        """Return whether a turn runs."""
        return self.lease_epoch is not None

    def lease(self, epoch: int, now: int) -> None:
        """Lease the lane to a turn; the lease stays in the row if the process ends before the turn."""
        self.lease_epoch, self.leased_at, self.ready_at = epoch, now, None
        self.lease_token += 1

    def revoke_lease(self) -> None:
        """Take the lane from its turn: later writes of that turn carry an older token and are refused."""
        self.lease_epoch, self.leased_at = None, None
        self.lease_token += 1


@row_of("lane_row")
class LaneColumns(NamedTuple):
    """All columns of a lane besides its key."""

    lease_epoch: int | None
    lease_token: int
    leased_at: int | None
    attempts: int
    moved_session_id: str | None
    next_seq: int
    waiting: int
    ready_at: int | None


@row_of("get_lane")
class LaneLease(NamedTuple):
    """The columns of a lane for transactions that do not write them."""

    lease_epoch: int | None
    """The opening of the store that runs a turn there; None: no turn runs."""
    attempts: int
    moved_session_id: str | None


class KnownLane(NamedTuple):
    """A lane as the last turn has left it: no turn runs or waits there, and none was cut off.

    `lease_calm_lane`, `queue_on_calm_lane` and `free_calm_lane` write such a lane by one statement, where
    `load_lane` and `put_lane` read it first. The benchmarks `turns` and `crowd` show the gain, and
    `test_known_facts` that both ways write the same rows.
    """

    next_seq: int
    token: int


def load_lane(session_key: str, *, locked: bool = False) -> Transaction[LaneRow]:
    """Return the lane, new if it was never used.

    *Locked*, no other transaction decides on the lane until the commit.
    """
    rows = yield Statement("lane_row", (session_key,), lock=lane_lock(session_key) if locked else None)
    return (yield from lane_from_columns(session_key, LaneColumns._make(rows[0]) if rows else None))


def lane_lease(session_key: str) -> Transaction[LaneLease | None]:
    """Return the lease of a lane and how often its turn was cut off; None if the lane was never used."""
    rows = yield Statement("get_lane", (session_key,))
    return LaneLease._make(rows[0]) if rows else None


def lane_from_columns(session_key: str, columns: LaneColumns | None) -> Transaction[LaneRow]:
    """Return the lane with these columns; a new one if there are none."""
    if columns is None:
        return LaneRow(session_key=session_key)
    waiting = yield from checked_waiting_count(session_key, columns.waiting, columns.next_seq)
    return LaneRow(session_key=session_key, **columns._replace(waiting=waiting)._asdict())


def checked_waiting_count(session_key: str, waiting: Any, next_seq: int) -> Transaction[int]:
    """Return the stored number of waiting turns; counted anew if it cannot be true.

    Only a damaged row holds a number below zero, or above the number of messages that ever came. Added to the
    numbers of all other lanes, it would make the store refuse every message, or none.
    """
    if isinstance(waiting, int) and 0 <= waiting < next_seq:
        return waiting
    return (yield from count_waiting(session_key))


def count_waiting(session_key: str) -> Transaction[int]:
    """Count the turns that wait on a lane."""
    ((waiting,),) = yield Statement("count_waiting_turns", (session_key,))
    return int(waiting)


def put_lane(lane: LaneRow) -> Transaction[None]:
    """Write all columns of the lane."""
    yield put_lane_statement(lane)


def put_lane_statement(lane: LaneRow) -> Statement:
    """Return the statement that writes all columns of the lane as they are now."""
    return Statement("put_lane_row", msgspec.structs.astuple(lane))


def require_held_lane(session_key: str, epoch: int, token: int) -> Transaction[LaneRow]:
    """Return the lane if the turn with that token still holds it; else raise `FencedError`."""
    lane = yield from load_lane(session_key, locked=True)
    if (lane.lease_epoch, lane.lease_token) != (epoch, token):
        raise FencedError(session_key, token)
    return lane


def lease_calm_lane(known: KnownLane, session_key: str, epoch: int, now: int) -> Transaction[LaneRow | None]:
    """Lease the lane to the message that comes next; None if the lane is not as it was known."""
    which = (epoch, now, session_key, known.next_seq, known.token)
    ((leased,),) = yield Statement("lease_calm_lane", which, lock=lane_lock(session_key))
    if not leased:
        return None
    return LaneRow(
        session_key=session_key,
        lease_epoch=epoch,
        lease_token=known.token + 1,
        leased_at=now,
        next_seq=known.next_seq + 1,
    )


def queue_on_calm_lane(known: KnownLane, session_key: str, ready_at: int) -> Transaction[LaneRow | None]:
    """Let the message that comes next wait alone on the lane; None if the lane is not as it was known."""
    which = (ready_at, session_key, known.next_seq, known.token)
    ((queued,),) = yield Statement("queue_on_calm_lane", which, lock=lane_lock(session_key))
    if not queued:
        return None
    return LaneRow(
        session_key=session_key,
        lease_token=known.token,
        next_seq=known.next_seq + 1,
        waiting=1,
        ready_at=ready_at,
    )


def free_calm_lane(session_key: str, epoch: int, token: int) -> Transaction[LaneRow | None]:
    """Give the lane back if that turn still holds it and no turn waits; None if it was not given back."""
    ((freed,),) = yield Statement("free_calm_lane", (session_key, epoch, token), lock=lane_lock(session_key))
    return LaneRow(session_key=session_key, lease_token=token) if freed else None


def is_busy(session_key: str) -> Transaction[bool]:
    """Return whether a turn runs or waits on the lane: a reset would cut off that work."""
    return bool((yield Statement("lane_is_busy", (session_key,))))


def is_running(session_key: str) -> Transaction[bool]:
    """Return whether a turn runs on the lane."""
    return bool((yield Statement("lane_is_running", (session_key,))))


PLACES: Final = 1 << 20
"""Room behind each message for dead letters that are tried again and wait behind it."""
TRIED_AGAIN_APART: Final = 1 << 8
"""Room behind each dead letter for the other messages of its turn, which may come to lead it one by one."""

_READ: Final = msgspec.json.Decoder(InboundMessage)


@row_of("items_of_next", "items_of_turn", "waiting_half_answered", "dead_turn")
class QueuedItem(NamedTuple):
    """A row of the queue: a message and its place."""

    item_id: int
    seq: int
    owner: str
    merged_into: int | None
    admitted_at: int
    transcript_id: int | None
    """The id of its row in the transcript, if it has one."""
    payload: str | None
    place: int
    sender: str = ""
    growing: str | None = None
    """The platform message in which its reply grows, as it is stored."""
    steered: bool | int = False
    """True if the message was given to its turn while that ran."""

    @property
    def state_in_turn(self) -> ItemState:
        """Return the message's state as one of the messages of a running turn."""
        if self.steered:
            return ItemState.STEERED
        return ItemState.RUNNING if self.merged_into is None else ItemState.RUNNING_MERGED

    @property
    def author(self) -> str | None:
        """Return the owner name of the person who said the message; None if a room does not tell."""
        return author_on_lane(self.owner, self.sender)


def item_kind(message: InboundMessage) -> str:
    """Return the kind, as it is stored, of a message that gets a turn."""
    return str(ItemKind.INTERNAL if message.internal else ItemKind.MESSAGE)


@record_of("add_item")
class NewQueuedItem(NamedTuple):
    """A message, a command or a change as it is added to the queue."""

    item_id: int
    session_key: str
    seq: int
    place: int
    event: str | None
    """The platform's key of it, by which a second delivery is known."""
    owner: str
    sender: str
    kind: str
    solo: int
    media: int
    merged_into: int | None
    messages: int
    characters: int
    last_at: int
    admitted_at: int
    ready_at: int
    token: int | None = None
    payload: str | None = None
    outcome: str | None = None
    settled_at: int | None = None
    settled_by: str | None = None


@row_of("kept_event")
class AcceptedItem(NamedTuple):
    """An accepted message, found by its platform's event."""

    item_id: int
    session_key: str
    seq: int
    merged_into: int | None
    token: int | None
    outcome: str | None
    payload: str | None


@row_of("next_waiting")
class NextTurn(NamedTuple):
    """The turn that begins next on a lane, identified by the message that leads it."""

    seq: int
    ready_at: int
    last_at: int
    """The time at which the latest of its messages came."""
    item_id: int
    tries: int
    """The number of tries that were cut off before another turn became the next one."""


def next_turn(session_key: str) -> Transaction[NextTurn | None]:
    """Return the turn that begins next on a lane; None if none waits."""
    rows = yield Statement("next_waiting", (session_key,))
    return NextTurn(*rows[0]) if rows else None


def item_of_event(event: str | None) -> Transaction[AcceptedItem | None]:
    """Return the message that was accepted as that event of a platform; None if there is none."""
    rows = yield Statement("kept_event", (event,))
    return AcceptedItem._make(rows[0]) if rows else None


def duplicate_from_rows(events: Rows) -> Duplicate | None:
    """Return the place of an event that came before, from the rows of `known_event`; None if it is new."""
    for session_key, seq in events:
        return Duplicate(seq=seq, session_key=session_key)
    return None


def item_from_row(row: Row) -> QueuedItem:
    """Return the queued message in a row."""
    return QueuedItem(*row)


def items_of_waiting_turn(session_key: str, head_id: int, seq: int) -> Transaction[list[QueuedItem]]:
    """Return the messages of a waiting turn; the one with this id and this seq leads it and comes first."""
    items = map(item_from_row, (yield Statement("items_of_next", (head_id, session_key, seq))))
    return sorted(items, key=lambda one: (one.merged_into is not None, one.seq))


def decode_message(session_key: str, payload: str | None) -> InboundMessage:
    """Decode a queued message; `StorageCorruptError` if it is damaged."""
    try:
        return _READ.decode(payload or "")
    except DAMAGE as error:
        raise_damaged(f"lane {session_key!r}", error, "a waiting message")


def decode_message_or_none(session_key: str, payload: str | None) -> InboundMessage | None:
    """Decode a queued message; None if it is damaged."""
    try:
        return decode_message(session_key, payload)
    except StorageCorruptError:
        return None


def place_of_seq(seq: int) -> int:
    """Return the place in the queue of the message that was accepted as the *seq*-th."""
    return seq * PLACES


def place_behind_all(lane: LaneRow) -> Transaction[int]:
    """Return a place behind all messages that wait or run, and before all that will ever come."""
    ((last,),) = yield Statement("last_open_place", (lane.session_key,))
    return max(int(last), place_of_seq(lane.next_seq - 1)) + TRIED_AGAIN_APART


def find_waiting_turn(session_key: str, seq: int) -> Transaction[int | None]:
    """Return the id of the message that leads a turn, if the turn waits.

    The place that follows from *seq* is tried first: few messages were moved from there.
    """
    rows = yield Statement("turn_in_place", (session_key, place_of_seq(seq), seq))
    rows = rows or (yield Statement("turn_anywhere", (session_key, seq)))
    return next((int(item_id) for (item_id,) in rows), None)


def is_next_turn_ready(lane: LaneRow, now: datetime) -> bool:
    """Return whether the lane's next turn may begin."""
    return lane.ready_at is not None and lane.ready_at <= to_micros(now)


def update_ready_at(lane: LaneRow, *, another: bool = False) -> Transaction[None]:
    """Set the time at which the next turn may begin; if *another* turn became next, its tries as well."""
    lane.ready_at = None
    if lane.running:
        return
    following = (yield from next_turn(lane.session_key)) if lane.waiting else None
    if following is not None:
        lane.ready_at = following.ready_at
    if another:
        lane.attempts = following.tries if following is not None else 0


def schedule_next_turn(lane: LaneRow, now: datetime) -> Transaction[NextTurn | None]:
    """Set the time at which the lane's next turn may begin, now that a turn has ended, and return that turn.

    The next turn stands in line from now on, behind turns of other lanes that have waited longer. It begins
    later if its burst may still go on. A message with a time later than now, from a clock that was set back
    since, makes its turn wait no longer.
    """
    lane.ready_at = None
    following = (yield from next_turn(lane.session_key)) if lane.waiting else None
    if following is None:
        return None
    moment = to_micros(now)
    lane.ready_at = following.ready_at if following.last_at <= moment < following.ready_at else moment
    return following


def schedule_and_store(lane: LaneRow, now: datetime) -> Transaction[None]:
    """Let the lane's next turn stand in line, as `schedule_next_turn` does, and store the time in its row."""
    following = yield from schedule_next_turn(lane, now)
    if following is not None:
        yield Statement("set_ready_at", (lane.ready_at, following.item_id))


def recount_waiting_turns(lane: LaneRow, *, another: bool = False) -> Transaction[None]:
    """Count anew how many turns wait on the lane, and set what the lane knows of the next one."""
    lane.waiting = yield from count_waiting(lane.session_key)
    yield from update_ready_at(lane, another=another)


def promote_next_message(item_id: int, others: Sequence[QueuedItem]) -> Transaction[int | None]:
    """Let the other messages of a turn go on without the one that led it; return the id of the new leader."""
    if not others:
        return None
    first, *rest = others
    yield from move_items("lead_item", ItemEvent.PROMOTED, [(item_id, first.item_id)])
    yield Statement("follow_item", many=[(first.seq, one.item_id) for one in rest])
    return first.item_id


def is_next_turn(lane: LaneRow, seq: int) -> Transaction[bool]:
    """Return whether a waiting turn is the next one, so that the lane counts its tries."""
    if lane.running:
        return False
    following = yield from next_turn(lane.session_key)
    return following is not None and following.seq == seq
