"""What a gateway promises, written down a second time over lists: nothing in here waits, fails or is stored.

It shares with the package `plan_arrival`, `plan_crash_loop_hold` and `plan_recovery`, which have tests of
their own, and the words for what became of a message. When a turn begins is not foretold: one that has begun
has to be the next one of its lane, and at rest no lane waits while there is room.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count

from gateway_sessions.core.notices.notice_texts import FAILED, GIVEN_UP, cut_off_notice
from gateway_sessions.core.queue.busy_modes import (
    Arrival,
    ArrivalPlan,
    BusyRules,
    Enqueue,
    LaneLoad,
    LastWaitingTurn,
    Merge,
    plan_arrival,
)
from gateway_sessions.core.queue.inbound import Accepted, InboundMessage, MessageKind, Receipt, Rejected
from gateway_sessions.core.queue.items import Outcome
from gateway_sessions.core.sessions.recovery import (
    CrashLoopLimits,
    Recovery,
    plan_crash_loop_hold,
    plan_recovery,
    recent_unclean_starts,
)

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
CUT_OFF = cut_off_notice(LONG_AGO, LONG_AGO)[:49]
"""How that notice begins, however long ago it was."""


@dataclass(kw_only=True)
class Said:
    """An accepted message, and what became of it."""

    seq: int
    message: InboundMessage
    at: datetime
    outcome: Outcome | None = None
    session_id: str | None = None
    """Where its last turn took place."""
    tries: int = 0
    former: list[str] = field(default_factory=list[str])
    """What it said before it was edited."""
    deleted: bool = False
    changed_late: bool = False
    """Whether that was while its turn ran."""
    is_change: bool = False
    """Whether it only changed another one."""
    remembered: bool = True
    """Whether the process that lives now knows without a look that it was accepted."""


@dataclass(kw_only=True)
class Slot:
    """A turn that waits or runs, and the messages it is about."""

    place: int
    sender: str
    solo: bool
    said: list[Said]
    ready_at: datetime
    first_at: datetime
    last_at: datetime
    media: bool
    steered: list[Slot] = field(default_factory=list["Slot"])
    """Messages that its agent was given on the way: turns of their own, should this one be cut off."""
    session_id: str | None = None
    """Where it runs, or has run."""
    tries: int = 0
    """How often it was cut off."""
    cut_off_at: datetime | None = None
    """When its process ended, at the latest."""
    begun_at: datetime = LONG_AGO

    @property
    def seqs(self) -> list[int]:
        return [one.seq for one in self.said]

    @property
    def whole(self) -> list[Said]:
        return [*self.said, *(one for slot in self.steered for one in slot.said)]

    def as_waiting(self) -> LastWaitingTurn:
        characters = sum(len(one.message.text) for one in self.said)
        return LastWaitingTurn(
            seq=self.said[0].seq,
            sender=self.sender,
            solo=self.solo,
            has_media=self.media,
            has_text=characters > 0,
            messages=len(self.said),
            characters=characters,
            first_at=self.first_at,
            last_at=self.last_at,
        )


@dataclass(kw_only=True)
class Facts:
    """What only the process knows in which a turn runs."""

    sub_work: bool = False
    steered: int = 0


class Lane:
    """The queue of one lane, and all that was ever said on it."""

    def __init__(self, rules: BusyRules, freshness: timedelta | None) -> None:
        self.rules = rules
        self.freshness = freshness
        """How old a turn that was cut off may be to go on in its session."""
        self.said: list[Said] = []
        self.waiting: list[Slot] = []
        self.running: Slot | None = None
        self.dead: list[Slot] = []
        self.session_id: str | None = None
        self.suspended = False
        """Whether its turn was given up because it was cut off too often."""
        self.replies: list[str] = []
        """What was committed to be sent, in order, but for the news that a session has ended."""
        self._places = count(1)

    # A message

    def arrives(self, message: InboundMessage, now: datetime, facts: Facts, *, solo: bool) -> Receipt:
        """What has to be answered to a message that is new."""
        plan = self._plan(message, now, facts, solo=solo)
        where = {"session_key": "", "session_id": None}
        if not isinstance(plan, Enqueue | Merge):
            return Rejected(reason=plan.reason, text="", retry_after=plan.retry_after)
        said = Said(seq=len(self.said) + 1, message=message, at=now)
        self.said.append(said)
        dropped: tuple[int, ...] = ()
        if isinstance(plan, Merge):
            slot = self.waiting[-1]
            slot.said.append(said)
            slot.ready_at, slot.last_at = plan.ready_at, now
            slot.media = slot.media or message.has_media
        else:
            if plan.drop is not None:
                slot = self._take_out(plan.drop, Outcome.DROPPED)
                dropped = tuple(slot.seqs)
            self.waiting.append(self._slot(said, now, plan.ready_at, solo=solo))
        into = plan.into if isinstance(plan, Merge) else None
        return Accepted(
            seq=said.seq,
            disposition=plan.then,
            merged_into=into,
            dropped=dropped,
            demoted=plan.demotion,
            **where,  # type: ignore[arg-type]
        )

    def refuses(self, said: Said, now: datetime, facts: Facts) -> Rejected | None:
        """How a message may be refused that comes again: nobody looks whether it was accepted long ago."""
        plan = self._plan(said.message, now, facts, solo=False)
        if said.remembered or said.is_change or isinstance(plan, Enqueue | Merge):
            return None
        return Rejected(reason=plan.reason, text="", retry_after=plan.retry_after)

    def _plan(self, message: InboundMessage, now: datetime, facts: Facts, *, solo: bool) -> ArrivalPlan:
        return plan_arrival(Arrival.of(message, at=now, solo=solo), self._load(facts), self.rules)

    def _slot(self, said: Said, now: datetime, ready_at: datetime, *, solo: bool) -> Slot:
        return Slot(
            place=next(self._places),
            sender=said.message.sender,
            solo=solo,
            said=[said],
            ready_at=ready_at,
            first_at=now,
            last_at=now,
            media=said.message.has_media,
        )

    def _load(self, facts: Facts) -> LaneLoad:
        last = self.waiting[-1].as_waiting() if self.waiting and not self.waiting[-1].tries else None
        full = len(self.waiting) >= self.rules.max_queued
        oldest = next((one.seqs[0] for one in self.waiting if not one.solo), None) if full else None
        running = self.running is not None
        return LaneLoad(
            running=running,
            can_steer=running,
            sub_work=running and facts.sub_work,
            steered=facts.steered if running else 0,
            waiting=len(self.waiting),
            deferred=sum(one.solo for one in self.waiting),
            last=last,
            oldest=oldest,
        )

    # A turn

    def begins(self, texts: list[str], session_id: str, began_at: datetime) -> int:
        """The next turn has begun then, and was about those; which attempt it has to be."""
        assert self.running is None, "two turns run on one lane"
        assert self.waiting, "a turn of nothing"
        self.moves_to(session_id)
        slot = self.waiting.pop(0)
        assert [one.message.text for one in slot.said] == texts, "not the next turn"
        assert slot.ready_at <= began_at, "a turn has begun too early"
        slot.cut_off_at = None
        for one in slot.said:
            one.session_id, one.tries = session_id, one.tries + 1
        self.running, slot.session_id, slot.begun_at = slot, session_id, began_at
        return slot.tries + 1

    @property
    def is_new(self) -> bool:
        """Whether the running turn was never begun before."""
        return self.running is not None and all(one.tries == 1 for one in self.running.said)

    def moves_to(self, session_id: str | None) -> None:
        """The lane's session may be another one now; what was given up before does not count there."""
        if session_id != self.session_id:
            self.session_id = session_id
            if self.suspended and self.running is None:
                for slot in self.waiting[:1]:
                    slot.tries = 0
            self.suspended = False

    def steers(self) -> None:
        """The message that came last is part of the running turn, whatever the lane's session is by now."""
        assert self.running is not None
        slot, session_id = self.waiting.pop(), self.running.session_id
        for one in slot.said:
            one.session_id, one.tries = session_id, one.tries + 1
        self.running.steered.append(slot)

    def ends(self, outcome: Outcome, now: datetime, *replies: str) -> None:
        """The running turn has ended like that."""
        slot, self.running = self.running, None
        assert slot is not None
        self._settle_turn(slot, outcome)
        self.replies += replies
        self._lines_up(now)

    def fails(self, now: datetime, *, notice: str = FAILED) -> None:
        """The turn is given up; what its agent was given on the way is next."""
        slot, self.running = self.running, None
        assert slot is not None
        self._settle(slot.said, Outcome.DEAD)
        self.dead += [slot] if slot.said else []
        self._wait_again(slot.steered, now)
        slot.steered = []
        self.replies.append(notice)
        self._lines_up(now)

    def is_overtaken(self, outcome: Outcome = Outcome.INTERRUPTED) -> None:
        """Somebody has stopped all that runs or waits."""
        if self.running is None and not self.waiting:
            return
        self._settle([one for slot in self.waiting for one in slot.said], Outcome.CANCELLED)
        self.waiting = []
        if self.running is not None:
            self._settle_turn(self.running, outcome)
            self.running = None

    def goes_back(self, ready_at: datetime) -> None:
        """The running turn waits again, in its old place; and behind it what its agent was given."""
        slot, self.running = self.running, None
        assert slot is not None
        self._wait_again([*([slot] if slot.said else []), *slot.steered], ready_at)
        slot.steered = []

    def starts_again(self, now: datetime, *, put_aside: bool) -> None:
        """Another gateway has begun: a turn that was cut off too long ago waits to be asked for."""
        slot = self.waiting[0] if self.waiting else None
        if slot is None or slot.cut_off_at is None or not slot.tries or self.freshness is None:
            assert not put_aside, "a turn was put aside that was not cut off"
            return
        # It was cut off then at the latest: nobody knows how long its process lived after it last wrote.
        assert put_aside or now - slot.cut_off_at <= self.freshness, "a turn is resumed that is too old"
        assert not put_aside or now - slot.begun_at > self.freshness, "a turn was put aside that is fresh"
        if not put_aside:
            return
        self.waiting.remove(slot)
        self._settle(slot.said, Outcome.DEAD)
        self.dead.append(slot)
        self.replies.append(CUT_OFF)
        slot.cut_off_at = None
        self._lines_up(now)

    def is_cut_off(self, limit: int, now: datetime, hold: datetime | None, died_at: datetime) -> None:
        """The process is gone in which a turn ran."""
        assert self.running is not None
        self.running.tries += 1
        if self.running.said and plan_recovery(self.running.tries, limit) is Recovery.SUSPEND:
            self.fails(now, notice=GIVEN_UP)
            self.suspended = True
        else:
            self.running.cut_off_at = died_at
            self.goes_back(hold or now)

    # What people change

    def changes(self, change: InboundMessage, said: Said, now: datetime) -> None:
        """A message was edited or deleted, wherever it is by now."""
        done = Said(seq=len(self.said) + 1, message=change, at=now, outcome=Outcome.APPLIED, is_change=True)
        self.said.append(done)
        said.changed_late |= self.running is not None and said in self.running.whole
        if change.kind is MessageKind.EDIT:
            said.former.append(said.message.text)
            said.message = said.message.with_text(change.text, said.message.attachments)
        else:
            said.deleted = True
            if said.outcome in (None, Outcome.DEAD):
                self._lose(said)
                said.outcome = Outcome.CANCELLED

    def _lose(self, said: Said) -> None:
        """It is part of no turn any more."""
        if self.running is not None and said in self.running.whole:
            for slot in (self.running, *self.running.steered):
                slot.said = [one for one in slot.said if one is not said]
            self.running.steered = [one for one in self.running.steered if one.said]
            return
        for slots in (self.waiting, self.dead):
            for slot in [one for one in slots if said in one.said]:
                slot.said.remove(said)
                if slot.said:
                    slot.first_at = slot.said[0].at
                    continue
                slots.remove(slot)

    # The queue

    def cancel(self, seq: int) -> int:
        """Take a waiting turn out; how many messages."""
        return len(self._take_out(seq, Outcome.CANCELLED).said)

    def move(self, seq: int, to: int) -> list[int]:
        """Let a turn begin as the *to*-th; the new order."""
        places = [one.place for one in self.waiting]
        self.waiting.insert(to - 1, self._take(seq))
        for slot, place in zip(self.waiting, places, strict=True):
            slot.place = place
        return [one.seqs[0] for one in self.waiting]

    def requeue(self, slot: Slot, now: datetime) -> None:
        """A dead letter waits again, behind all that waits."""
        self.dead.remove(slot)
        for one in slot.said:
            one.outcome = None
        slot.ready_at, slot.place, slot.tries = now, next(self._places), 0
        self.waiting.append(slot)

    def _take_out(self, seq: int, outcome: Outcome) -> Slot:
        """A turn does not wait any more."""
        slot = self._take(seq)
        self._settle(slot.said, outcome)
        return slot

    def _take(self, seq: int) -> Slot:
        slot = next(one for one in self.waiting if one.seqs[0] == seq)
        self.waiting.remove(slot)
        return slot

    def _lines_up(self, now: datetime) -> None:
        """What is next begins at once, unless it waits for more; not so what came later than now."""
        if self.waiting and not self.waiting[0].last_at <= now < self.waiting[0].ready_at:
            self.waiting[0].ready_at = now

    def _wait_again(self, slots: Iterable[Slot], ready_at: datetime) -> None:
        for one in slots:
            one.ready_at = ready_at
            self.waiting.append(one)
        self.waiting.sort(key=lambda one: one.place)

    def _settle_turn(self, slot: Slot, outcome: Outcome) -> None:
        self._settle(slot.whole, outcome)

    @staticmethod
    def _settle(messages: Iterable[Said], outcome: Outcome) -> None:
        for one in messages:
            assert one.outcome is None, "a message was settled twice"
            one.outcome = outcome


