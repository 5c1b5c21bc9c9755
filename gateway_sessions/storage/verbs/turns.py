"""Turns: a lane is leased to one at a time, and what it writes counts only as long as it has the lane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple, TypeAlias

from gateway_sessions.core.inbound import InboundMessage
from gateway_sessions.core.instants import from_micros, to_micros
from gateway_sessions.core.keys import Isolation
from gateway_sessions.core.lifecycle import Event, allows, is_fresh
from gateway_sessions.core.messages import Message
from gateway_sessions.core.policies import ResetMode
from gateway_sessions.core.queue import Outcome
from gateway_sessions.core.reasons import EndReason
from gateway_sessions.core.replay import Chat
from gateway_sessions.core.session import SessionEntry, SessionState
from gateway_sessions.core.usage import Usage
from gateway_sessions.errors import FencedError, GatewaySessionsError, StorageCorruptError
from gateway_sessions.ports import Statement, Verb
from gateway_sessions.storage.verbs import lineage, replaying, turn_rows
from gateway_sessions.storage.verbs import usage as uses
from gateway_sessions.storage.verbs.access import Granted, IdTaken, Request, begin_anew
from gateway_sessions.storage.verbs.entries import load
from gateway_sessions.storage.verbs.inbox_rows import (
    InboxItem,
    decode_message,
    inbox_item,
    is_ready,
    let_others_lead,
    line_up,
    recount,
)
from gateway_sessions.storage.verbs.lane_rows import LaneRow, held_lane, load_lane, put_lane
from gateway_sessions.storage.verbs.lanes import answered
from gateway_sessions.storage.verbs.outbox import Owed, owe
from gateway_sessions.storage.verbs.succession import Change, move_to
from gateway_sessions.storage.verbs.turn_rows import Held, items_of

STOPPED: Final = Message("assistant", "[This turn was stopped.]", finish_reason="interrupted")
"""What a model is told of a turn that somebody stopped."""

Version: TypeAlias = tuple[int, int, int]
"""Changes whenever anybody writes to a session's transcript."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Starter:
    """Who begins a turn, and what it takes should the lane's session have to be replaced first."""

    epoch: int
    new_session_id: str
    flags: Isolation


class IdTakenError(GatewaySessionsError):
    """The id for a new session exists already: nothing was changed, and another one may be free."""

    def __init__(self, session_key: str, session_id: str) -> None:
        self.session_key = session_key
        self.session_id = session_id
        super().__init__(f"session {session_id} exists already; lane {session_key!r} needs another one")


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One of the messages that a turn is about."""

    seq: int
    message: InboundMessage
    admitted_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """A turn that has begun."""

    held: Held
    entry: SessionEntry
    items: tuple[Item, ...]
    attempt: int
    """1 for the first try; more if earlier ones were cut off."""
    recorded: bool
    """Whether an earlier try has put the message into the transcript."""
    version: Version
    waiting: int
    ended: bool = False
    """Whether a session had to make room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """How a turn ended, and all that it leaves behind."""

    held: Held
    outcome: Outcome
    by: str = "turn"
    messages: Sequence[Message] = ()
    usages: Sequence[Usage] = ()
    replies: Sequence[Owed] = ()
    last_prompt_tokens: int | None = None
    problem: str | None = None
    known: SessionEntry | None = None
    """The entry as whoever had the turn knows it; only the database says whether it is current."""


@dataclass(frozen=True, slots=True)
class Settled:
    """What a turn left behind."""

    entry: SessionEntry | None
    message_ids: list[int] = field(default_factory=list[int])
    reply_ids: tuple[int, ...] = ()
    version: Version = (0, 0, 0)
    waiting: int = 0
    next: Claimed | None = None
    ended: bool = False


def claim(starter: Starter, session_key: str, change: Change) -> Verb[Claimed | None]:
    """Begin the lane's next turn; None if one runs already, or nothing is ready."""
    lane = yield from load_lane(session_key)
    if lane.running or not is_ready(lane, change.now):
        return None
    return (yield from begin_turn(starter, lane, change))


def begin_turn(
    starter: Starter, lane: LaneRow, change: Change, current: SessionEntry | None = None
) -> Verb[Claimed | None]:
    """Lease the lane to the turn at the head of its queue: from then on its attempt counts.

    *current* is its entry, if that was read or written just now. None if nothing of what waits can be read
    any more, which becomes dead letters.
    """
    head = yield from _readable_head(lane, change)
    if head is None:
        yield from recount(lane)
        yield from put_lane(lane)
        return None
    found, items = head
    entry = current or (yield from load(lane.session_key))
    granted = yield from _session_for(starter, lane, entry, _Head(items[0].message, found[0].owner), change)
    session_id = granted.entry.session_id
    recorded = found[0].transcript_id is not None
    if recorded and not (yield from turn_rows.stands_in(found, session_id)):
        yield from turn_rows.withdraw(found, change.ids)
        recorded = False
    lane.waiting -= 1
    lane.lease(starter.epoch, to_micros(change.now))
    yield Statement("take_turn", (lane.lease_token, lane.session_key, found[0].seq, found[0].seq))
    yield from put_lane(lane)
    return Claimed(
        held=Held(
            session_key=lane.session_key,
            epoch=starter.epoch,
            token=lane.lease_token,
            session_id=session_id,
        ),
        entry=granted.entry,
        items=items,
        attempt=lane.attempts + 1,
        recorded=recorded,
        version=(yield from version_of(session_id)),
        waiting=lane.waiting,
        ended=granted.ended is not None,
    )


