"""Edits and deletions of messages that were accepted: where each is kept until it is settled for good.

What waits is written down anew with its turn. What a running turn is about is changed where the transcript
has it, and written there at once if it has not: so the end of that turn finds out that it is not about what
it began with. What failed for good is changed in both places. Copies in branches say the same from then on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gateway_sessions.core.inbound import InboundMessage, stored_form
from gateway_sessions.core.instants import to_micros
from gateway_sessions.core.queue import Outcome
from gateway_sessions.ports import Statement, Verb
from gateway_sessions.storage.verbs import turn_rows
from gateway_sessions.storage.verbs.entries import load
from gateway_sessions.storage.verbs.inbox_rows import InboxItem, decode_message, inbox_item
from gateway_sessions.storage.verbs.lane_rows import LaneRow, load_lane
from gateway_sessions.storage.verbs.queue import Part, leave_turn, take_from_turn, unwrite
from gateway_sessions.storage.verbs.succession import Change
from gateway_sessions.storage.verbs.turn_rows import Held


@dataclass(frozen=True, slots=True)
class Reworded:
    """What an edit or a deletion found, and has changed."""

    session_key: str
    seq: int
    running: bool = False
    dead: bool = False
    """Whether its turn has failed for good."""
    lane: LaneRow | None = field(default=None, compare=False)
    """Its lane as it is now, if it waits there."""


def reword(event: str, said: InboundMessage | None, by: str, change: Change) -> Verb[Reworded | None]:
    """Let a message say something else, or, with None, take it back; None if it is none that is kept here."""
    rows = yield Statement("kept_event", (event,))
    if not rows:
        return None
    item_id, session_key, seq, merged_into, token, outcome, payload = rows[0]
    part = Part(item_id, seq, seq if merged_into is None else merged_into, payload)
    lane = yield from load_lane(session_key)
    dead = outcome is not None
    if token is None and not dead:
        yield from _change_waiting(lane, part, said, by, change)
        return Reworded(session_key, seq, lane=lane)
    turn = yield from _turn_of(lane, part, None if dead else token)
    if said is None:
        yield from _take_back(turn, part, by, change)
    else:
        yield from _edit(turn, part, said, change)
    return Reworded(session_key, seq, running=not dead, dead=dead)


class _Turn(NamedTuple):
    """A turn that runs or has failed, and what it is about."""

    session_key: str
    held: Held | None
    """Who has the lane; None: it failed."""
    items: list[InboxItem]

    def in_one_row_with(self, item: InboxItem) -> list[InboxItem]:
        """What is told by the same row of the transcript; nothing if none tells it yet."""
        row = item.transcript_id
        return [] if row is None else [one for one in self.items if one.transcript_id == row]


def _turn_of(lane: LaneRow, part: Part, token: int | None) -> Verb[_Turn]:
    """The turn with that token, or, without one, that has failed."""
    key = lane.session_key
    if token is None:
        rows = yield Statement("dead_turn", (key, part.head, part.head))
        return _Turn(key, None, list(map(inbox_item, rows)))
    held = Held(session_key=key, epoch=lane.lease_epoch or 0, token=token)
    return _Turn(key, held, (yield from turn_rows.items_of(held)))


def _change_waiting(
    lane: LaneRow, part: Part, said: InboundMessage | None, by: str, change: Change
) -> Verb[None]:
    if said is None:
        yield from take_from_turn(lane, part, by, change)
        return
    items = yield from unwrite(lane.session_key, part)
    yield from _reword_item(lane.session_key, part, said, items)


def _edit(turn: _Turn, part: Part, said: InboundMessage, change: Change) -> Verb[None]:
    payload = yield from _reword_item(turn.session_key, part, said, turn.items)
    item = next(one for one in turn.items if one.item_id == part.item_id)
    if item.transcript_id is None:
        yield from _record(turn, change)
        return
    told = [one._replace(payload=payload) if one is item else one for one in turn.in_one_row_with(item)]
    yield from turn_rows.say_anew(turn.session_key, item.transcript_id, told, change, keep=True)


def _take_back(turn: _Turn, part: Part, by: str, change: Change) -> Verb[None]:
    item = next(one for one in turn.items if one.item_id == part.item_id)
    yield from leave_turn(turn.session_key, part, turn.items)
    moment = to_micros(change.now)
    if turn.held is None:
        yield Statement("drop_dead_item", (str(Outcome.CANCELLED), moment, by, part.item_id))
    else:
        yield Statement("settle_one", (str(Outcome.CANCELLED), moment, by, None, part.item_id))
    if item.transcript_id is None:
        return
    left = [one for one in turn.in_one_row_with(item) if one is not item]
    yield from turn_rows.say_anew(turn.session_key, item.transcript_id, left, change, keep=False)


def _reword_item(session_key: str, part: Part, said: InboundMessage, items: Sequence[InboxItem]) -> Verb[str]:
    """Let a message say something else where it is kept; what is kept now."""
    message = decode_message(session_key, part.payload)
    new = message.saying(said.text, said.attachments or message.attachments)
    payload = stored_form(new)
    yield Statement("set_payload", (payload, part.item_id))
    head_id = next((one.item_id for one in items if one.seq == part.head), 0)
    yield Statement("change_size", (0, len(new.text) - len(message.text), head_id))
    return payload


def _record(turn: _Turn, change: Change) -> Verb[None]:
    """Write down what a running turn is about, as the first thing that it appends would.

    Whoever runs it knows what it was about when it began, and would write that otherwise.
    """
    entry = yield from load(turn.session_key)
    if turn.held is not None and entry is not None:
        yield from turn_rows.record(turn.held, entry.session_id, (), change)
