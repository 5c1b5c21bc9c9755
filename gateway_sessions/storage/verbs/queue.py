"""The queue of a lane as people see and change it, and what overtakes it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from gateway_sessions.core.inbound import InboundMessage, stored_form
from gateway_sessions.core.instants import first_change_id, from_micros, to_micros
from gateway_sessions.core.queue import DeadLetter, Outcome, QueuedMessage
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.ports import Row, Statement, Verb
from gateway_sessions.storage.verbs import turns
from gateway_sessions.storage.verbs.inbox_rows import decode_message, reckon_ready, recount
from gateway_sessions.storage.verbs.lane_rows import load_lane, put_lane
from gateway_sessions.storage.verbs.ledger import take_out
from gateway_sessions.storage.verbs.succession import Change

FIRST: Final = 1 << 62
FORGET_AT_ONCE: Final = 500
"""Settled rows forgotten in one go."""


@dataclass(frozen=True, slots=True)
class Overtaken:
    """What was on a lane when somebody overtook it."""

    token: int | None
    """Of the turn that ran; it may not write any more."""
    stopped: int = 0
    """How many messages that turn was about."""
    cancelled: int = 0
    """How many messages waited."""

    @property
    def anything(self) -> bool:
        """Whether anything ran or waited."""
        return self.token is not None or bool(self.cancelled)


def overtake(change: Change, session_key: str, by: str, *, stopped: Outcome) -> Verb[Overtaken]:
    """End the lane's turn and empty its queue. What the turn still writes is refused from now on."""
    lane = yield from load_lane(session_key)
    if not lane.running and not lane.waiting:
        return Overtaken(None)
    moment, token, ended = to_micros(change.now), lane.lease_token, 0
    if lane.running:
        yield from turns.record_stopped(lane, change)
        rows = yield Statement("settle_turn", (str(stopped), moment, by, None, session_key, token))
        ended = rows[0][0]
    was_running = lane.running
    lane.fence_off()
    lane.attempts = 0
    cancelled = yield Statement("settle_waiting", (str(Outcome.CANCELLED), moment, by, session_key))
    lane.waiting, lane.ready_at = 0, None
    yield from put_lane(lane)
    return Overtaken(token if was_running else None, ended, cancelled[0][0])


def listed(session_key: str) -> Verb[list[QueuedMessage]]:
    """All that waits or runs on a lane, in the order of its turns."""
    rows = yield Statement("open_items", (session_key,))
    return [_queued(session_key, row) for row in rows]


def depth(session_key: str) -> Verb[int]:
    """How many turns wait on a lane."""
    return (yield from load_lane(session_key)).waiting


def cancel(session_key: str, seq: int, by: str, now: datetime) -> Verb[int]:
    """Take a waiting message out, with what is part of it; how many messages: 0 if it does not wait."""
    lane = yield from load_lane(session_key)
    gone = yield from take_out(lane, seq, Outcome.CANCELLED, by, now)
    if gone:
        yield from put_lane(lane)
    return gone


def clear(session_key: str, by: str, now: datetime) -> Verb[int]:
    """Take everything out that waits; how many messages. The running turn goes on."""
    lane = yield from load_lane(session_key)
    if not lane.waiting:
        return 0
    rows = yield Statement("settle_waiting", (str(Outcome.CANCELLED), to_micros(now), by, session_key))
    lane.waiting, lane.ready_at = 0, None
    yield from put_lane(lane)
    return int(rows[0][0])


def move(session_key: str, seq: int, to: int) -> Verb[list[int]]:
    """Let a waiting turn begin as the *to*-th of them, counted from 1; the new order."""
    lane = yield from load_lane(session_key)
    rows = yield Statement("open_items", (session_key,))
    heads = [row for row in rows if row[3] is None and row[4] is None]
    moved = next((row for row in heads if row[1] == seq), None)
    if moved is None:
        problem = f"no message {seq} waits on lane {session_key!r}"
        raise InvalidInputError(problem)
    rest = [row for row in heads if row is not moved]
    at = min(max(to, 1), len(heads)) - 1
    order = [*rest[:at], moved, *rest[at:]]
    places = sorted(row[7] for row in heads)
    pairs = zip(places, order, strict=True)
    yield Statement("set_place", many=[(place, row[0]) for place, row in pairs])
    yield from reckon_ready(lane)
    yield from put_lane(lane)
    return [row[1] for row in order]


