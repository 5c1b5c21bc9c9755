"""Turns: a lane is leased to one at a time, and what it writes counts only as long as it has the lane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, TypeAlias

from gateway_sessions.core.inbound import InboundMessage, user_row
from gateway_sessions.core.instants import from_micros, to_micros
from gateway_sessions.core.keys import Isolation
from gateway_sessions.core.lifecycle import Event, allows, is_fresh
from gateway_sessions.core.messages import Message
from gateway_sessions.core.queue import Outcome
from gateway_sessions.core.reasons import EndReason
from gateway_sessions.core.replay import Chat
from gateway_sessions.core.session import SessionEntry, SessionState
from gateway_sessions.core.usage import Usage
from gateway_sessions.errors import FencedError
from gateway_sessions.ports import Statement, Verb
from gateway_sessions.storage.verbs import messages as transcripts
from gateway_sessions.storage.verbs import replaying
from gateway_sessions.storage.verbs import usage as uses
from gateway_sessions.storage.verbs.access import Granted, IdTaken, Request, begin_anew
from gateway_sessions.storage.verbs.entries import load
from gateway_sessions.storage.verbs.inbox_rows import decode_message, is_ready, reckon_ready, recount
from gateway_sessions.storage.verbs.lane_rows import LaneRow, held_lane, load_lane, put_lane
from gateway_sessions.storage.verbs.lanes import TurnEnd, settle
from gateway_sessions.storage.verbs.outbox import Owed, owe
from gateway_sessions.storage.verbs.rewinding import rewind_to
from gateway_sessions.storage.verbs.succession import Change, move_to

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The proof that a turn has its lane."""

    session_key: str
    epoch: int
    token: int


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


def claim(starter: Starter, session_key: str, change: Change) -> Verb[Claimed | IdTaken | None]:
    """Begin the lane's next turn; None if one runs already, or nothing is ready."""
    lane = yield from load_lane(session_key)
    if lane.running or not is_ready(lane, change.now):
        return None
    return (yield from begin_turn(starter, lane, change))


def begin_turn(starter: Starter, lane: LaneRow, change: Change) -> Verb[Claimed | IdTaken | None]:
    """Lease the lane to the turn at the head of its queue: from then on its attempt counts."""
    heads = yield Statement("next_waiting", (lane.session_key,))
    if not heads:
        return None
    seq, now = heads[0][0], to_micros(change.now)
    lane.waiting -= 1
    lane.lease(starter.epoch, now)
    yield Statement("take_turn", (lane.lease_token, lane.session_key, seq, seq))
    rows = yield Statement("items_of_turn", (lane.session_key, lane.lease_token))
    items = tuple(
        Item(seq=row[1], message=decode_message(lane.session_key, row[8]), admitted_at=from_micros(row[6]))
        for row in rows
    )
    granted = yield from _session_for(starter, lane, items[0].message, str(rows[0][2]), change)
    if isinstance(granted, IdTaken):
        return granted
    yield from put_lane(lane)
    fresh = granted.ended is not None
    return Claimed(
        held=Held(session_key=lane.session_key, epoch=starter.epoch, token=lane.lease_token),
        entry=granted.entry,
        items=items,
        attempt=lane.attempts + 1,
        recorded=rows[0][7] is not None and not fresh,
        version=(yield from version_of(granted.entry.session_id)),
        waiting=lane.waiting,
        ended=fresh,
    )


def append(held: Held, messages: Sequence[Message], change: Change) -> Verb[list[int]]:
    """Add to the transcript while the turn runs; what it is about stands before it."""
    yield from held_lane(held.session_key, held.epoch, held.token)
    session_id = yield from _session_of(held)
    rows = [*(yield from _unrecorded(held)), *messages]
    appended = yield from transcripts.append(session_id, rows, change.now, change.ids, copied=True)
    yield from _note(held, appended.message_ids, len(rows) - len(messages))
    return appended.message_ids[len(rows) - len(messages) :]


