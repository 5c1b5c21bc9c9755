"""After a start: what an earlier process had under way, exactly, and what becomes of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from gateway_sessions.core.gateway_notices import GIVEN_UP, NOT_CARRIED_OUT
from gateway_sessions.core.inbound import InboundMessage
from gateway_sessions.core.instants import to_micros
from gateway_sessions.core.lifecycle import Event, allows
from gateway_sessions.core.outbound import OutboundMessage, ReplyTarget
from gateway_sessions.core.queue import Outcome
from gateway_sessions.core.recovery import Recovery, ResumeReason, plan_recovery
from gateway_sessions.core.session import SessionEntry
from gateway_sessions.ports import Statement, Verb
from gateway_sessions.storage.verbs.entries import load
from gateway_sessions.storage.verbs.inbox_rows import decode_message, recount
from gateway_sessions.storage.verbs.lane_rows import LaneRow, load_lane, put_lane
from gateway_sessions.storage.verbs.lanes import cut_off
from gateway_sessions.storage.verbs.outbox import Owed, owe
from gateway_sessions.storage.verbs.succession import Change

PAGE = 100
"""Lanes taken over in one go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CutOff:
    """A lane whose turn an earlier process began and did not end."""

    session_key: str
    entry: SessionEntry | None
    attempts: int
    interrupted: bool
    """Whether its session was marked, to go on or, after too many tries, not to."""
    buried: tuple[InboundMessage, ...] = ()
    """What the turn was about, if it was tried too often."""
    owner: str = ""

    @property
    def given_up(self) -> bool:
        """Whether the turn is not tried again."""
        return bool(self.buried)


@dataclass(frozen=True, slots=True, kw_only=True)
class Abandoned:
    """A command of which nobody knows whether it was carried out."""

    session_key: str
    seq: int
    owner: str
    message: InboundMessage


def adopt(change: Change, epoch: int, limit: int, hold_until: datetime | None = None) -> Verb[list[CutOff]]:
    """Free some leases of earlier processes: their turns were cut off, and exactly theirs.

    They wait again in their old places, not to begin before *hold_until*; those that were tried as often as
    *limit* are dead letters, and their sessions are suspended. An empty list: there is no more.
    """
    rows = yield Statement("lanes_leased_before", (epoch, PAGE))
    found: list[CutOff] = []
    for (session_key,) in rows:
        lane = yield from load_lane(session_key)
        found.append((yield from _take_over(change, lane, limit, to_micros(hold_until or change.now))))
    return found


def abandon_commands(change: Change, before: int) -> Verb[list[Abandoned]]:
    """Settle the commands of earlier processes that were written down and not said to be carried out.

    Whoever asked is owed a word about it: nobody knows how far it came, so it is not done again.
    """
    rows = yield Statement("open_commands", (before,))
    found: list[Abandoned] = []
    for item_id, session_key, seq, owner, payload in rows:
        problem = "the process ended while it was carried out"
        settled = (str(Outcome.CANCELLED), to_micros(change.now), "recovery", problem, item_id)
        yield Statement("settle_command", settled)
        message = decode_message(session_key, payload)
        if message.command is None:  # a change of a message, which its platform may deliver again
            continue
        found.append(Abandoned(session_key=session_key, seq=seq, owner=owner, message=message))
        if not message.internal:
            text = NOT_CARRIED_OUT.format(command=f"/{message.command}")
            yield from owe([_notice(message, text, owner, seq)], None, session_key, change)
    return found


def _take_over(change: Change, lane: LaneRow, limit: int, ready_at: int) -> Verb[CutOff]:
    key, token, attempts = lane.session_key, lane.lease_token, lane.attempts + 1
    items = yield Statement("items_of_turn", (key, token))
    owner = str(items[0][2]) if items else ""
    buried: tuple[InboundMessage, ...] = ()
    if items and plan_recovery(attempts, limit) is Recovery.SUSPEND:
        buried = tuple(decode_message(key, row[8]) for row in items)
        problem = f"its turn was cut off {attempts} times"
        yield Statement("bury_turn", (to_micros(change.now), "recovery", problem, key, token))
        yield from owe([_notice(buried[-1], GIVEN_UP, owner, int(items[-1][1]))], None, key, change)
    elif items:
        yield Statement("give_back_turn", (ready_at, key))
    entry = yield from load(key)
    interrupted = entry is not None and allows(entry.state, Event.INTERRUPTED)
    if entry is not None and interrupted:
        entry = yield from cut_off(change, entry, attempts, limit, ResumeReason.RESTART_INTERRUPTED)
    lane.fence_off()
    lane.attempts = attempts if items or interrupted else lane.attempts
    yield from recount(lane)
    yield from put_lane(lane)
    return CutOff(
        session_key=key,
        entry=entry,
        attempts=attempts,
        interrupted=interrupted,
        buried=buried,
        owner=owner,
    )


def _notice(message: InboundMessage, text: str, owner: str, seq: int) -> Owed:
    said = OutboundMessage(text=text, is_notice=True)
    return Owed(target=ReplyTarget.answering(message), message=said, owner=owner, seq=seq)
