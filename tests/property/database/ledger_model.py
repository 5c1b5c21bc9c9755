"""The queue of a store in plain Python: what waits, who has a lane, and what stands in transcripts.

What becomes of an arriving message is decided by the same pure function that the store asks; everything that
follows from the decision is said here once more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from gateway_sessions.core.queue.busy_modes import (
    Arrival,
    BusyRules,
    Enqueue,
    LaneLoad,
    LastWaitingTurn,
    Merge,
    Refuse,
    plan_arrival,
)
from gateway_sessions.core.queue.inbound import InboundMessage, MessageKind
from gateway_sessions.core.queue.items import Outcome
from gateway_sessions.core.queue.state_machine import (
    GIVEN_UP,
    RUNS,
    TURN_ENDS,
    WAITS,
    ItemEvent,
    ItemState,
    TurnOutcome,
    advance_item,
)
from gateway_sessions.storage.transactions.queue.admit import RunningTurnFacts
from gateway_sessions.storage.transactions.queue.running_turn import STOPPED

STOPPED_TEXT = STOPPED.text
BEHIND_ALL = 2.0**-10
"""Between places of messages: where a dead letter is tried again."""
BEHIND_A_LEADER = 2.0**-20
"""Where the rest of a turn waits whose leader may come to wait again: no two turns have one place."""


@dataclass(eq=False)
class Row:
    """A message of a transcript."""

    session: str
    role: str
    text: str
    visible: bool = True


@dataclass(eq=False)
class Item:
    """A message that was accepted."""

    seq: int
    message: InboundMessage
    sender: str
    place: float
    at: datetime
    last_at: datetime
    ready_at: datetime
    solo: bool
    head: Item | None = None
    messages: int = 1
    characters: int = 0
    row: Row | None = None
    state: ItemState = ItemState.NEW
    """Where it is by the table: no rule of this model makes an event happen that the table refuses."""
    tries: int = 0
    """How often the turn that it leads was cut off."""

    def apply_event(self, event: ItemEvent) -> None:
        self.state = advance_item(self.state, event)

    @property
    def outcome(self) -> str | None:
        """What became of it; None while it waits or runs."""
        if self.state in WAITS | RUNS:
            return None
        return str(Outcome.DEAD if self.state in GIVEN_UP else self.state)

    @property
    def steered(self) -> bool:
        return self.state is ItemState.STEERED

    @property
    def text(self) -> str:
        return self.message.text

    def can_be_changed(self) -> bool:
        """Whether it is kept, or stands where it was answered."""
        if self.message.kind is not MessageKind.NEW:
            return False
        answered = self.outcome in ("turned", "interrupted") and self.row is not None and self.row.visible
        return self.outcome in (None, "dead") or answered


@dataclass(eq=False)
class RunningModel:
    """A turn that has the lane."""

    lane: Lane
    session: str
    items: list[Item]
    attempt: int

    @property
    def begun_with(self) -> list[Item]:
        """What is left of that with which it began; what was said into it since is not among that."""
        return [one for one in self.items if not one.steered]


@dataclass
class Lane:
    """One lane."""

    model: Model
    session: str = ""
    items: list[Item] = field(default_factory=list)
    turn: RunningModel | None = None
    suspended: bool = False
    dropped: list[Item] = field(default_factory=list)
    """What made room for the last message."""

    # What there is

    @property
    def heads(self) -> list[Item]:
        """The turns that wait, in their order."""
        mine = self.turn.items if self.turn is not None else []
        waiting = [one for one in self.items if one.outcome is None and one.head is None and one not in mine]
        return sorted(waiting, key=lambda one: one.place)

    def group(self, head: Item) -> list[Item]:
        """A waiting or dead turn: what leads it, and what joined it."""
        return [head, *(one for one in self.items if one.head is head and one.outcome == head.outcome)]

    @property
    def turn_is_about_something(self) -> bool:
        """Whether anything would be tried again, were its turn cut off: not what was said into it."""
        return self.turn is not None and bool(self.turn.begun_with)

    @property
    def needs_new_session(self) -> bool:
        """Whether whatever comes next needs another session."""
        return self.suspended or not self.session

    def find(self, seq: int) -> Item:
        return self.items[seq - 1]

    @property
    def outcomes(self) -> Counter[str]:
        return Counter(one.outcome or "open" for one in self.items)

    # Coming in

    def admit_message(
        self, message: InboundMessage, sender: str, rules: BusyRules, running: RunningTurnFacts, *, solo: bool
    ) -> Enqueue | Merge | Refuse:
        now = self.model.now
        arrival = Arrival.of(message, at=now, sender=sender, solo=solo)
        plan = plan_arrival(arrival, self._load(self.heads, rules, running), rules)
        if isinstance(plan, Refuse):
            return plan
        if self.needs_new_session:
            self.needs_session()
        self.dropped = []
        if isinstance(plan, Enqueue) and plan.drop is not None:
            leader = self.find(plan.drop)
            self.dropped = self.group(leader)
            self._apply_event(self.dropped, ItemEvent.DROPPED)
        head = self.find(plan.into) if isinstance(plan, Merge) else None
        seq = len(self.items) + 1
        size = len(message.text)
        item = Item(seq, message, sender, seq, now, now, plan.ready_at, solo, head, characters=size)
        item.apply_event(ItemEvent.QUEUED if head is None else ItemEvent.JOINED)
        self.items.append(item)
        if head is not None:
            head.messages += 1
            head.characters += size
            head.last_at, head.ready_at = now, plan.ready_at
        return plan

    def _load(self, heads: list[Item], rules: BusyRules, running: RunningTurnFacts) -> LaneLoad:
        # What was cut off is taken up as it was, unless it is next in a session that knows nothing of that.
        tried = bool(heads) and heads[-1].tries > 0 and not (self.needs_new_session and len(heads) == 1)
        last = heads[-1] if heads and not tried else None
        droppable = [one.seq for one in heads if not one.solo and not one.message.internal]
        return LaneLoad(
            running=self.turn is not None,
            can_steer=running.can_steer,
            sub_work=running.sub_work,
            stopping=running.stopping,
            steered=running.steered,
            waiting=len(heads),
            deferred=sum(one.solo and not one.message.internal for one in heads) if running.can_steer else 0,
            last=None if last is None else _waiting(last),
            oldest=droppable[0] if droppable and len(heads) >= rules.max_queued else None,
        )

    # Going out

    def ready(self) -> bool:
        return self.turn is None and bool(self.heads) and self.heads[0].ready_at <= self.model.now

    def claim(self) -> RunningModel:
        head = self.heads[0]
        if self.needs_new_session:
            self.needs_session()
        items = sorted(self.group(head), key=lambda one: (one is not head, one.seq))
        self._apply_event(items, ItemEvent.BEGUN)
        rows = [one.row for one in items if one.row is not None]
        if any(map(self._stands_elsewhere, rows)) or self._others_spoke_behind(rows):
            self.withdraw(items)
        self.turn = RunningModel(self, self.session, items, head.tries + 1)
        return self.turn

    def _stands_elsewhere(self, row: Row) -> bool:
        return not row.visible or row.session != self.session

    def _others_spoke_behind(self, mine: list[Row]) -> bool:
        spoken = [one for one in self.model.rows[self.session] if one.role == "user" and one.visible]
        return any(one not in mine for one in spoken[spoken.index(mine[0]) :]) if mine else False

    # What a turn does

    def record(self, *texts: str) -> None:
        """Put what the turn is about into the transcript, and something behind it."""
        turn = self.turn
        assert turn is not None
        self._record(turn, turn.items)
        for text in texts:
            self.model.say(turn.session, "assistant", text)

    def _record(self, turn: RunningModel, items: Iterable[Item]) -> None:
        fresh = sorted((one for one in items if one.row is None), key=lambda one: one.seq)
        if fresh:
            row = self.model.say(turn.session, "user", "\n".join(one.text for one in fresh))
            for one in fresh:
                one.row = row

    def steer(self, seq: int) -> bool:
        turn = self.turn
        assert turn is not None
        item = next((one for one in self.heads if one.seq == seq), None)
        if item is None:
            return False
        self.withdraw(self.group(item))
        self._others_lead(item)
        self._record(turn, turn.items)
        item.row = self.model.say(turn.session, "user", item.text)
        item.apply_event(ItemEvent.STEERED)
        item.tries = 0
        turn.items.append(item)
        return True

    def end(self, outcome: str) -> None:
        turn = self.turn
        assert turn is not None
        if outcome == "rolled_back":
            self._take_back(turn)
        ended = turn.begun_with if outcome == "dead" else turn.items
        if outcome == "dead":
            self._free_steered(turn)
        event = TURN_ENDS[TurnOutcome(outcome)]
        assert event is not None
        self._apply_event(ended, event)
        self.turn = None
        self._delay_head()

    def _delay_head(self) -> None:
        """The next turn stands behind those that others have waited for, unless more may come for it."""
        now = self.model.now
        for one in self.heads[:1]:
            if not one.last_at <= now < one.ready_at:
                one.ready_at = now

    def release(self, ready_at: datetime, *, counted: bool) -> None:
        turn = self.turn
        assert turn is not None
        begun_with = turn.begun_with
        self._free_steered(turn)
        self._apply_event(begun_with, ItemEvent.RELEASED)
        for one in turn.items:
            one.ready_at = ready_at
        self.turn = None
        for one in begun_with:
            one.tries += counted

    def _free_steered(self, turn: RunningModel) -> None:
        steered = [one for one in turn.items if one.steered]
        self.withdraw(steered)
        self._apply_event(steered, ItemEvent.RELEASED)
        for one in steered:
            one.ready_at = self.model.now

    def _take_back(self, turn: RunningModel) -> None:
        rows = self.model.rows[turn.session]
        mine = [rows.index(one.row) for one in turn.items if one.row is not None and one.row in rows]
        for row in rows[min(mine) :] if mine else []:
            row.visible = False

    # What others do

    def overtake(self) -> None:
        """Stop the turn and empty the queue."""
        if self.turn is not None:
            self.record(STOPPED_TEXT)
            self._apply_event(self.turn.items, ItemEvent.STOPPED)
        elif not self.heads:
            return
        waiting = [one for head in self.heads for one in self.group(head)]
        self._apply_event(waiting, ItemEvent.CANCELLED)
        self.turn = None

    def cut_off(self, limit: int) -> None:
        """The process has ended while a turn ran."""
        turn = self.turn
        assert turn is not None
        begun_with = turn.begun_with
        if begun_with and turn.attempt >= limit:
            self._free_steered(turn)
            self._apply_event(begun_with, ItemEvent.GIVEN_UP)
            self.suspended = True
            self.turn = None
            self._delay_head()
        else:
            self.release(self.model.now, counted=True)

    def cancel(self, seq: int) -> int:
        item = self.find(seq)
        if item.outcome is not None or (self.turn is not None and item in self.turn.items):
            return 0
        if item.head is not None:
            self.take_from_turn(item, ItemEvent.CANCELLED)
            return 1
        return self._apply_event(self.group(item), ItemEvent.CANCELLED)

    def take_from_turn(self, item: Item, event: ItemEvent) -> None:
        """One message less."""
        head = item.head or item
        self.withdraw(self.group(head))
        if item.head is not None:
            head.messages -= 1
            head.characters -= len(item.text)
        else:
            first = self._others_lead(item)
            if first is not None:
                first.characters -= len(item.text)
        item.apply_event(event)

    def _others_lead(self, item: Item) -> Item | None:
        others = [one for one in self.group(item) if one is not item]
        if not others:
            return None
        first = others[0]
        first.apply_event(ItemEvent.PROMOTED)
        first.head, first.place, first.solo = None, item.place + BEHIND_A_LEADER, item.solo
        first.messages, first.characters = item.messages - 1, item.characters
        first.last_at, first.ready_at = item.last_at, item.ready_at
        first.tries = item.tries
        for one in others[1:]:
            one.head = first
        return first

    def needs_session(self) -> None:
        """The lane goes on in another session: what is next there has not failed in it."""
        if self.turn is None:
            for one in self.heads[:1]:
                one.tries = 0
        self.model.needs_session(self)

    def reset(self) -> None:
        self.overtake()
        if self.session:
            self.needs_session()

    def clear(self) -> int:
        waiting = [one for head in self.heads for one in self.group(head)]
        return self._apply_event(waiting, ItemEvent.CANCELLED)

    def move(self, seq: int, to: int) -> list[int]:
        heads = self.heads
        places = [one.place for one in heads]
        moved = self.find(seq)
        heads.remove(moved)
        heads.insert(min(max(to, 1), len(places)) - 1, moved)
        for place, one in zip(places, heads, strict=True):
            one.place = place
        return [one.seq for one in heads]

    def note_change(self, change: InboundMessage) -> None:
        """An edit or a deletion has a place of its own, and was carried out at once."""
        now, seq = self.model.now, len(self.items) + 1
        item = Item(seq, change, "", seq, now, now, now, solo=True)
        item.apply_event(ItemEvent.APPLIED)
        self.items.append(item)

    def change_item(self, item: Item, said: InboundMessage | None) -> None:
        """A message says something else, or was deleted, wherever it is by now."""
        waits = item.outcome is None and (self.turn is None or item not in self.turn.items)
        if waits:
            self.take_from_turn(item, ItemEvent.DELETED) if said is None else self.reword(item, said)
        elif item.outcome in (None, "dead"):
            self.delete_kept(item) if said is None else self.reword_kept(item, said)
        elif (row := item.row) is not None:
            item.message = item.message if said is None else said
            item.row = None if said is None else row
            self._rewrite_row(row)

    def reword(self, item: Item, said: InboundMessage) -> None:
        head = item.head or item
        self.withdraw(self.group(head))
        head.characters += len(said.text) - len(item.text)
        item.message = said

    def reword_kept(self, item: Item, said: InboundMessage) -> None:
        """What a turn is about that runs or has failed says something else."""
        (item.head or item).characters += len(said.text) - len(item.text)
        item.message = said
        if item.row is not None:
            self._rewrite_row(item.row)
        elif self.turn is not None and item in self.turn.items:
            self.record()

    def delete_kept(self, item: Item) -> None:
        """It was deleted: nobody keeps it, and whatever was about it as well goes on without it."""
        if item.head is not None:
            item.head.messages -= 1
            item.head.characters -= len(item.text)
        elif (first := self._others_lead(item)) is not None:
            first.characters -= len(item.text)
        item.apply_event(ItemEvent.DELETED)
        row, item.row = item.row, None
        if row is not None:
            self._rewrite_row(row)
        if self.turn is not None and item in self.turn.items:
            self.turn.items.remove(item)

    def _rewrite_row(self, row: Row) -> None:
        told = sorted((one for one in self.items if one.row is row), key=lambda one: one.seq)
        row.visible = row.visible and bool(told)
        row.text = "\n".join(one.text for one in told)

    def requeue(self, item: Item) -> None:
        group = self.group(item.head or item)
        self.withdraw(group)
        opened = [one.place for one in self.items if one.outcome is None]
        place = max([len(self.items), *opened]) + BEHIND_ALL
        self._apply_event(group, ItemEvent.REQUEUED)
        for one in group:
            one.place, one.ready_at, one.tries = place, self.model.now, 0

    def withdraw(self, items: Iterable[Item]) -> None:
        for one in items:
            if one.row is not None:
                one.row.visible = False
                one.row = None

    def _apply_event(self, items: Sequence[Item], event: ItemEvent) -> int:
        for one in items:
            one.apply_event(event)
        return len(items)


def _waiting(head: Item) -> LastWaitingTurn:
    return LastWaitingTurn(
        seq=head.seq,
        sender=head.sender,
        solo=head.solo or head.message.internal,
        has_media=False,
        has_text=head.characters > 0,
        messages=head.messages,
        characters=head.characters,
        first_at=head.at,
        last_at=head.last_at,
    )


class Model:
    """All lanes, and all that was said in sessions."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self.lanes: dict[str, Lane] = {}
        self.rows: dict[str, list[Row]] = {}
        self.number = 0

    def needs_session(self, lane: Lane) -> None:
        """The lane's next session; the store names it differently."""
        self.number += 1
        lane.session, lane.suspended = f"session {self.number}", False
        self.rows[lane.session] = []

    def pulls_forward(self) -> None:
        """The clock was ahead, and is set right: nothing waits for longer than a burst may pause."""
        for lane in self.lanes.values():
            for one in lane.heads:
                if one.ready_at > self.now + BusyRules().debounce:
                    one.ready_at = self.now

    def say(self, session: str, role: str, text: str) -> Row:
        row = Row(session, role, text)
        self.rows[session].append(row)
        return row