def append(held: Held, messages: Sequence[Message], change: Change) -> Verb[list[int]]:
    """Add to the transcript while the turn runs; what it is about stands before it."""
    yield from held_lane(held.session_key, held.epoch, held.token)
    session_id = yield from _session_of(held)
    return (yield from turn_rows.record(held, session_id, messages, change))


def owe_now(held: Held, owed: Sequence[Owed], change: Change) -> Verb[tuple[int, ...]]:
    """Owe something while the turn runs, before its own reply."""
    yield from held_lane(held.session_key, held.epoch, held.token)
    entry = yield from load(held.session_key)
    return (yield from owe(owed, entry, held.session_key, change))


def conversation(held: Held, session_id: str, limit: int | None) -> Verb[list[Chat]]:
    """What goes to a model: the conversation, with what the turn is about at its end."""
    pending = yield from turn_rows.unrecorded(held)
    return (yield from replaying.conversation(session_id, limit, include_ancestors=False, pending=pending))


def record_stopped(lane: LaneRow, change: Change) -> Verb[None]:
    """Put what a turn was about into the transcript, before that turn is stopped from outside."""
    held = Held(session_key=lane.session_key, epoch=lane.lease_epoch or 0, token=lane.lease_token)
    entry = yield from load(lane.session_key)
    if entry is None:
        return
    try:
        yield from turn_rows.record(held, entry.session_id, [STOPPED], change, noted=False)
    except StorageCorruptError:
        # A message that cannot be read must not keep people from stopping its turn.
        return


def steer(held: Held, seq: int, change: Change) -> Verb[LaneRow | None]:
    """Let a waiting message be part of the running turn; the lane, None if it does not wait any more.

    What was to be part of that message's turn waits on without it: nobody has told the running turn of that.
    """
    lane = yield from held_lane(held.session_key, held.epoch, held.token)
    session_id = yield from _session_of(held)
    taken = yield Statement("steer_item", (held.token, held.session_key, seq))
    if not taken[0][0]:
        return None
    item = next(one for one in (yield from items_of(held)) if one.seq == seq)
    if (yield from let_others_lead(held.session_key, seq, item.item_id)) is None:
        lane.waiting -= 1
        yield from put_lane(lane)
    yield from turn_rows.record_steered(held, session_id, item, change)
    return lane


def end_turn(settlement: Settlement, change: Change, starter: Starter | None = None) -> Verb[Settled]:
    """Write all that the turn leaves behind and give the lane back, or on to the next turn with *starter*."""
    held = settlement.held
    lane = yield from held_lane(held.session_key, held.epoch, held.token)
    ids: list[int] = []
    entry = yield from load(held.session_key, settlement.known)
    if entry is not None:
        session_id = yield from _writes_to(held, entry)
        ids = yield from _settle_rows(settlement, session_id, change)
        for one in settlement.usages:
            yield from uses.record(session_id, one, change.now)
        if settlement.usages:  # an entry counts tokens as well
            entry = (yield from load(held.session_key, entry)) or entry
        entry = yield from _settle_entry(settlement, entry, session_id, change)
    yield from _settle_items(settlement, lane, change)
    replies = yield from owe(settlement.replies, entry, held.session_key, change)
    lane.lease_epoch, lane.leased_at, lane.attempts = None, None, 0
    seq = yield from line_up(lane, change.now)
    following: Claimed | None = None
    if starter is not None and is_ready(lane, change.now):
        following = yield from begin_turn(starter, lane, change, entry)
    else:
        yield from put_lane(lane)
        if seq is not None:
            yield Statement("set_ready_at", (lane.ready_at, lane.session_key, seq))
    version = (yield from version_of(entry.session_id)) if entry is not None else (0, 0, 0)
    return Settled(entry, ids, replies, version, lane.waiting, following)


def give_back(held: Held, retry_at: datetime | None, change: Change, *, counted: bool) -> Verb[LaneRow]:
    """Let the turn wait again in its old place, because it did not come to an end."""
    lane = yield from held_lane(held.session_key, held.epoch, held.token)
    yield from turn_rows.let_wait_again(held, to_micros(retry_at or change.now), change)
    lane.fence_off()
    lane.attempts += counted
    yield from recount(lane)
    yield from put_lane(lane)
    return lane


def version_of(session_id: str) -> Verb[Version]:
    """What changes whenever anybody writes to the session's transcript."""
    rows = yield Statement("transcript_version", (session_id,))
    return (rows[0][0], rows[0][1], rows[0][2]) if rows else (0, 0, 0)


