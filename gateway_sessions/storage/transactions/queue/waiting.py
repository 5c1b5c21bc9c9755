"""List, cancel, move and clear waiting turns, requeue dead letters, and stop all work on a lane.

A command that a person means to take effect at once, whatever runs or waits on the lane, overtakes all turns
of the lane in one transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Generic, NamedTuple, TypeVar

import msgspec

from gateway_sessions.core.instants import clamp_to_calendar, first_change_id, from_micros, to_micros
from gateway_sessions.core.queue.items import DeadLetter, Outcome, QueuedMessage
from gateway_sessions.core.queue.state_machine import ItemEvent, ItemState, ReplyEvent, outcome_after
from gateway_sessions.errors import InvalidInputError, NotGivenUpError
from gateway_sessions.ports import Rows, Statement, Transaction
from gateway_sessions.storage.tables.change import Change
from gateway_sessions.storage.tables.lanes import (
    LaneRow,
    QueuedItem,
    checked_waiting_count,
    decode_message,
    decode_message_or_none,
    find_waiting_turn,
    is_next_turn,
    item_from_row,
    items_of_waiting_turn,
    load_lane,
    place_behind_all,
    promote_next_message,
    put_lane,
    recount_waiting_turns,
    update_ready_at,
)
from gateway_sessions.storage.tables.sql_files import row_of
from gateway_sessions.storage.tables.statements import move_items, move_statement
from gateway_sessions.storage.transactions.queue import running_turn, turn_transcript
from gateway_sessions.storage.transactions.queue.admit import remove_waiting_turn
from gateway_sessions.storage.transactions.queue.outbox import owe_notices_of_waiting, owe_unfinished_notices

FIRST: Final = 1 << 62
"""An id above that of every message: the newest page begins below it."""
FORGET_AT_ONCE: Final = 500
"""The number of settled rows of each kind that one commit forgets."""


@row_of("open_items")
class OpenItem(NamedTuple):
    """A message that waits or runs on a lane."""

    item_id: int
    seq: int
    solo: int
    merged_into: int | None
    token: int | None
    admitted_at: int
    payload: str | None
    place: int
    tries: int


@row_of("waiting_item")
class WaitingItem(NamedTuple):
    """A waiting message, by its seq."""

    item_id: int
    merged_into: int | None
    payload: str | None


@row_of("dead_items")
class DeadItem(NamedTuple):
    """A message whose turn failed for good."""

    item_id: int
    seq: int
    session_key: str
    owner: str
    payload: str | None
    admitted_at: int
    settled_at: int
    problem: str | None


@row_of("dead_item")
class DeadItemPlace(NamedTuple):
    """The lane of a dead letter, and the turn that it was part of."""

    session_key: str
    seq: int
    merged_into: int | None


@row_of("waiting_lanes")
class WaitingLane(NamedTuple):
    """A lane with waiting turns."""

    session_key: str
    waiting: int
    next_seq: int
    owner: str | None


@row_of("ready_lanes", "waiting_among")
class ReadyLaneRow(NamedTuple):
    """A lane with the time at which its next turn may begin."""

    session_key: str
    owner: str | None
    ready_at: int


@dataclass(frozen=True, slots=True)
class Overtaken:
    """The turns of a lane that a command overtook."""

    token: int | None
    """The token of the turn that ran, whose writes are refused from now on; None if no turn ran."""
    stopped: int = 0
    """The number of messages of the turn that ran."""
    cancelled: int = 0
    """The number of messages that waited."""

    @property
    def anything(self) -> bool:
        """Return whether any turn ran or waited."""
        return self.token is not None or bool(self.cancelled)


def stop_all_work(change: Change, session_key: str, by: str) -> Transaction[Overtaken]:
    """End the lane's turn and empty its queue; later writes of the turn are refused."""
    lane = yield from load_lane(session_key)
    if not lane.running and not lane.waiting:
        return Overtaken(None)
    moment, token, ended = to_micros(change.now), lane.lease_token, 0
    if lane.running:
        yield from running_turn.record_stopped_turn(lane, change)
        stopped = (str(Outcome.INTERRUPTED), moment, by, None, session_key, token)
        ((ended,),) = yield move_statement("settle_turn", ItemEvent.STOPPED, params=stopped)
    was_running = lane.running
    lane.revoke_lease()
    lane.attempts = 0
    if lane.waiting:
        yield from owe_notices_of_waiting(session_key, change)
    settled = (str(Outcome.CANCELLED), moment, by, session_key)
    ((cancelled,),) = yield move_statement("settle_waiting", ItemEvent.CANCELLED, params=settled)
    lane.waiting, lane.ready_at = 0, None
    yield from put_lane(lane)
    return Overtaken(token if was_running else None, ended, cancelled)


