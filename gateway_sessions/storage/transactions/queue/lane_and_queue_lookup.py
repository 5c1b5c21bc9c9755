"""One lookup of all rows that a new message meets: a duplicate, the lane's session, and its queue."""

from __future__ import annotations

from typing import NamedTuple

from gateway_sessions.core.instants import from_micros, to_micros
from gateway_sessions.core.queue.busy_modes import LastWaitingTurn
from gateway_sessions.core.queue.inbound import Duplicate, InboundMessage
from gateway_sessions.core.queue.items import ItemKind
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.ports import Rows, Statement, Transaction, together
from gateway_sessions.storage.tables.entries import decode, load
from gateway_sessions.storage.tables.lanes import (
    LaneColumns,
    LaneRow,
    NextTurn,
    duplicate_from_rows,
    lane_from_columns,
    next_turn,
)
from gateway_sessions.storage.tables.sql_files import row_of
from gateway_sessions.storage.tables.statements import lane_lock
from gateway_sessions.storage.transactions.sessions.find_or_create import SessionRequest


@row_of("lane_and_queue")
class LaneAndQueueRow(NamedTuple):
    """All columns of a lane, the version of its entry, its next turn, and the turn that would begin last."""

    lease_epoch: int | None
    lease_token: int
    leased_at: int | None
    attempts: int
    moved_session_id: str | None
    next_seq: int
    waiting: int
    ready_at: int | None
    entry_version: int | None
    head_seq: int | None
    head_ready_at: int
    head_last_at: int
    head_item_id: int
    head_tries: int
    last_seq: int | None
    sender: str
    solo: int
    media: int
    kind: str
    messages: int
    characters: int
    first_at: int
    last_at: int
    last_tries: int
    last_item_id: int

    @property
    def lane(self) -> LaneColumns:
        """Return the columns of the lane."""
        return LaneColumns(**{name: getattr(self, name) for name in LaneColumns._fields})

    @property
    def head(self) -> NextTurn | None:
        """Return the turn that begins next."""
        if self.head_seq is None:
            return None
        times = (self.head_ready_at, self.head_last_at)
        return NextTurn(self.head_seq, *times, self.head_item_id, self.head_tries)

    @property
    def last(self) -> LastTurn | None:
        """Return the turn that would begin last."""
        if self.last_seq is None:
            return None
        turn = LastWaitingTurn(
            seq=self.last_seq,
            sender=self.sender,
            solo=bool(self.solo) or self.kind != ItemKind.MESSAGE,
            has_media=bool(self.media),
            has_text=self.characters > 0,
            messages=self.messages,
            characters=self.characters,
            first_at=from_micros(self.first_at),
            last_at=from_micros(self.last_at),
        )
        return LastTurn(turn, self.last_item_id, self.last_tries)


class LastTurn(NamedTuple):
    """The turn that would begin last, the id of the message that leads it, and its cut-off tries."""

    turn: LastWaitingTurn
    item_id: int
    tries: int


class OldestTurn(NamedTuple):
    """The turn that has waited longest and was not asked for explicitly: its place and id."""

    seq: int
    item_id: int


class LaneQueue(NamedTuple):
    """A lane and the ends of its queue."""

    lane: LaneRow
    last: LastTurn | None = None
    head: NextTurn | None = None
    oldest: OldestTurn | None = None
    """The turn that may have to make room."""
    version: int | None = None
    """The version of the lane's entry, if it has one."""

    def has_current_entry(self, known: SessionEntry | None) -> bool:
        """Return whether the lane's entry has not changed since *known* was read."""
        return known is not None and known.version == self.version

    @property
    def last_turn(self) -> LastWaitingTurn | None:
        """Return the turn that would begin last; None if it was cut off: it is tried again unchanged."""
        if self.last is None:
            return None
        alone = self.lane.waiting == 1 and not self.lane.running
        tries = self.lane.attempts if alone else self.last.tries
        return None if tries else self.last.turn

    @property
    def last_id(self) -> int | None:
        """Return the id of the message that leads the last turn."""
        return None if self.last is None else self.last.item_id

    def next_ready_at(self, ready_at: int, into: int | None) -> int:
        """Return when the next turn may begin, with a message that is ready then or joins the turn *into*."""
        return ready_at if self.head is None or self.head.seq == into else self.head.ready_at


class ArrivalRows(NamedTuple):
    """The rows that a message meets."""

    known: Duplicate | None
    """The place of the same event, if it came before."""
    entry: SessionEntry | None
    """The lane's entry; None if there is none."""
    erasures: bool
    """True if any person was erased since the message was sent."""
    queue: LaneQueue


def look_up_arrival(message: InboundMessage, request: SessionRequest) -> Transaction[ArrivalRows]:
    """Read all rows that a message may meet; no other transaction decides on the lane until the commit."""
    key, known = request.key, request.known
    erased: tuple[Statement, ...] = ()
    if message.sent_at is not None:
        erased = (Statement("any_tombstone_since", (to_micros(message.sent_at),)),)
    looks = (
        Statement("known_event", (message.idempotency_key,), lock=lane_lock(key)),
        _lane_and_queue_query(key),
        *((Statement("entry_by_key", (key,)),) if known is None else ()),
    )
    answers = yield together(*looks, *erased)
    events, found, *others = answers
    if (duplicate := duplicate_from_rows(events)) is not None:
        return ArrivalRows(duplicate, None, erasures=False, queue=LaneQueue(LaneRow(session_key=key)))
    queue = yield from _queue_from_rows(key, found)
    if known is None:
        entries, *_ = others
        entry = decode(entries[0]) if entries else None
    elif queue.has_current_entry(known):
        entry = known
    else:  # it was touched since, as by a message that came just before
        entry = yield from load(key)
    return ArrivalRows(None, entry, erasures=any(answers[len(looks) :]), queue=queue)


def look_up_queue(session_key: str) -> Transaction[LaneQueue]:
    """Read an unknown lane and its queue; no other transaction decides on the lane until the commit."""
    found = yield _lane_and_queue_query(session_key)._replace(lock=lane_lock(session_key))
    return (yield from _queue_from_rows(session_key, found))


def reload_head(queue: LaneQueue) -> Transaction[LaneQueue]:
    """Read the next turn again, after one was taken out."""
    return queue._replace(head=(yield from next_turn(queue.lane.session_key)))


def load_oldest_turn(queue: LaneQueue) -> Transaction[LaneQueue]:
    """Read the turn that would have to make room for another one."""
    rows = yield Statement("oldest_waiting", (queue.lane.session_key,))
    return queue._replace(oldest=OldestTurn(*rows[0]) if rows else None)


def _lane_and_queue_query(session_key: str) -> Statement:
    return Statement("lane_and_queue", (session_key, session_key, session_key))


def _queue_from_rows(session_key: str, rows: Rows) -> Transaction[LaneQueue]:
    if not rows:
        return LaneQueue((yield from lane_from_columns(session_key, None)))
    found = LaneAndQueueRow._make(rows[0])
    lane = yield from lane_from_columns(session_key, found.lane)
    return LaneQueue(lane, found.last, found.head, version=found.entry_version)
