"""Recovery of turns, commands and replies that a process left behind when it ended."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from gateway_sessions.core.delivery.outbound_messages import ReplyTarget
from gateway_sessions.core.instants import from_micros, to_micros
from gateway_sessions.core.notices.notice import Notice, notice_message
from gateway_sessions.core.notices.notice_texts import GIVEN_UP, cut_off_notice, not_carried_out_notice
from gateway_sessions.core.queue.inbound import InboundMessage, MessageKind
from gateway_sessions.core.queue.state_machine import ItemEvent, ReplyEvent
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.sessions.recovery import Recovery, ResumeReason, plan_recovery
from gateway_sessions.core.sessions.state_machine import (
    Event,
    interrupted_since,
    is_allowed,
    resumes_by_itself,
)
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables import meta
from gateway_sessions.storage.tables.change import Change
from gateway_sessions.storage.tables.entries import load_readable
from gateway_sessions.storage.tables.lanes import (
    LaneRow,
    QueuedItem,
    decode_message_or_none,
    items_of_waiting_turn,
    load_lane,
    next_turn,
    put_lane,
    recount_waiting_turns,
    require_held_lane,
    schedule_and_store,
)
from gateway_sessions.storage.tables.nodes import LivingQuery
from gateway_sessions.storage.tables.sql_files import row_of
from gateway_sessions.storage.tables.statements import move_items, move_statement
from gateway_sessions.storage.transactions.queue import turn_transcript
from gateway_sessions.storage.transactions.queue.admit import settle_noted_statement
from gateway_sessions.storage.transactions.queue.edits import reapply_edit
from gateway_sessions.storage.transactions.queue.outbox import (
    Owed,
    forget_growing,
    owe_replies,
    unfinished_notices,
)
from gateway_sessions.storage.transactions.queue.running_turn import clear_entry_interruption
from gateway_sessions.storage.transactions.queue.turn_transcript import (
    TurnLease,
    bury_turn,
    requeue_turn,
    turn_items,
)
from gateway_sessions.storage.transactions.sessions.lane_changes import mark_cut_off

TOO_OLD: Final = "its turn was cut off too long ago to begin again by itself"
TRIED: Final = "its turn was cut off {attempts} times"
PAGE = 25
"""The number of lanes taken over in one commit: few, because the transaction runs alone."""


@row_of("open_commands")
class OpenCommand(NamedTuple):
    """A command or a change that was noted and not settled."""

    item_id: int
    session_key: str
    seq: int
    owner: str
    payload: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CutOffTurn:
    """A lane whose turn a process began and did not end."""

    session_key: str
    entry: SessionEntry | None
    attempts: int
    given_up: bool
    """True if the turn is not tried again."""
    interrupted: bool
    """True if its session was marked: to go on, or after too many tries not to."""
    buried: tuple[InboundMessage, ...] = ()
    """The messages of a turn that is not tried again, as far as they can be decoded."""
    owner: str = ""
    lane: LaneRow
    """The lane as it is now."""
    notice_ids: tuple[int, ...] = ()
    """The ids of the notices that tell people that the turn was given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AbandonedCommand:
    """A command of a process that is gone; it may or may not have been carried out."""

    session_key: str
    seq: int
    owner: str
    message: InboundMessage


def take_over_lanes(
    change: Change, census: LivingQuery, limit: int, hold_until: datetime | None = None
) -> Transaction[list[CutOffTurn]]:
    """Take some lanes from openings that are gone: their turns were cut off.

    The turns wait again in their old places, not to begin before *hold_until*. Turns that were tried *limit*
    times become dead letters, and their sessions are suspended. An empty list: no such lane is left.
    """
    living = yield from census()
    rows = yield Statement("lanes_left_behind", (living.epochs_as_json, PAGE))
    if not rows:
        return []
    ((last_write,),) = yield Statement("last_heard_of")
    heard = max(last_write or 0, (yield from meta.get_number(meta.LIVED_AT)))
    found: list[CutOffTurn] = []
    for (session_key,) in rows:
        lane = yield from load_lane(session_key)
        end = CutOffRules(limit=limit, ready_at=hold_until, heard=heard)
        found.append((yield from _cut_off_turn(change, lane, end)))
    return found


def cut_off_turn_at_drain_end(held: TurnLease, end: CutOffRules, change: Change) -> Transaction[CutOffTurn]:
    """Give back a turn that has not ended within the time of a drain; the try counts, as after a crash.

    If it did not count, a turn that never ends would be tried for ever by processes that always end in order.
    """
    lane = yield from require_held_lane(held.session_key, held.epoch, held.token)
    return (yield from _cut_off_turn(change, lane, end))