def owe_now(held: Held, owed: Sequence[Owed], change: Change) -> Verb[tuple[int, ...]]:
    """Owe something while the turn runs, before its own reply."""
    yield from held_lane(held.session_key, held.epoch, held.token)
    entry = yield from load(held.session_key)
    return (yield from owe(owed, entry, held.session_key, change))


def conversation(held: Held, session_id: str, limit: int | None) -> Verb[list[Chat]]:
    """What goes to a model: the conversation, with what the turn is about at its end."""
    pending = yield from _unrecorded(held)
    return (yield from replaying.conversation(session_id, limit, include_ancestors=False, pending=pending))


def record_stopped(lane: LaneRow, change: Change) -> Verb[None]:
    """Put what a turn was about into the transcript, before that turn is stopped from outside."""
    held = Held(session_key=lane.session_key, epoch=lane.lease_epoch or 0, token=lane.lease_token)
    entry = yield from load(lane.session_key)
    if entry is not None:
        rows = [*(yield from _unrecorded(held)), STOPPED]
        yield from transcripts.append(entry.session_id, rows, change.now, change.ids, copied=True)


def steer(held: Held, seq: int, change: Change) -> Verb[bool]:
    """Let a waiting message be part of the running turn; False if it does not wait any more."""
    lane = yield from held_lane(held.session_key, held.epoch, held.token)
    taken = yield Statement("steer_item", (held.token, held.session_key, seq))
    if not taken[0][0]:
        return False
    session_id = yield from _session_of(held)
    lane.waiting -= 1
    yield from put_lane(lane)
    rows = yield Statement("items_of_turn", (held.session_key, held.token))
    message = next(decode_message(held.session_key, row[8]) for row in rows if row[1] == seq)
    before = yield from _unrecorded(held, until=seq)
    said = [*before, user_row([message], steered=True)]
    appended = yield from transcripts.append(session_id, said, change.now, change.ids, copied=True)
    yield Statement("note_row", (appended.message_ids[-1], held.session_key, held.token))
    return True


def end_turn(
    settlement: Settlement, change: Change, starter: Starter | None = None
) -> Verb[Settled | IdTaken]:
    """Write all that the turn leaves behind and give the lane back, or on to the next turn with *starter*."""
    held, now = settlement.held, to_micros(change.now)
    lane = yield from held_lane(held.session_key, held.epoch, held.token)
    ids: list[int] = []
    entry = yield from load(held.session_key)
    if entry is not None:
        ids = yield from _settle_transcript(settlement, change, entry.session_id)
        for one in settlement.usages:
            yield from uses.record(entry.session_id, one, change.now)
        entry = yield from _settle_entry(settlement, change, entry.session_id)
    yield from _settle_items(settlement, now)
    replies = yield from owe(settlement.replies, entry, held.session_key, change)
    lane.lease_epoch, lane.leased_at, lane.attempts = None, None, 0
    yield from reckon_ready(lane)
    following: Claimed | IdTaken | None = None
    if starter is not None and is_ready(lane, change.now):
        following = yield from begin_turn(starter, lane, change)
    else:
        yield from put_lane(lane)
    if isinstance(following, IdTaken):
        return following
    version = (yield from version_of(entry.session_id)) if entry is not None else (0, 0, 0)
    return Settled(entry, ids, replies, version, lane.waiting, following)


def give_back(held: Held, retry_at: datetime | None, change: Change, *, counted: bool) -> Verb[LaneRow]:
    """Let the turn wait again in its old place, because it did not come to an end."""
    lane = yield from held_lane(held.session_key, held.epoch, held.token)
    moment = to_micros(retry_at or change.now)
    yield Statement("give_back_turn", (moment, held.session_key))
    lane.fence_off()
    lane.attempts += counted
    yield from recount(lane)
    yield from put_lane(lane)
    return lane


def version_of(session_id: str) -> Verb[Version]:
    """What changes whenever anybody writes to the session's transcript."""
    rows = yield Statement("transcript_version", (session_id,))
    return (rows[0][0], rows[0][1], rows[0][2]) if rows else (0, 0, 0)