class Model:
    """All lanes of a gateway."""

    def __init__(
        self, names: Iterable[str], rules: BusyRules, limit: int, freshness: timedelta | None
    ) -> None:
        self.lanes = {name: Lane(rules, freshness) for name in names}
        self.limit = limit
        self.crashes = CrashLoopLimits()
        self._unclean: tuple[datetime, ...] = ()

    def pulls_forward(self, now: datetime) -> None:
        """The clock was ahead, and is set right: nothing waits for longer than a burst may pause."""
        for lane in self.lanes.values():
            for slot in lane.waiting:
                if slot.ready_at > now + lane.rules.debounce:
                    slot.ready_at = now

    def starts_unclean(self, now: datetime, died_at: datetime) -> None:
        """The process was killed, by then at the latest, and there is another one now."""
        self._unclean = recent_unclean_starts(self._unclean, now, self.crashes.window)
        hold = plan_crash_loop_hold(self._unclean, now, self.crashes)
        for lane in self.lanes.values():
            if lane.running is not None:
                lane.is_cut_off(self.limit, now, hold, died_at)

    def ends_in_order(self, now: datetime) -> None:
        """The process has ended without time for what ran: that was a try, and it waits again."""
        for lane in self.lanes.values():
            if lane.running is not None:
                lane.is_cut_off(self.limit, now, None, now)

    def starts(self, now: datetime, put_aside: Collection[tuple[str, int]]) -> None:
        """Another gateway has begun, and has put those messages aside: lanes, and places on them.

        Of what was accepted before it remembers what waits.
        """
        for name, lane in self.lanes.items():
            for said in lane.said:
                said.remembered = said.outcome is None
            first = lane.waiting[0].seqs[0] if lane.waiting else 0
            lane.starts_again(now, put_aside=(name, first) in put_aside)
