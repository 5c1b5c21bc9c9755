"""Messages that find a lane busy, and the least that a lane can be."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from gateway_sessions import SessionSource
from gateway_sessions.core.queue.busy_modes import (
    GROUP_PAUSE,
    Arrival,
    ArrivalPlan,
    BusyRules,
    Enqueue,
    LaneLoad,
    LastWaitingTurn,
    Merge,
    Refuse,
    plan_arrival,
)
from gateway_sessions.core.queue.inbound import Attachment, AttachmentKind, Disposition, InboundMessage
from gateway_sessions.core.sessions.busy_mode import BusyMode

AT: Final = datetime(2026, 6, 10, 12, tzinfo=UTC)
SECOND: Final = timedelta(seconds=1)
DEBOUNCE: Final = BusyRules().debounce
CAP: Final = BusyRules().debounce_cap
LATER: Final = timedelta(minutes=1)
EVERY: Final = [*BusyMode]


def arrival(sender: str = "alice", **others: Any) -> Arrival:
    return Arrival(**({"sender": sender, "at": AT, "characters": 5} | others))


def photo(sender: str = "alice", **others: Any) -> Arrival:
    return arrival(sender, **({"has_media": True, "has_text": False, "characters": 0} | others))


def waiting_slot(sender: str = "alice", ago: timedelta = DEBOUNCE, **others: Any) -> LastWaitingTurn:
    """The last waiting turn, said a moment ago."""
    known: dict[str, Any] = {"seq": 7, "characters": 5, "first_at": AT - ago, "last_at": AT - ago}
    return LastWaitingTurn(sender=sender, **(known | others))


def busy_lane_load(last: LastWaitingTurn | None = None, **others: Any) -> LaneLoad:
    """A lane on which a turn runs, and perhaps one waits."""
    return LaneLoad(**({"running": True, "waiting": 1 if last else 0, "last": last} | others))


def message(*kinds: AttachmentKind, text: str = "", **others: Any) -> InboundMessage:
    source = SessionSource(platform="telegram", chat_id="-9", chat_type="group", user_id="alice")
    attachments = tuple(Attachment(kind=kind) for kind in kinds)
    return InboundMessage(source=source, text=text, attachments=attachments, **others)


def plan_in_words(plan: ArrivalPlan) -> tuple[str, str | None]:
    """The plan in the words of the tables."""
    match plan:
        case Refuse():
            return plan.reason.value, None
        case Merge():
            return plan.then.value, "joins"
        case Enqueue():
            star = "*" if plan.demotion else ""
            return plan.then.value + star, None if plan.drop is None else "drops"


@dataclass
class Item:
    """A waiting turn: its messages, and what the plans know of it."""

    messages: list[int]
    ready_at: datetime
    waiting: LastWaitingTurn


class Lane:
    """The least that a lane can be: it carries plans out, and remembers what became of each message."""

    def __init__(self, rules: BusyRules, **facts: Any) -> None:
        self.rules = rules
        self.facts = facts
        self.items: list[Item] = []
        self.running: list[int] | None = None
        self.interrupted = False
        self.senders: dict[int, str] = {}
        self.turned: list[list[int]] = []
        self.steered: list[int] = []
        self.dropped: list[int] = []
        self.refused: list[int] = []

    @property
    def load(self) -> LaneLoad:
        oldest = next((item.waiting.seq for item in self.items if not item.waiting.solo), None)
        return LaneLoad(
            running=self.running is not None,
            stopping=self.interrupted,
            waiting=len(self.items),
            deferred=sum(item.waiting.solo for item in self.items),
            last=self.items[-1].waiting if self.items else None,
            oldest=oldest,
            **self.facts,
        )

    def send(self, one: Arrival) -> ArrivalPlan:
        number = len(self.senders) + 1
        self.senders[number] = one.sender
        plan = plan_arrival(one, self.load, self.rules)
        if isinstance(plan, Refuse):
            self.refused.append(number)
            return plan
        assert plan.ready_at <= one.at + max(self.rules.debounce, GROUP_PAUSE * one.grouped)
        if plan.then is Disposition.STEERS:
            assert self.running is not None
            assert all(item.waiting.solo for item in self.items), "it overtook somebody"
            self.steered.append(number)
            return plan
        if plan.then in {Disposition.INTERRUPTS, Disposition.ROLLS_BACK}:
            assert self.running is not None
            assert not self.interrupted, "one turn is ended once"
            self.interrupted = True
        if isinstance(plan, Merge):
            self._join(number, one, plan)
        else:
            self._enqueue(number, one, plan)
        return plan

    def _join(self, number: int, one: Arrival, plan: Merge) -> None:
        item = self.items[-1]
        assert item.waiting.seq == plan.into
        item.messages.append(number)
        item.ready_at = plan.ready_at
        item.waiting = replace(
            item.waiting,
            messages=len(item.messages),
            characters=item.waiting.characters + one.characters,
            last_at=one.at,
        )

    def _enqueue(self, number: int, one: Arrival, plan: Enqueue) -> None:
        if plan.drop is not None:
            (gone,) = (item for item in self.items if item.waiting.seq == plan.drop)
            self.items.remove(gone)
            self.dropped += gone.messages
        last = LastWaitingTurn(
            seq=number,
            sender=one.sender,
            solo=one.solo or one.internal,
            has_media=one.has_media,
            characters=one.characters,
            first_at=one.at,
            last_at=one.at,
        )
        self.items.append(Item([number], plan.ready_at, last))

    def finish(self) -> None:
        """The running turn ends."""
        if self.running is not None:
            self.turned.append(self.running)
        self.running, self.interrupted = None, False

    def start(self, now: datetime) -> None:
        """The first waiting turn begins, if it may."""
        if self.running is None and self.items and self.items[0].ready_at <= now:
            self.running = self.items.pop(0).messages

    def drain(self) -> list[list[int]]:
        """All that waits is answered; return what became one turn."""
        while self.items or self.running is not None:
            self.finish()
            self.start(AT + timedelta(days=1))
        return self.turned