def dead_letters(limit: int, before: int = FIRST) -> Verb[list[DeadLetter]]:
    """Messages whose turns failed for good, the newest first."""
    rows = yield Statement("dead_items", (before, limit))
    return [
        DeadLetter(
            item_id=item_id,
            seq=seq,
            session_key=key,
            owner=owner,
            message=decode_message(key, payload),
            admitted_at=from_micros(admitted_at),
            given_up_at=from_micros(settled_at),
            problem=problem or "",
        )
        for item_id, seq, key, owner, payload, admitted_at, settled_at, problem in rows
    ]


def requeue(item_id: int, now: datetime) -> Verb[str]:
    """Let a dead letter wait again, behind all that waits; the lane it is on."""
    rows = yield Statement("dead_item", (item_id,))
    if not rows:
        problem = f"there is no dead letter {item_id}"
        raise InvalidInputError(problem)
    session_key, seq, merged_into = rows[0]
    lane = yield from load_lane(session_key)
    head = seq if merged_into is None else merged_into
    # A place behind all that waits, and before all that will ever come.
    place = lane.next_seq - 1
    yield Statement("revive", (place, to_micros(now), session_key, head, head))
    yield from recount(lane)
    yield from put_lane(lane)
    return str(session_key)


@dataclass(frozen=True, slots=True)
class Reworded:
    """What an edit or a deletion found among what waits or runs."""

    session_key: str
    seq: int
    running: bool


def reword(event: str, said: InboundMessage | None, by: str, now: datetime) -> Verb[Reworded | None]:
    """Let a waiting message say something else, or, with None, take it back; None if none of it waits.

    A message of which the turn is running is found and left as it is.
    """
    rows = yield Statement("open_event", (event,))
    if not rows:
        return None
    item_id, session_key, seq, merged_into, token, payload, _, _ = rows[0]
    if token is not None:
        return Reworded(session_key, seq, running=True)
    message = decode_message(session_key, payload)
    if said is not None:
        new = message.saying(said.text, said.attachments or message.attachments)
        yield Statement("set_payload", (stored_form(new), len(new.text), item_id))
    else:
        yield from _withdraw(session_key, seq, merged_into, item_id, by, now)
    return Reworded(session_key, seq, running=False)


def forget(before: datetime) -> Verb[int]:
    """Forget some of what was settled before that; 0 when nothing is left."""
    until = (first_change_id(before, 0), to_micros(before), FORGET_AT_ONCE)
    items = yield Statement("forget_items", until)
    replies = yield Statement("forget_replies", until)
    return int(items[0][0] + replies[0][0])


def waiting_lanes() -> Verb[dict[str, int]]:
    """How many turns wait, by lane."""
    rows = yield Statement("waiting_lanes")
    return {row[0]: row[1] for row in rows}


def ready(now: datetime, limit: int, but_not: Iterable[str] = ()) -> Verb[list[tuple[str, str | None]]]:
    """Lanes whose next turn may begin and their owners, but of some, those that have waited longest first."""
    owners = msgspec.json.encode(list(but_not)).decode()
    rows = yield Statement("ready_lanes", (to_micros(now), owners, limit))
    return [(row[0], row[1]) for row in rows]


def next_ready(now: datetime) -> Verb[datetime | None]:
    """When a lane becomes ready that is not yet; None if none will by itself."""
    rows = yield Statement("next_ready", (to_micros(now),))
    return None if rows[0][0] is None else from_micros(rows[0][0])


def outcomes(session_key: str) -> Verb[dict[str, int]]:
    """How often each thing became of what was accepted on a lane, as far as that is still known."""
    rows = yield Statement("lane_outcomes", (session_key,))
    return {row[0]: row[1] for row in rows}


def _withdraw(
    session_key: str, seq: int, merged_into: int | None, item_id: int, by: str, now: datetime
) -> Verb[None]:
    """Take one message back; others that were part of its turn stay, and the first of them leads it."""
    lane = yield from load_lane(session_key)
    if merged_into is None:
        rows = yield Statement("open_items", (session_key,))
        others = [row for row in rows if row[3] == seq]
        if not others:
            yield from take_out(lane, seq, Outcome.CANCELLED, by, now)
            yield from put_lane(lane)
            return
        yield Statement("lead_item", (item_id, others[0][0]))
        yield Statement("follow_item", (others[0][1], session_key, seq, others[0][1]))
    yield Statement("settle_command", (str(Outcome.CANCELLED), to_micros(now), by, None, item_id))
    yield from recount(lane)
    yield from put_lane(lane)


def _queued(session_key: str, row: Row) -> QueuedMessage:
    _, seq, solo, merged_into, token, admitted_at, payload, *_ = row
    return QueuedMessage(
        seq=seq,
        session_key=session_key,
        message=decode_message(session_key, payload),
        admitted_at=from_micros(admitted_at),
        solo=bool(solo),
        merged_into=merged_into,
        running=token is not None,
    )
