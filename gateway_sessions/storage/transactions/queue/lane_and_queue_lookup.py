"""One lookup of all rows that a new message meets: a duplicate, the lane's session, and its queue."""

from __future__ import annotations

from typing import Final, NamedTuple

from gateway_sessions.core.instants import from_micros, to_micros
from gateway_sessions.core.queue.busy_modes import LastWaitingTurn
from gateway_sessions.core.queue.inbound import InboundMessage
from gateway_sessions.core.queue.items import ItemKind
from gateway_sessions.core.queue.receipts import Duplicate
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.ports import Row, Rows, Statement, Transaction, together
from gateway_sessions.storage.tables.entries import decode, load
from gateway_sessions.storage.tables.inbox import NextTurn, next_turn
from gateway_sessions.storage.tables.lanes import COLUMNS, LaneRow, lane_in
from gateway_sessions.storage.tables.locks import of_lane
from gateway_sessions.storage.transactions.sessions.find_or_create import SessionRequest

_ITEM_ID: Final = -1
_TRIES: Final = -2
"""The places of these columns in the part of `lane_and_queue` about the last turn."""


class Oldest(NamedTuple):
    """The turn that has waited longest and was not asked for explicitly: its place and id."""

    seq: int
    item_id: int


class Queue(NamedTuple):
    """A lane and the ends of its queue."""

    lane: LaneRow
    last: Row | None = None
    head: NextTurn | None = None
    oldest: Oldest | None = None
    """The turn that may have to make room."""
    version: int | None = None
    """The version of the lane's entry, if it has one."""

    def shows(self, known: SessionEntry | None) -> bool:
        """Return whether the lane's entry has not changed since *known* was read."""
        return known is not None and known.version == self.version

    @property
    def last_turn(self) -> LastWaitingTurn | None:
        """Return the turn that would begin last; None if it was cut off: it is tried again unchanged."""
        if self.last is None:
            return None
        alone = self.lane.waiting == 1 and not self.lane.running
        tries = self.lane.attempts if alone else self.last[_TRIES]
        return None if tries else _waiting(self.last)

    @property
    def last_id(self) -> int | None:
        """Return the id of the message that leads the last turn."""
        return None if self.last is None else int(self.last[_ITEM_ID])

    def ready_with(self, ready_at: int, into: int | None) -> int:
        """Return when the next turn may begin, with a message that is ready then or joins the turn *into*."""
        return ready_at if self.head is None or self.head.seq == into else self.head.ready_at


class Sight(NamedTuple):
    """The rows that a message meets."""

    known: Duplicate | None
    """The place of the same event, if it came before."""
    entry: SessionEntry | None
    """The lane's entry; None if there is none."""
    erasures: bool
    """True if any person was erased since the message was sent."""
    queue: Queue


def look_around(message: InboundMessage, request: SessionRequest) -> Transaction[Sight]:
    """Read all rows that a message may meet; no other transaction decides on the lane until the commit."""
    key, known = request.key, request.known
    erased: tuple[Statement, ...] = ()
    if message.sent_at is not None:
        erased = (Statement("any_tombstone_since", (to_micros(message.sent_at),)),)
    looks = (
        Statement("known_event", (message.idempotency_key,), lock=of_lane(key)),
        _look(key),
        *((Statement("entry_by_key", (key,)),) if known is None else ()),
    )
    answers = yield together(*looks, *erased)
    events, found, *others = answers
    if events:
        duplicate = Duplicate(seq=events[0][1], session_key=events[0][0])
        return Sight(duplicate, None, erasures=False, queue=Queue(LaneRow(session_key=key)))
    queue = yield from _queue(key, found)
    if known is None:
        entry = decode(others[0][0]) if others[0] else None
    elif queue.shows(known):
        entry = known
    else:  # it was touched since, as by a message that came just before
        entry = yield from load(key)
    return Sight(None, entry, erasures=any(answers[len(looks) :]), queue=queue)


def look_at_queue(session_key: str) -> Transaction[Queue]:
    """Read an unknown lane and its queue; no other transaction decides on the lane until the commit."""
    found = yield _look(session_key)._replace(lock=of_lane(session_key))
    return (yield from _queue(session_key, found))


def look_at_head(queue: Queue) -> Transaction[Queue]:
    """Read the next turn again, after one was taken out."""
    return queue._replace(head=(yield from next_turn(queue.lane.session_key)))


def look_at_oldest(queue: Queue) -> Transaction[Queue]:
    """Read the turn that would have to make room for another one."""
    rows = yield Statement("oldest_waiting", (queue.lane.session_key,))
    return queue._replace(oldest=Oldest(*rows[0]) if rows else None)


def _look(session_key: str) -> Statement:
    return Statement("lane_and_queue", (session_key, session_key, session_key))


def _queue(session_key: str, rows: Rows) -> Transaction[Queue]:
    lane = yield from lane_in(session_key, rows)
    if not rows:
        return Queue(lane)
    version, *row = rows[0][COLUMNS:]
    head, last = row[: len(NextTurn._fields)], row[len(NextTurn._fields) :]
    return Queue(
        lane,
        last if last[_ITEM_ID] is not None else None,
        NextTurn(*head) if head[0] is not None else None,
        version=version,
    )


def _waiting(row: Row) -> LastWaitingTurn:
    seq, sender, solo, media, kind, messages, characters, first_at, last_at, *_ = row
    return LastWaitingTurn(
        seq=seq,
        sender=sender,
        solo=bool(solo) or kind != ItemKind.MESSAGE,
        has_media=bool(media),
        has_text=characters > 0,
        messages=messages,
        characters=characters,
        first_at=from_micros(first_at),
        last_at=from_micros(last_at),
    )
