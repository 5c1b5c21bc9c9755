"""What a message finds where it arrives, in one look: is it known, the lane's session, and its queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from gateway_sessions.core.busy import Waiting
from gateway_sessions.core.inbound import InboundMessage
from gateway_sessions.core.instants import from_micros, to_micros
from gateway_sessions.core.queue import ItemKind
from gateway_sessions.core.receipts import Duplicate
from gateway_sessions.core.session import SessionEntry
from gateway_sessions.ports import Row, Rows, Statement, Verb, together
from gateway_sessions.storage.verbs.access import Request
from gateway_sessions.storage.verbs.entries import decode, load
from gateway_sessions.storage.verbs.lane_rows import LaneRow, lane_in
from gateway_sessions.storage.verbs.locks import of_lane

_ITEM_ID: Final = -1
_TRIES: Final = -2
_SEQ, _READY_AT = 0, 1


class Oldest(NamedTuple):
    """What leads the turn that has waited longest and was not asked for explicitly: its place and its id."""

    seq: int
    item_id: int


class Queue(NamedTuple):
    """A lane and the ends of its queue."""

    lane: LaneRow
    last: Row | None
    head: Row | None
    """The turn that begins next."""
    oldest: Oldest | None = None
    """The turn that may have to make room."""

    @property
    def last_turn(self) -> Waiting | None:
        """The turn that would begin last, unless it was cut off: that one is taken up as it was."""
        if self.last is None:
            return None
        alone = self.lane.waiting == 1 and not self.lane.running
        tries = self.lane.attempts if alone else self.last[_TRIES]
        return None if tries else _waiting(self.last)

    @property
    def last_id(self) -> int | None:
        """The message that leads it."""
        return None if self.last is None else int(self.last[_ITEM_ID])

    def ready_with(self, ready_at: int, into: int | None) -> int:
        """When the next turn may begin, if a message is put behind all others, or becomes part of that turn.

        It may begin then itself, at that time, or the turn of which it is part.
        """
        if self.head is None or self.head[_SEQ] == into:
            return ready_at
        return int(self.head[_READY_AT])


class Sight(NamedTuple):
    """All that a message finds."""

    known: Duplicate | None
    """What became of it, if it came before."""
    entry: SessionEntry | None
    """The lane's entry; None if there is none."""
    erasures: bool
    """Whether anybody at all was erased since it was sent."""
    queue: Queue


def look_around(message: InboundMessage, request: Request) -> Verb[Sight]:
    """Look at everything that a message may meet; nobody else decides on the lane meanwhile."""
    key, known = request.key, request.known
    erased: tuple[Statement, ...] = ()
    if message.sent_at is not None:
        erased = (Statement("any_tombstone_since", (to_micros(message.sent_at),)),)
    events, entries, lane, last, head, *erasures = yield together(
        Statement("known_event", (message.idempotency_key,), lock=of_lane(key)),
        Statement("entry_by_key", (key,)) if known is None else Statement("entry_version", (known.entry_id,)),
        *_looks(key),
        *erased,
    )
    if events:
        duplicate = Duplicate(seq=events[0][1], session_key=events[0][0])
        return Sight(duplicate, None, erasures=False, queue=Queue(LaneRow(session_key=key), None, None))
    queue = yield from _queue(key, (lane, last, head))
    entry = _current(entries, known)
    if entry is None and known is not None:  # it was touched since, as by a message that came just before
        entry = yield from load(key)
    return Sight(None, entry, erasures=any(erasures), queue=queue)


def look_at_queue(session_key: str) -> Verb[Queue]:
    """Look at a lane of which nothing is known; nobody else decides on it meanwhile."""
    first, *others = _looks(session_key)
    answers = yield together(first._replace(lock=of_lane(session_key)), *others)
    return (yield from _queue(session_key, answers))


def look_at_head(queue: Queue) -> Verb[Queue]:
    """Look again which turn begins next, after one was taken out."""
    head = yield Statement("next_waiting", (queue.lane.session_key,))
    return queue._replace(head=head[0] if head else None)


def look_at_oldest(queue: Queue) -> Verb[Queue]:
    """Look which turn would have to make room for another one."""
    rows = yield Statement("oldest_waiting", (queue.lane.session_key,))
    return queue._replace(oldest=Oldest(*rows[0]) if rows else None)


def _looks(session_key: str) -> tuple[Statement, ...]:
    return (
        Statement("lane_row", (session_key,)),
        Statement("last_waiting", (session_key,)),
        Statement("next_waiting", (session_key,)),
    )


def _queue(session_key: str, answers: Sequence[Rows]) -> Verb[Queue]:
    lane, last, head = answers
    return Queue(
        (yield from lane_in(session_key, lane)), last[0] if last else None, head[0] if head else None
    )


def _current(rows: Rows, known: SessionEntry | None) -> SessionEntry | None:
    if not rows:
        return None
    if known is None:
        return decode(rows[0])
    return known if rows[0][0] == known.version else None


def _waiting(row: Row) -> Waiting:
    seq, sender, solo, media, kind, messages, characters, first_at, last_at, *_ = row
    return Waiting(
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