def list_queue(session_key: str) -> Transaction[list[QueuedMessage]]:
    """Return all messages that wait or run on a lane, in the order of its turns."""
    return [_queued_message(session_key, item) for item in (yield from _open_items(session_key))]


def count_waiting(session_key: str) -> Transaction[int]:
    """Return the number of turns that wait on a lane."""
    return (yield from load_lane(session_key)).waiting


def cancel_message(session_key: str, seq: int, by: str, change: Change) -> Transaction[int]:
    """Cancel a waiting message with those that joined its turn; return how many, 0 if it does not wait."""
    rows = yield Statement("waiting_item", (session_key, seq))
    if not rows:
        return 0
    lane = yield from load_lane(session_key)
    item = WaitingItem._make(rows[0])
    if item.merged_into is not None:
        part = TurnMessage(item.item_id, seq, item.merged_into, item.payload)
        yield from take_from_turn(lane, part, by, change, event=ItemEvent.CANCELLED)
        return 1
    gone = yield from remove_waiting_turn(lane, seq, item.item_id, ItemEvent.CANCELLED, by, change)
    yield from put_lane(lane)
    return len(gone)


def clear_queue(session_key: str, by: str, change: Change) -> Transaction[int]:
    """Cancel all waiting messages; return how many. The running turn goes on."""
    lane = yield from load_lane(session_key)
    if not lane.waiting:
        return 0
    yield from owe_notices_of_waiting(session_key, change)
    settled = (str(Outcome.CANCELLED), to_micros(change.now), by, session_key)
    ((cancelled,),) = yield move_statement("settle_waiting", ItemEvent.CANCELLED, params=settled)
    lane.waiting, lane.ready_at = 0, None
    lane.attempts = lane.attempts if lane.running else 0
    yield from put_lane(lane)
    return int(cancelled)


def move_turn(session_key: str, seq: int, to: int) -> Transaction[list[int]]:
    """Let a waiting turn begin as the *to*-th of them, counted from 1; return the new order."""
    lane = yield from load_lane(session_key)
    items = yield from _open_items(session_key)
    heads = [one for one in items if one.merged_into is None and one.token is None]
    moved = next((one for one in heads if one.seq == seq), None)
    if moved is None:
        problem = f"no message {seq} waits on lane {session_key!r}"
        raise InvalidInputError(problem)
    rest = [one for one in heads if one is not moved]
    at = min(max(to, 1), len(heads)) - 1
    order = [*rest[:at], moved, *rest[at:]]
    if not lane.running and order[0] is not heads[0]:
        yield Statement("set_tries", (lane.attempts, heads[0].item_id))
        lane.attempts = order[0].tries
    places = sorted(one.place for one in heads)
    pairs = zip(places, order, strict=True)
    yield Statement("set_place", many=[(place, one.item_id) for place, one in pairs])
    yield from update_ready_at(lane)
    yield from put_lane(lane)
    return [one.seq for one in order]


def dead_letters(limit: int, before: int = FIRST) -> Transaction[list[DeadLetter]]:
    """Return messages whose turns failed for good, the newest first."""
    rows = yield Statement("dead_items", (before, limit))
    return [
        DeadLetter(
            item_id=one.item_id,
            seq=one.seq,
            session_key=one.session_key,
            owner=one.owner,
            message=decode_message_or_none(one.session_key, one.payload),
            admitted_at=from_micros(one.admitted_at),
            given_up_at=from_micros(one.settled_at),
            problem=one.problem or "",
        )
        for one in map(DeadItem._make, rows)
    ]