def _readable_head(lane: LaneRow, change: Change) -> Verb[tuple[list[InboxItem], tuple[Item, ...]] | None]:
    """What the next turn is about; what cannot be read any more is put aside, so that it blocks nothing."""
    while heads := (yield Statement("next_waiting", (lane.session_key,))):
        which = (lane.session_key, heads[0][0], heads[0][0])
        found = list(map(inbox_item, (yield Statement("items_of_next", which))))
        try:
            return found, tuple(_item(lane.session_key, one) for one in found)
        except StorageCorruptError as error:
            yield Statement("bury_next", (to_micros(change.now), "claim", str(error), *which))
            lane.waiting -= 1
            lane.attempts = 0
    return None


def _item(session_key: str, item: InboxItem) -> Item:
    message = decode_message(session_key, item.payload)
    return Item(seq=item.seq, message=message, admitted_at=from_micros(item.admitted_at))


class _Head(NamedTuple):
    message: InboundMessage
    owner: str


def _session_for(
    starter: Starter, lane: LaneRow, entry: SessionEntry | None, head: _Head, change: Change
) -> Verb[Granted]:
    """The session the turn belongs to: the lane's, unless that may not go on."""
    reason = _over(entry, change) if entry is not None else None
    if entry is not None and reason is None:
        return Granted(entry)
    request = Request(
        source=head.message.source,
        key=lane.session_key,
        flags=starter.flags,
        new_session_id=starter.new_session_id,
        known_owner=head.owner,
    )
    lane.attempts, lane.moved_session_id = 0, None
    granted = yield from begin_anew(request, change, entry, reason)
    if isinstance(granted, IdTaken):
        raise IdTakenError(lane.session_key, starter.new_session_id)
    return granted


def _over(entry: SessionEntry, change: Change) -> EndReason | None:
    """Why the turn may not go on with the lane's session, if that is so."""
    match entry.state:
        case SessionState.SUSPENDED:
            return EndReason.SUSPENDED
        case SessionState.EXPIRED:
            return EndReason(entry.state_reason or EndReason.IDLE)
        case SessionState.RESUME_PENDING:
            marked = entry.state_since or entry.updated_at
            kept = is_fresh(marked, change.now, change.freshness)
            kept = kept or change.policy_of(entry).policy.mode is ResetMode.NONE
            return None if kept else EndReason.RESUME_PENDING_EXPIRED
        case _:
            return None


def _session_of(held: Held) -> Verb[str]:
    entry = yield from load(held.session_key)
    if entry is None:  # a leased lane keeps its session, unless somebody wrote behind our back
        raise FencedError(held.session_key, held.token)
    return (yield from _writes_to(held, entry))


def _writes_to(held: Held, entry: SessionEntry) -> Verb[str]:
    """The session that the turn writes to: its own, or the one that this was compressed into since."""
    if held.session_id in ("", entry.session_id):
        return entry.session_id
    line = yield from lineage.chain(held.session_id)
    behind = line[line.index(held.session_id) :]
    return entry.session_id if entry.session_id in behind else held.session_id


def _settle_rows(settlement: Settlement, session_id: str, change: Change) -> Verb[list[int]]:
    """What the turn leaves in the transcript; the ids of its last rows."""
    held, outcome = settlement.held, settlement.outcome
    if outcome is Outcome.ROLLED_BACK:
        yield from turn_rows.take_back(held, session_id, change.ids)
        return []
    noted = outcome is Outcome.DEAD
    return (yield from turn_rows.record(held, session_id, settlement.messages, change, noted=noted))


def _settle_items(settlement: Settlement, lane: LaneRow, change: Change) -> Verb[None]:
    held = settlement.held
    if settlement.outcome is Outcome.DEAD:
        yield from turn_rows.bury(held, settlement.by, settlement.problem, change)
        yield from recount(lane)
        return
    settled = (str(settlement.outcome), to_micros(change.now), settlement.by, settlement.problem)
    yield Statement("settle_turn", (*settled, held.session_key, held.token))


def _settle_entry(
    settlement: Settlement, entry: SessionEntry, session_id: str, change: Change
) -> Verb[SessionEntry]:
    """Move the entry's clocks; nothing waits to be taken up again, so the mark of an interruption goes."""
    if session_id != entry.session_id:
        return entry
    if settlement.outcome is not Outcome.ROLLED_BACK:
        entry = yield from answered(change, entry, settlement.last_prompt_tokens)
    return (yield from calmed(change, entry))


def calm(session_key: str, change: Change) -> Verb[None]:
    """Nothing on the lane waits to be taken up again."""
    entry = yield from load(session_key)
    if entry is not None:
        yield from calmed(change, entry)


def calmed(change: Change, entry: SessionEntry) -> Verb[SessionEntry]:
    """The entry without the mark of an interruption."""
    if not allows(entry.state, Event.RECOVERED):
        return entry
    return (yield from move_to(change, entry, Event.RECOVERED, None))