def mark_replies_unclear(census: LivingQuery) -> Transaction[int]:
    """Note that replies which processes that are gone were sending may have been sent; return how many."""
    living = yield from census()
    ((doubted,),) = yield move_statement("doubt_replies", ReplyEvent.DOUBTED, params=(living.epochs_as_json,))
    return int(doubted)


def abandon_commands(change: Change, census: LivingQuery) -> Transaction[list[AbandonedCommand]]:
    """Settle the commands of openings that are gone, unless a row says that they were carried out.

    Their authors are owed a notice. A command is not carried out again, because no row tells how far it came.
    """
    living = yield from census()
    rows = yield Statement("open_commands")
    found: list[AbandonedCommand] = []
    for one in map(OpenCommand._make, rows):
        if living.has_made(one.item_id):
            continue
        message = decode_message_or_none(one.session_key, one.payload)
        if message is not None and message.kind is not MessageKind.NEW:
            yield from _carry_out_noted_edit(one.item_id, one.session_key, message, change)
            continue
        problem = "the process ended while it was carried out"
        yield settle_noted_statement(one.item_id, ItemEvent.ABANDONED, "recovery", change.now, problem)
        if message is None:
            continue
        found.append(
            AbandonedCommand(session_key=one.session_key, seq=one.seq, owner=one.owner, message=message)
        )
        if not message.internal:
            text = not_carried_out_notice(message.command)
            yield from owe_replies(
                [_notice_reply(message, text, one.owner, one.seq)], None, one.session_key, change
            )
    return found


def _carry_out_noted_edit(
    item_id: int, session_key: str, message: InboundMessage, change: Change
) -> Transaction[None]:
    """Carry out an edit or a deletion that an earlier version wrote down, perhaps without carrying it out.

    A second time does no harm. The key of a change whose message is unknown is forgotten, so that a later
    delivery of it is no duplicate.
    """
    reworded = yield from reapply_edit(message, session_key, "recovery", change)
    event = ItemEvent.ABANDONED if reworded is None else ItemEvent.APPLIED
    yield settle_noted_statement(item_id, event, "recovery", change.now)
    if reworded is None:
        yield Statement("forget_event", (item_id,))


@dataclass(frozen=True, slots=True, kw_only=True)
class CutOffRules:
    """The way in which a turn was cut off, and the rules for what follows."""

    limit: int
    """The number of times that a turn is tried."""
    reason: ResumeReason = ResumeReason.RESTART_INTERRUPTED
    by: str = "recovery"
    ready_at: datetime | None = None
    """The time at which the turn may begin again; None: at once."""
    heard: int | None = None
    """The last time at which any row was written by the turn's process; None: the process lives now."""
    notices: Sequence[Owed] | None = None
    """The notices that are owed if the turn is given up; None: one to the last message's author."""

    def last_alive(self, change: Change, lane: LaneRow, entry: SessionEntry) -> datetime:
        """Return the time at which a lane's turn was last known to live.

        The process lived at least until its last write. The time is never later than now, even if a clock was
        ahead.
        """
        if lane.leased_at is None or self.heard is None:
            return change.now
        written = max(lane.leased_at, to_micros(entry.updated_at), self.heard)
        return from_micros(min(written, to_micros(change.now)))


def _cut_off_turn(change: Change, lane: LaneRow, end: CutOffRules) -> Transaction[CutOffTurn]:
    """Take the lane from a turn that has not ended, and decide whether the turn is tried again."""
    key, attempts = lane.session_key, lane.attempts + 1
    held = TurnLease(session_key=key, epoch=lane.lease_epoch or 0, token=lane.lease_token)
    items = yield from turn_items(held)
    begun_with = [one for one in items if not one.steered]
    entry = yield from load_readable(key)  # a damaged entry must not keep the store from opening
    buried, notices = tuple[InboundMessage, ...](), tuple[int, ...]()
    given_up = bool(begun_with) and plan_recovery(attempts, end.limit) is Recovery.SUSPEND
    if given_up:
        buried = _decode_readable(key, begun_with)
        yield from bury_turn(held, end.by, TRIED.format(attempts=attempts), change)
        words = [*unfinished_notices(key, begun_with[:1]), *_give_up_notices(buried, begun_with[0])]
        told = words if end.notices is None else end.notices
        notices = yield from owe_replies(told, entry, key, change)
    elif items:
        yield from requeue_turn(held, to_micros(end.ready_at or change.now))
    taken_back = not begun_with and (bool(items) or (yield from _has_deleted_messages(held)))
    marked = None if taken_back else (yield from _mark_interrupted(change, lane, entry, end))
    lane.revoke_lease()
    if items or marked is not None:
        lane.attempts = attempts
    # The process that counted is gone; a wrong number would make the lane refuse every message.
    yield from recount_waiting_turns(lane, another=taken_back)
    if given_up:
        yield from schedule_and_store(lane, change.now)
    yield from put_lane(lane)
    return CutOffTurn(
        session_key=key,
        entry=marked or entry,
        attempts=attempts,
        given_up=given_up,
        interrupted=marked is not None,
        buried=buried,
        owner=items[0].owner if items else "",
        lane=lane,
        notice_ids=notices,
    )