def requeue_dead_letter(item_id: int, change: Change) -> Transaction[LaneRow]:
    """Let a dead letter wait again behind all waiting turns; return its lane."""
    rows = yield Statement("dead_item", (item_id,))
    if not rows:
        problem = f"there is no dead letter {item_id}"
        raise NotGivenUpError(problem)
    session_key, seq, merged_into = DeadItemPlace._make(rows[0])
    head = seq if merged_into is None else merged_into
    lane = yield from load_lane(session_key)
    items = yield Statement("dead_turn", (session_key, head, head))
    yield from turn_transcript.withdraw_rows(map(item_from_row, items))
    place = yield from place_behind_all(lane)
    revived = (place, to_micros(change.now), session_key, head, head)
    yield move_statement("revive", ItemEvent.REQUEUED, params=revived)
    yield from recount_waiting_turns(lane)
    yield from put_lane(lane)
    return lane


def forget_settled(before: datetime) -> Transaction[int]:
    """Forget some rows that were settled before that time; return how many, 0 when none is left."""
    until = (first_change_id(before, 0), to_micros(before), FORGET_AT_ONCE)
    ((items,),) = yield move_statement("forget_items", ItemEvent.FORGOTTEN, params=until)
    ((replies,),) = yield move_statement("forget_replies", ReplyEvent.FORGOTTEN, params=until)
    ((schedules,),) = yield Statement("forget_schedules", (to_micros(before),))
    return int(items + replies + schedules)


def first_settled() -> Transaction[datetime | None]:
    """Return when the oldest of what can be forgotten was settled; None if there is no such thing."""
    ((instant,),) = yield Statement("first_settled")
    return None if instant is None else clamp_to_calendar(instant)


def waiting_lanes() -> Transaction[dict[str, tuple[int, str | None]]]:
    """Return the number of waiting turns of each lane and the lane's owner."""
    found: dict[str, tuple[int, str | None]] = {}
    for one in map(WaitingLane._make, (yield Statement("waiting_lanes"))):
        waiting = yield from checked_waiting_count(one.session_key, one.waiting, one.next_seq)
        if waiting:
            found[one.session_key] = (waiting, one.owner)
    return found


@row_of("waiting_events")
class WaitingEvent(NamedTuple):
    """A platform event whose message was admitted and has not had its turn, with its seq and lane."""

    event: str
    seq: int
    session_key: str


def waiting_events(limit: int) -> Transaction[list[WaitingEvent]]:
    """Return the newest platform events whose messages wait or run."""
    return [WaitingEvent(*row) for row in (yield Statement("waiting_events", (limit,)))]


class ReadyLane(NamedTuple):
    """A lane whose next turn may begin."""

    session_key: str
    owner: str | None
    since: datetime


def ready_lanes(now: datetime, limit: int, but_not: Iterable[str] = ()) -> Transaction[list[ReadyLane]]:
    """Return the ready lanes that have waited longest, except those of the owners in *but_not*."""
    owners = msgspec.json.encode(list(but_not)).decode()
    return _ready_lanes((yield Statement("ready_lanes", (to_micros(now), owners, limit))))


def waiting_lanes_among(lanes: Iterable[str]) -> Transaction[list[ReadyLane]]:
    """Return those of some lanes on which turns wait, ready or not; the earliest first."""
    return _ready_lanes((yield Statement("waiting_among", (msgspec.json.encode(list(lanes)).decode(),))))


def _ready_lanes(rows: Rows) -> list[ReadyLane]:
    found = map(ReadyLaneRow._make, rows)
    return [ReadyLane(one.session_key, one.owner, clamp_to_calendar(one.ready_at)) for one in found]


