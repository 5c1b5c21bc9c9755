"""The rows of queued messages: their order on a lane, which turn is next, and when it may begin."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

import msgspec

from gateway_sessions.core.identity.keys import author_on
from gateway_sessions.core.instants import to_micros
from gateway_sessions.core.queue.inbound import InboundMessage
from gateway_sessions.core.queue.state_machine import ItemEvent, ItemState
from gateway_sessions.errors import StorageCorruptError
from gateway_sessions.ports import Row, Statement, Transaction
from gateway_sessions.storage.tables.columns import DAMAGE, tell_damage
from gateway_sessions.storage.tables.lanes import LaneRow, count_waiting
from gateway_sessions.storage.tables.moves import move_items

PLACES: Final = 1 << 20
"""Room behind each message for those that come to wait behind it later: dead letters that are tried again."""
TRIED_AGAIN_APART: Final = 1 << 8
"""Room behind each of these, for the rest of its turn when others lead that, one after another."""

_READ: Final = msgspec.json.Decoder(InboundMessage)


class InboxItem(NamedTuple):
    """A message as it is kept."""

    item_id: int
    seq: int
    owner: str
    merged_into: int | None
    admitted_at: int
    transcript_id: int | None
    """Its row in the transcript, if it has one."""
    payload: str | None
    place: int
    sender: str = ""
    growing: str | None = None
    """Which message of the platform its answer grows in, as it is stored."""
    steered: bool | int = False
    """Whether it was said into the turn that it is part of, while that ran."""

    @property
    def state_in_turn(self) -> ItemState:
        """Its state as one of the messages that a running turn is about."""
        if self.steered:
            return ItemState.STEERED
        return ItemState.RUNNING if self.merged_into is None else ItemState.RUNNING_MERGED

    @property
    def author(self) -> str | None:
        """The person who said it, by their owner name; None if a room does not tell."""
        return author_on(self.owner, self.sender)


class NextTurn(NamedTuple):
    """The turn that begins next on a lane, by the message that leads it."""

    seq: int
    ready_at: int
    last_at: int
    """When the latest of its messages came."""
    item_id: int
    tries: int
    """How often it was cut off before another one was next."""


def next_turn(session_key: str) -> Transaction[NextTurn | None]:
    """Look which turn begins next on a lane."""
    rows = yield Statement("next_waiting", (session_key,))
    return NextTurn(*rows[0]) if rows else None


def inbox_item(row: Row) -> InboxItem:
    """The message that a row holds."""
    return InboxItem(*row)


def items_of_next(session_key: str, head_id: int, seq: int) -> Transaction[list[InboxItem]]:
    """What a waiting turn is about, the message that leads it first: that one has this id and this place."""
    items = map(inbox_item, (yield Statement("items_of_next", (head_id, session_key, seq))))
    return sorted(items, key=lambda one: (one.merged_into is not None, one.seq))


def decode_message(session_key: str, payload: str | None) -> InboundMessage:
    """The message again; `StorageCorruptError` if it is none."""
    try:
        return _READ.decode(payload or "")
    except DAMAGE as error:
        tell_damage(f"lane {session_key!r}", error, "a waiting message")


def readable(session_key: str, payload: str | None) -> InboundMessage | None:
    """The message again; None if it is damaged."""
    try:
        return decode_message(session_key, payload)
    except StorageCorruptError:
        return None


def place_of(seq: int) -> int:
    """Where a message waits that was accepted as the *seq*-th."""
    return seq * PLACES


def last_place(lane: LaneRow) -> Transaction[int]:
    """A place behind all that waits or runs, and before all that will ever come."""
    rows = yield Statement("last_open_place", (lane.session_key,))
    return max(int(rows[0][0]), place_of(lane.next_seq - 1)) + TRIED_AGAIN_APART


def waiting_turn(session_key: str, seq: int) -> Transaction[int | None]:
    """The id of the message that leads a turn, if that waits; hardly any was put elsewhere than it came."""
    rows = yield Statement("turn_in_place", (session_key, place_of(seq), seq))
    rows = rows or (yield Statement("turn_anywhere", (session_key, seq)))
    return rows[0][0] if rows else None


def is_ready(lane: LaneRow, now: datetime) -> bool:
    """Whether the lane's next turn may begin."""
    return lane.ready_at is not None and lane.ready_at <= to_micros(now)


def reckon_ready(lane: LaneRow, *, another: bool = False) -> Transaction[None]:
    """Find out when the next turn may begin, and how often it was cut off if *another* one is next now."""
    lane.ready_at = None
    if lane.running:
        return
    following = (yield from next_turn(lane.session_key)) if lane.waiting else None
    if following is not None:
        lane.ready_at = following.ready_at
    if another:
        lane.attempts = following.tries if following is not None else 0


def line_up(lane: LaneRow, now: datetime) -> Transaction[NextTurn | None]:
    """Find out when the lane's next turn may begin, and which one that is, now that one has ended.

    It stands in line from now on, behind those that others have waited for; or it begins later, as more may
    come that belongs to it. What came later than now, on a clock that was set back since, waits no longer.
    """
    lane.ready_at = None
    following = (yield from next_turn(lane.session_key)) if lane.waiting else None
    if following is None:
        return None
    moment = to_micros(now)
    lane.ready_at = following.ready_at if following.last_at <= moment < following.ready_at else moment
    return following


def stand_in_line(lane: LaneRow, now: datetime) -> Transaction[None]:
    """Do so, and let the next turn know since when it stands there."""
    following = yield from line_up(lane, now)
    if following is not None:
        yield Statement("set_ready_at", (lane.ready_at, following.item_id))


def recount(lane: LaneRow, *, another: bool = False) -> Transaction[None]:
    """Find out anew how many turns wait on the lane, and what there is to know of the next one."""
    lane.waiting = yield from count_waiting(lane.session_key)
    yield from reckon_ready(lane, another=another)


def let_others_lead(item_id: int, others: Sequence[InboxItem]) -> Transaction[int | None]:
    """What became part of a message's turn goes on without it; the id of what leads that turn then."""
    if not others:
        return None
    first, *rest = others
    yield from move_items("lead_item", ItemEvent.PROMOTED, [(item_id, first.item_id)])
    yield Statement("follow_item", many=[(first.seq, one.item_id) for one in rest])
    return first.item_id


def is_next(lane: LaneRow, seq: int) -> Transaction[bool]:
    """Whether a turn that waits is the next one, whose tries its lane counts."""
    if lane.running:
        return False
    following = yield from next_turn(lane.session_key)
    return following is not None and following.seq == seq
