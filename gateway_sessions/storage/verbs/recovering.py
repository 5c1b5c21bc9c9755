"""What a process had under way that is gone, exactly, and what becomes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from gateway_sessions.core.gateway_notices import GIVEN_UP, NOT_CARRIED_OUT
from gateway_sessions.core.inbound import InboundMessage
from gateway_sessions.core.instants import from_micros, to_micros
from gateway_sessions.core.lifecycle import Event, allows
from gateway_sessions.core.outbound import OutboundMessage, ReplyTarget
from gateway_sessions.core.queue import Outcome
from gateway_sessions.core.recovery import Recovery, ResumeReason, plan_recovery
from gateway_sessions.core.session import SessionEntry
from gateway_sessions.ports import Statement, Verb
from gateway_sessions.storage.verbs import meta
from gateway_sessions.storage.verbs.entries import load_readable
from gateway_sessions.storage.verbs.inbox_rows import InboxItem, readable, recount, stand_in_line
from gateway_sessions.storage.verbs.lane_rows import LaneRow, load_lane, put_lane
from gateway_sessions.storage.verbs.lanes import cut_off
from gateway_sessions.storage.verbs.nodes import Census
from gateway_sessions.storage.verbs.outbox import Owed, owe
from gateway_sessions.storage.verbs.succession import Change
from gateway_sessions.storage.verbs.turn_rows import Held, bury, items_of, let_wait_again

PAGE = 25
"""Lanes taken over in one go: nothing else can be written meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CutOff:
    """A lane whose turn an earlier process began and did not end."""

    session_key: str
    entry: SessionEntry | None
    attempts: int
    given_up: bool
    """Whether the turn is not tried again."""
    interrupted: bool
    """Whether its session was marked, to go on or, after too many tries, not to."""
    buried: tuple[InboundMessage, ...] = ()
    """What the turn was about that is not tried again, as far as it can be read."""
    owner: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Abandoned:
    """A command of which nobody knows whether it was carried out."""

    session_key: str
    seq: int
    owner: str
    message: InboundMessage


def adopt(
    change: Change, census: Census, limit: int, hold_until: datetime | None = None
) -> Verb[list[CutOff]]:
    """Free some leases of openings that are gone: their turns were cut off, and exactly theirs.

    They wait again in their old places, not to begin before *hold_until*; those that were tried as often as
    *limit* are dead letters, and their sessions are suspended. An empty list: there is no more.
    """
    living = yield from census()
    rows = yield Statement("lanes_left_behind", (living.listed, PAGE))
    if not rows:
        return []
    heard = max((yield Statement("last_heard_of"))[0][0] or 0, (yield from meta.number(meta.LIVED_AT)))
    found: list[CutOff] = []
    for (session_key,) in rows:
        lane = yield from load_lane(session_key)
        end = _End(limit, to_micros(hold_until or change.now), heard)
        found.append((yield from _take_over(change, lane, end)))
    return found


def doubt_replies(census: Census) -> Verb[int]:
    """What was being sent by those that are gone may have been sent. How many replies."""
    living = yield from census()
    rows = yield Statement("doubt_replies", (living.listed,))
    return int(rows[0][0])


def abandon_commands(change: Change, census: Census) -> Verb[list[Abandoned]]:
    """Settle the commands of openings that are gone, if nothing says that they were carried out.

    Whoever asked is owed a word about it: nobody knows how far it came, so it is not done again.
    """
    living = yield from census()
    rows = yield Statement("open_commands")
    found: list[Abandoned] = []
    for item_id, session_key, seq, owner, payload in rows:
        if living.has_made(item_id):
            continue
        problem = "the process ended while it was carried out"
        settled = (str(Outcome.CANCELLED), to_micros(change.now), "recovery", problem, item_id)
        yield Statement("settle_one", settled)
        message = readable(session_key, payload)
        if message is None:
            continue
        if message.command is None:  # a change of a message, which its platform may deliver again
            yield Statement("forget_event", (item_id,))
            continue
        found.append(Abandoned(session_key=session_key, seq=seq, owner=owner, message=message))
        if not message.internal:
            text = NOT_CARRIED_OUT.format(command=f"/{message.command}")
            yield from owe([_notice(message, text, owner, seq)], None, session_key, change)
    return found


class _End(NamedTuple):
    """What is known of the end of a process, and what follows from it."""

    limit: int
    """How often a turn is tried."""
    ready_at: int
    """When those that were cut off may begin again."""
    heard: int
    """When anything was last said in any session, or a turn was known to run."""

    def last_alive(self, change: Change, lane: LaneRow, entry: SessionEntry) -> datetime:
        """When the turn on a lane was last known to live: never later than now, whatever clocks were set to.

        Its process lived as long as that wrote anything.
        """
        if lane.leased_at is None:
            return change.now
        written = max(lane.leased_at, to_micros(entry.updated_at), self.heard)
        return from_micros(min(written, to_micros(change.now)))


def _take_over(change: Change, lane: LaneRow, end: _End) -> Verb[CutOff]:
    key, attempts, limit = lane.session_key, lane.attempts + 1, end.limit
    held = Held(session_key=key, epoch=lane.lease_epoch or 0, token=lane.lease_token)
    items = yield from items_of(held)
    begun_with = [one for one in items if not one.steered]
    given_up = bool(begun_with) and plan_recovery(attempts, limit) is Recovery.SUSPEND
    buried = _readable(key, begun_with) if given_up else ()
    if given_up:
        problem = f"its turn was cut off {attempts} times"
        yield from bury(held, "recovery", problem, change)
        yield from owe(_last_words(buried, begun_with[0]), None, key, change)
    elif items:
        yield from let_wait_again(held, end.ready_at)
    entry = yield from load_readable(key)  # a store must open, whatever a lane has come to
    taken_back = not begun_with and bool((yield Statement("turn_was_taken_back", (key, held.token))))
    interrupted = not taken_back and entry is not None and allows(entry.state, Event.INTERRUPTED)
    if entry is not None and interrupted:
        since = end.last_alive(change, lane, entry)
        entry = yield from cut_off(
            change, entry, attempts, limit, ResumeReason.RESTART_INTERRUPTED, since=since
        )
    lane.fence_off()
    if taken_back:  # whatever is next was never tried
        lane.attempts = 0
    elif items or interrupted:
        lane.attempts = attempts
    yield from recount(lane)  # whoever counted is gone; a wrong number would turn everybody away
    if given_up:
        yield from stand_in_line(lane, change.now)
    yield from put_lane(lane)
    return CutOff(
        session_key=key,
        entry=entry,
        attempts=attempts,
        given_up=given_up,
        interrupted=interrupted,
        buried=buried,
        owner=items[0].owner if items else "",
    )


def _readable(session_key: str, items: Sequence[InboxItem]) -> tuple[InboundMessage, ...]:
    found = (readable(session_key, one.payload) for one in items)
    return tuple(one for one in found if one is not None)


def _last_words(buried: Sequence[InboundMessage], head: InboxItem) -> list[Owed]:
    return [_notice(one, GIVEN_UP, head.owner, head.seq) for one in buried[-1:]]


def _notice(message: InboundMessage, text: str, owner: str, seq: int) -> Owed:
    said = OutboundMessage(text=text, is_notice=True)
    return Owed(target=ReplyTarget.answering(message), message=said, owner=owner, seq=seq)