def next_ready_time(now: datetime) -> Transaction[datetime | None]:
    """Return the time at which the next lane becomes ready; None if none will by itself."""
    ((instant,),) = yield Statement("next_ready", (to_micros(now),))
    return None if instant is None else clamp_to_calendar(instant)


def count_outcomes(session_key: str) -> Transaction[dict[str, int]]:
    """Return the number of messages of a lane by outcome, as far as the rows are still there."""
    return {outcome: int(number) for outcome, number in (yield Statement("lane_outcomes", (session_key,)))}


class TurnMessage(NamedTuple):
    """A message of a turn; *head* is the seq of the message that leads the turn."""

    item_id: int
    seq: int
    head: int
    payload: str | None


def take_from_turn(
    lane: LaneRow, part: TurnMessage, by: str, change: Change, *, event: ItemEvent
) -> Transaction[None]:
    """Take one message out of a waiting turn; if it led the turn, the next one leads."""
    items = yield from withdraw_turn_rows(lane.session_key, part)
    was_next = yield from is_next_turn(lane, part.seq)
    left = yield from leave_turn(lane.session_key, part, items)
    if not left:
        yield from owe_unfinished_notices(lane.session_key, items, change)
    lane.waiting -= not left
    settled = (str(outcome_after(ItemState.WAITING, event)), to_micros(change.now), by, part.item_id)
    deleted = event is ItemEvent.DELETED
    yield from move_items("retract_item" if deleted else "cancel_item", event, [settled])
    yield from update_ready_at(lane, another=was_next and not left)
    yield from put_lane(lane)


def leave_turn(session_key: str, part: TurnMessage, items: Sequence[QueuedItem]) -> Transaction[bool]:
    """Let the other messages of a turn go on without one of them; False if there are none."""
    message = decode_message_or_none(session_key, part.payload)
    length = len(message.text) if message is not None else 0
    if part.seq != part.head:
        head_id = next((one.item_id for one in items if one.seq == part.head), 0)
        yield Statement("change_size", (-1, -length, head_id))
        return True
    others = [one for one in items if one.merged_into == part.seq]
    new_head_id = yield from promote_next_message(part.item_id, others)
    if new_head_id is None:
        return False
    yield Statement("change_size", (0, -length, new_head_id))
    return True


def withdraw_turn_rows(session_key: str, part: TurnMessage) -> Transaction[list[QueuedItem]]:
    """Take away the rows that an earlier try has appended: the messages are appended anew, as they are then.

    Return all messages of the turn; on a damaged lane, the one that leads it may be missing.
    """
    head_id = part.item_id
    if part.head != part.seq:
        head_id = (yield from find_waiting_turn(session_key, part.head)) or 0
    items = yield from items_of_waiting_turn(session_key, head_id, part.head)
    yield from turn_transcript.withdraw_rows(items)
    return items


def _open_items(session_key: str) -> Transaction[list[OpenItem]]:
    """Return all messages that wait or run on a lane, in the order of its turns."""
    items = list(map(OpenItem._make, (yield Statement("open_items", (session_key,)))))
    places: dict[int | None, int] = {one.seq: one.place for one in items}
    return sorted(items, key=lambda one: (places.get(one.merged_into, one.place), one.seq))


def _queued_message(session_key: str, item: OpenItem) -> QueuedMessage:
    return QueuedMessage(
        seq=item.seq,
        session_key=session_key,
        message=decode_message(session_key, item.payload),
        admitted_at=from_micros(item.admitted_at),
        solo=bool(item.solo),
        merged_into=item.merged_into,
        running=item.token is not None,
    )


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ResultAndOvertaken(Generic[T]):
    """The result of a change, and the turns that it overtook."""

    outcome: T
    overtaken: Overtaken


def run_after_stopping(
    change: Change, session_key: str, transaction: Callable[[Change], Transaction[T]], by: str
) -> Transaction[ResultAndOvertaken[T]]:
    """Make a change after the lane's turn has lost its right to write and its queue is empty."""
    overtaken = yield from stop_all_work(change, session_key, by)
    return ResultAndOvertaken((yield from transaction(change)), overtaken)