def _session_for(
    starter: Starter, lane: LaneRow, message: InboundMessage, owner: str, change: Change
) -> Verb[Granted | IdTaken]:
    """The session the turn belongs to: the lane's, unless that may not go on."""
    entry = yield from load(lane.session_key)
    reason = _over(entry, change) if entry is not None else None
    if entry is not None and reason is None:
        return Granted(entry)
    request = Request(
        source=message.source,
        key=lane.session_key,
        flags=starter.flags,
        new_session_id=starter.new_session_id,
        known_owner=owner,
    )
    lane.attempts, lane.moved_session_id = 0, None
    return (yield from begin_anew(request, change, entry, reason))


def _over(entry: SessionEntry, change: Change) -> EndReason | None:
    """Why the turn may not go on with the lane's session, if that is so."""
    match entry.state:
        case SessionState.SUSPENDED:
            return EndReason.SUSPENDED
        case SessionState.EXPIRED:
            return EndReason(entry.state_reason or EndReason.IDLE)
        case SessionState.RESUME_PENDING:
            marked = entry.state_since or entry.updated_at
            fresh = is_fresh(marked, change.now, change.freshness)
            return None if fresh else EndReason.RESUME_PENDING_EXPIRED
        case _:
            return None


def _session_of(held: Held) -> Verb[str]:
    entry = yield from load(held.session_key)
    if entry is None:  # a leased lane keeps its session, unless somebody wrote behind our back
        raise FencedError(held.session_key, held.token)
    return entry.session_id


def _unrecorded(held: Held, until: int | None = None) -> Verb[list[Message]]:
    """The row of what the turn is about, unless the transcript has it already."""
    rows = yield Statement("items_of_turn", (held.session_key, held.token))
    fresh = [row for row in rows if row[7] is None and (until is None or row[1] < until)]
    if not fresh:
        return []
    row = user_row([decode_message(held.session_key, one[8]) for one in fresh])
    return [row if row.sent_at is not None else row.altered(sent_at=from_micros(fresh[0][6]))]


def _note(held: Held, message_ids: list[int], recorded: int) -> Verb[None]:
    if recorded:
        yield Statement("note_row", (message_ids[0], held.session_key, held.token))


def _settle_transcript(settlement: Settlement, change: Change, session_id: str) -> Verb[list[int]]:
    """Add what the turn says at its end, or hide all it has said so far; the ids of what was added."""
    held, said = settlement.held, settlement.messages
    if settlement.outcome is Outcome.ROLLED_BACK:
        rows = yield Statement("items_of_turn", (held.session_key, held.token))
        recorded = [row[7] for row in rows if row[7] is not None]
        if recorded:
            yield from rewind_to(session_id, min(recorded), change.ids)
        return []
    before = yield from _unrecorded(held)
    appended = yield from transcripts.append(
        session_id, [*before, *said], change.now, change.ids, copied=True
    )
    return appended.message_ids[len(before) :]


def _settle_items(settlement: Settlement, now: int) -> Verb[None]:
    held = settlement.held
    if settlement.outcome is Outcome.DEAD:
        buried = (now, settlement.by, settlement.problem, held.session_key, held.token)
        yield Statement("bury_turn", buried)
        return
    settled = (str(settlement.outcome), now, settlement.by, settlement.problem)
    yield Statement("settle_turn", (*settled, held.session_key, held.token))


def _settle_entry(settlement: Settlement, change: Change, session_id: str) -> Verb[SessionEntry | None]:
    """Move the entry's clocks; a turn that was completed takes the mark of an interruption away."""
    turn = TurnEnd(
        session_key=settlement.held.session_key,
        session_id=session_id,
        last_prompt_tokens=settlement.last_prompt_tokens,
    )
    entry = yield from settle(change, turn)
    recovered = settlement.outcome is Outcome.TURNED
    if entry is not None and recovered and allows(entry.state, Event.RECOVERED):
        entry = yield from move_to(change, entry, Event.RECOVERED, None)
    return entry