def _has_deleted_messages(held: TurnLease) -> Transaction[bool]:
    """Return whether people deleted all messages of a turn, so that it has none left."""
    return bool((yield Statement("turn_was_taken_back", (held.session_key, held.token))))


def _mark_interrupted(
    change: Change, lane: LaneRow, entry: SessionEntry | None, end: CutOffRules
) -> Transaction[SessionEntry | None]:
    """Return the entry, marked as interrupted, or suspended after too many tries; None if it may not be."""
    if entry is None or not is_allowed(entry.state, Event.INTERRUPTED):
        return None
    since = end.last_alive(change, lane, entry)
    return (yield from mark_cut_off(change, entry, lane.attempts + 1, end.limit, end.reason, since=since))


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleTurn:
    """A turn that was cut off too long ago to begin again by itself."""

    entry: SessionEntry
    lane: LaneRow


def bury_stale_turns(
    change: Change, only: Collection[str] | None, after: str
) -> Transaction[tuple[list[StaleTurn], str | None]]:
    """Make dead letters of turns that were cut off too long ago; people have to ask for them again.

    Their sessions go on, with the messages of such a turn in the transcript, and people get a notice. Look at
    a page of lanes, at *only* those if given; return the key to go on behind, or None at the end.
    """
    tried = [key for key, _ in (yield Statement("tried_lanes")) if key > after]
    page = tried[:PAGE]
    found: list[StaleTurn] = []
    for session_key in page:
        if only is None or session_key in only:
            found += yield from _bury_if_stale(change, session_key)
    return found, page[-1] if len(tried) > PAGE else None


def _bury_if_stale(change: Change, session_key: str) -> Transaction[list[StaleTurn]]:
    lane = yield from load_lane(session_key, locked=True)
    entry = yield from load_readable(session_key)
    if entry is None or lane.running or not lane.attempts:
        return []
    if resumes_by_itself(entry, change.now, change.freshness):
        return []
    head = yield from next_turn(session_key)
    items = (
        (yield from items_of_waiting_turn(session_key, head.item_id, head.seq)) if head is not None else []
    )
    said = _decode_readable(session_key, items)
    if not said or len(said) < len(items):
        return []
    yield from turn_transcript.append_waiting_rows(session_key, items, entry.session_id, change)
    because = (to_micros(change.now), "recovery", TOO_OLD)
    given_up = [(*because, one.item_id) for one in items]
    yield from move_items("bury_item", ItemEvent.GIVEN_UP, given_up)
    told = _notice_reply(
        said[-1], cut_off_notice(interrupted_since(entry), change.now), items[0].owner, items[0].seq
    )
    yield from owe_replies([*unfinished_notices(session_key, items[:1]), told], entry, session_key, change)
    yield from forget_growing(items)
    yield from recount_waiting_turns(lane, another=True)
    yield from schedule_and_store(lane, change.now)
    yield from put_lane(lane)
    return [StaleTurn(entry=(yield from clear_entry_interruption(change, entry)), lane=lane)]


def _decode_readable(session_key: str, items: Sequence[QueuedItem]) -> tuple[InboundMessage, ...]:
    found = (decode_message_or_none(session_key, one.payload) for one in items)
    return tuple(one for one in found if one is not None)


def _give_up_notices(buried: Sequence[InboundMessage], head: QueuedItem) -> list[Owed]:
    return [_notice_reply(one, GIVEN_UP, head.owner, head.seq) for one in buried[-1:]]


def _notice_reply(message: InboundMessage, notice: Notice, owner: str, seq: int) -> Owed:
    said = notice_message(notice)
    return Owed(target=ReplyTarget.answering(message), message=said, owner=owner, seq=seq)
