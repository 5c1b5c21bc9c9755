"""The plan of a message on a busy lane: it waits, merges, steers, interrupts, rolls back or is refused.

What becomes of a message that comes while its lane is busy.

It waits, joins a waiting turn, reaches the running one, ends it, takes it back, or is refused. What waits is
one queue for each lane. A message may join the last waiting turn only, and only if the same person wrote all
of it: so joining reorders nothing, and nobody's words become somebody else's. Everything else gets a turn of
its own at the end, or is refused and told so.

Which rules count for a conversation whose lane is busy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Final, TypeAlias

import msgspec

from gateway_sessions.core.checks import check_section, choice, count, time
from gateway_sessions.core.queue.inbound import AttachmentKind, InboundMessage
from gateway_sessions.core.queue.receipts import Disposition, RejectReason
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.errors import InvalidInputError

BUSY_RETRY_SECONDS: Final = 5.0
FULL_RETRY_SECONDS: Final = 30.0
"""After how long it makes sense to try again. How long turns take is not known here."""

_NOW: Final = timedelta(0)


class DropPolicy(StrEnum):
    """Who has to go when a queue is full."""

    REJECT_NEW = "reject_new"  # the newcomer
    DROP_OLDEST = "drop_oldest"  # the turn that has waited longest and was not asked for with /queue


class Demotion(StrEnum):
    """Why a message only waits although the mode asks for more."""

    SUB_WORK = "sub_work"  # the running turn has work under way that must not be cut off
    CANNOT_STEER = "cannot_steer"  # the running turn takes no messages, or others wait already


def check_mode(mode: str) -> BusyMode:
    """The mode of that name, or `InvalidInputError` with those that there are."""
    try:
        return BusyMode(mode)
    except ValueError:
        problem = f"there is no busy mode {mode!r}: it is one of {', '.join(BusyMode)}"
        raise InvalidInputError(problem) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class BusyRules:
    """How a lane deals with messages that come while it is busy."""

    mode: BusyMode = BusyMode.QUEUE
    """What a message does: `queue` (it waits for its turn), `collect` (all that one person says until then
    is one turn), `steer` (the running turn gets it), `interrupt` (it ends the running turn), `rollback` (that
    turn is taken back) or `reject` (it is refused)."""
    debounce: timedelta = timedelta(seconds=0.35)
    """How long a burst may pause; what one person says in a burst is one turn. Zero: there are no bursts."""
    debounce_cap: timedelta = timedelta(seconds=1)
    """How long a burst may take from its first message on, not less than the pause."""
    max_queued: int = 32
    """How many turns may wait on a lane, and how many commands of one owner may be under way (at least 8)."""
    drop: DropPolicy = DropPolicy.REJECT_NEW
    """Who has to go when so many wait: the newcomer, or the turn that has waited longest and was not asked
    for with `/queue`. Whoever it is, is told."""
    merge_limit: int = 20
    """How many messages one turn may hold."""
    merge_chars: int = 32_000
    """How long the text of joined messages may be, all together."""
    acknowledge: bool = True
    """People are told what becomes of a message that waits."""
    ack_cooldown: timedelta = timedelta(seconds=30)
    """How long a lane is told nothing more after that."""

    def in_mode(self, mode: BusyMode | None) -> BusyRules:
        """The same rules with that mode; None: with their own."""
        return self if mode is None or mode is self.mode else replace(self, mode=mode)

    def __post_init__(self) -> None:
        pause = time("debounce_seconds", self.debounce, zero=True)
        length = time("debounce_cap_seconds", self.debounce_cap, zero=True)
        if not (pause or length) and self.debounce_cap < self.debounce:
            length = ("debounce_cap_seconds", "must not be less than debounce_seconds")
        check_section(
            "busy",
            choice("mode", self.mode, BusyMode),
            pause,
            length,
            count("max_queued", self.max_queued),
            choice("drop", self.drop, DropPolicy),
            count("merge_limit", self.merge_limit),
            count("merge_chars", self.merge_chars),
            time("ack_cooldown_seconds", self.ack_cooldown, zero=True),
        )
        object.__setattr__(self, "mode", BusyMode(self.mode))
        object.__setattr__(self, "drop", DropPolicy(self.drop))


@dataclass(frozen=True, slots=True, kw_only=True)
class LastWaitingTurn:
    """The last of the turns that wait on a lane: the only one that a message may join."""

    seq: int
    sender: str
    """Who wrote all of it; empty: nobody knows."""
    solo: bool = False
    """Whether nothing may join it: it was asked for with /queue, or the program said it."""
    has_media: bool = False
    has_text: bool = True
    messages: int = 1
    characters: int = 0
    first_at: datetime
    last_at: datetime


class LaneLoad(msgspec.Struct, frozen=True, kw_only=True):
    """What a message finds on its lane."""

    running: bool = False
    can_steer: bool = False
    """Whether the running turn takes messages."""
    sub_work: bool = False
    """Whether the running turn has work of others under way, which is not to be cut off."""
    stopping: bool = False
    """Whether the running turn was told to end already: nothing needs to end it again."""
    steered: int = 0
    """How many messages the running turn was given."""
    waiting: int = 0
    """How many turns wait."""
    deferred: int = 0
    """How many of them were asked for with /queue; only past those may the running turn be steered."""
    last: LastWaitingTurn | None = None
    """The last of them; None: none waits, or it is not to be joined."""
    oldest: int | None = None
    """The oldest of them that may be dropped."""


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """What of a message decides on its way."""

    sender: str
    """Who wrote it; empty: nobody knows, and it joins nothing."""
    at: datetime
    solo: bool = False
    """Whether it was asked for with /queue: it waits, gets a turn of its own, and disturbs nothing."""
    has_media: bool = False
    """Whether something came with it that may come in a burst: anything but speech."""
    has_text: bool = True
    """Whether a person said something with it, in writing or aloud."""
    characters: int = 0
    internal: bool = False
    """Whether the program said it: it joins nothing and disturbs nothing."""

    @classmethod
    def of(
        cls, message: InboundMessage, *, at: datetime, sender: str | None = None, solo: bool = False
    ) -> Arrival:
        """What decides on the way of this message."""
        kinds = {attachment.kind for attachment in message.attachments}
        return cls(
            sender=message.sender if sender is None else sender,
            at=at,
            solo=solo,
            has_media=not kinds <= {AttachmentKind.VOICE},
            has_text=bool(message.text.strip()) or AttachmentKind.VOICE in kinds,
            characters=len(message.text),
            internal=message.internal,
        )


class Enqueue(msgspec.Struct, frozen=True, kw_only=True):
    """It gets a turn of its own, behind all that wait; or the running turn gets it, if *then* is STEERS."""

    ready_at: datetime
    """Before this its turn does not begin, as more may come that belongs to it."""
    then: Disposition
    drop: int | None = None
    """The waiting turn that makes room for it."""
    demotion: Demotion | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """It joins the last waiting turn."""

    into: int
    ready_at: datetime
    """Before this that turn does not begin any more, as more may come that belongs to it."""
    then: Disposition = Disposition.MERGED
    """INTERRUPTS and ROLLS_BACK: the running turn ends all the same."""
    demotion: Demotion | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """Nothing of it is kept, and whoever sent it is told."""

    reason: RejectReason
    retry_after: float
    """Seconds."""


BUSY: Final = Refuse(reason=RejectReason.BUSY, retry_after=BUSY_RETRY_SECONDS)
"""A turn runs or waits on the lane, and its rules have no message wait."""
FULL: Final = Refuse(reason=RejectReason.QUEUE_FULL, retry_after=FULL_RETRY_SECONDS)
"""As many turns wait on the lane as may."""

ArrivalPlan: TypeAlias = Enqueue | Merge | Refuse


def plan_arrival(arrival: Arrival, load: LaneLoad, rules: BusyRules) -> ArrivalPlan:
    """Decide what becomes of a message."""
    wanted = _wanted(arrival, load, rules)
    demotion = _demotion(wanted, load, rules)
    effect = None if demotion else wanted
    if effect is Disposition.STEERS:
        return Enqueue(ready_at=arrival.at, then=effect)
    rejects = _rejects(arrival, rules)
    if load.last is not None and _joins(arrival, load.last, rules) and not (rejects and load.running):
        ready_at = min(arrival.at + rules.debounce, load.last.first_at + rules.debounce_cap)
        then = effect or Disposition.MERGED
        return Merge(into=load.last.seq, ready_at=ready_at, then=then, demotion=demotion)
    busy = load.running or load.waiting > 0
    if rejects and busy:
        return BUSY
    drop = None
    if load.waiting >= rules.max_queued:
        # What the program says never costs a person their message.
        drop = load.oldest if rules.drop is DropPolicy.DROP_OLDEST and not arrival.internal else None
        if drop is None:
            return FULL
    then = effect or (Disposition.QUEUED if busy else Disposition.STARTS)
    return Enqueue(ready_at=_ready_at(arrival, effect, rules), then=then, drop=drop, demotion=demotion)


def refusal_by_count(arrival: Arrival, waiting: int, rules: BusyRules, *, can_steer: bool) -> Refuse | None:
    """Return why a message is refused where so many turns wait, whatever else is true of the lane.

    None: only a look at the lane can tell, also of some messages that it refuses.
    """
    bursts = rules.mode is BusyMode.COLLECT or rules.debounce > _NOW
    joins = bursts and arrival.sender and not arrival.solo and not arrival.internal
    if joins:
        return None
    if waiting and _rejects(arrival, rules):
        return BUSY
    steers = rules.mode is BusyMode.STEER and can_steer
    drops = rules.drop is DropPolicy.DROP_OLDEST and not arrival.internal
    return None if waiting < rules.max_queued or steers or drops else FULL


def _rejects(arrival: Arrival, rules: BusyRules) -> bool:
    """Tell whether a busy lane refuses the message."""
    return rules.mode is BusyMode.REJECT and not (arrival.solo or arrival.internal)


def _wanted(arrival: Arrival, load: LaneLoad, rules: BusyRules) -> Disposition | None:
    """What the mode asks a message to do to the running turn.

    Pictures and files come in bursts, with words before or after them, and so wait for the rest.
    """
    said = arrival.has_text and not arrival.has_media
    if not said or arrival.solo or arrival.internal or not load.running or load.stopping:
        return None
    return _EFFECTS.get(rules.mode)


_EFFECTS: Final = MappingProxyType(
    {
        BusyMode.STEER: Disposition.STEERS,
        BusyMode.INTERRUPT: Disposition.INTERRUPTS,
        BusyMode.ROLLBACK: Disposition.ROLLS_BACK,
    }
)


def _demotion(wanted: Disposition | None, load: LaneLoad, rules: BusyRules) -> Demotion | None:
    if wanted is None:
        return None
    if wanted is not Disposition.STEERS:
        return Demotion.SUB_WORK if load.sub_work else None
    # What waits was said before: the running turn is not to hear the later words first.
    possible = load.can_steer and load.waiting <= load.deferred and load.steered < rules.max_queued
    return None if possible else Demotion.CANNOT_STEER


def _joins(arrival: Arrival, last: LastWaitingTurn, rules: BusyRules) -> bool:
    """Whether a message becomes part of the last waiting turn."""
    alone = arrival.solo or arrival.internal or last.solo
    if alone or not arrival.sender or arrival.sender != last.sender:
        return False
    if last.messages >= rules.merge_limit or last.characters + arrival.characters > rules.merge_chars:
        return False
    return rules.mode is BusyMode.COLLECT or _continues_burst(arrival.at, last, rules)


def _continues_burst(at: datetime, last: LastWaitingTurn, rules: BusyRules) -> bool:
    """Whether it is close enough to what was said before, on a clock that may have been set back since."""
    pause, length = abs(at - last.last_at), abs(at - last.first_at)
    return rules.debounce > _NOW and pause <= rules.debounce and length <= rules.debounce_cap


def _ready_at(arrival: Arrival, effect: Disposition | None, rules: BusyRules) -> datetime:
    """When a new turn may begin: at once, or when the rest of a burst has had the time to come.

    A message that ends the running turn waits as well: else the next part of the same thought would end the
    turn that this one begins, and so on.
    """
    if arrival.solo or arrival.internal:
        return arrival.at
    waits = rules.mode is BusyMode.COLLECT or arrival.has_media or effect is not None
    return arrival.at + rules.debounce if waits else arrival.at


def acknowledge_due(last_ack_at: datetime | None, now: datetime, rules: BusyRules) -> bool:
    """Whether a lane may be told what becomes of a message, after it was last told such a thing."""
    if not rules.acknowledge:
        return False
    return last_ack_at is None or not _NOW <= now - last_ack_at < rules.ack_cooldown


@dataclass(frozen=True, slots=True, kw_only=True)
class BusyBook:
    """All rules of a configuration for busy lanes."""

    default: BusyRules = field(default_factory=BusyRules)
    by_platform: Mapping[str, BusyRules] = field(default_factory=dict[str, BusyRules])
    by_chat_type: Mapping[tuple[str, str], BusyRules] = field(
        default_factory=dict[tuple[str, str], BusyRules]
    )
    """By platform and chat type."""

    def __post_init__(self) -> None:
        platforms = {_platform(name): rules for name, rules in self.by_platform.items()}
        chat_types = {(_platform(name), kind): rules for (name, kind), rules in self.by_chat_type.items()}
        object.__setattr__(self, "by_platform", MappingProxyType(platforms))
        object.__setattr__(self, "by_chat_type", MappingProxyType(chat_types))

    @property
    def longest_debounce(self) -> timedelta:
        """How long a burst may pause where it may pause longest."""
        rules = (self.default, *self.by_platform.values(), *self.by_chat_type.values())
        return max(one.debounce for one in rules)

    def rules_for(
        self, platform: str | None, chat_type: str, override: BusyRules | BusyMode | None = None
    ) -> BusyRules:
        """The rules that count: the session's own, else the chat type's, the platform's, the default.

        A session that has only a mode of its own takes all else from the rules that it would have.
        """
        if isinstance(override, BusyRules):
            return override
        name = platform or ""
        rules = self.by_chat_type.get((name, chat_type)) or self.by_platform.get(name) or self.default
        return rules.in_mode(override)


def _platform(name: str) -> str:
    """A name of a platform as message sources write it."""
    return name.strip().lower()
