"""The plan of a message on a busy lane: it waits, merges, steers, interrupts, rolls back or is refused.

Waiting messages form one queue for each lane. A message may join the last waiting turn only, and only if the
same person wrote all of that turn: so joining reorders nothing, and no message is attributed to another
person. Every other message gets a turn of its own at the end of the queue, or is refused with a receipt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Final, TypeAlias

import msgspec

from gateway_sessions.core.checks import check_section, choice_problem, count_problem, duration_problem
from gateway_sessions.core.queue.inbound import AttachmentKind, Disposition, InboundMessage, RejectReason
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.errors import InvalidInputError

BUSY_RETRY_SECONDS: Final = 5.0
FULL_RETRY_SECONDS: Final = 30.0
"""The seconds after which a refused message may be tried again: a guess, as no turn tells how long it takes.
"""

GROUP_PAUSE: Final = timedelta(seconds=1.5)
"""The longest pause between two messages of one album: platforms were seen to take 0.6 s."""
GROUP_LENGTH: Final = timedelta(seconds=10)
"""The longest time that the first message of an album waits for the others: an album has ten at most."""

_NO_TIME: Final = timedelta(0)


class DropPolicy(StrEnum):
    """The message that is given up when a queue is full."""

    REJECT_NEW = "reject_new"  # the newcomer
    DROP_OLDEST = "drop_oldest"  # the turn that has waited longest and was not asked for with /queue


class Demotion(StrEnum):
    """The reason why a message only waits although the busy mode asks for more."""

    SUB_WORK = "sub_work"  # the running turn has work under way that must not be cut off
    CANNOT_STEER = "cannot_steer"  # the running turn takes no messages, or others wait already


def check_mode(mode: str) -> BusyMode:
    """Return the busy mode of that name, or raise `InvalidInputError` with the names that exist."""
    try:
        return BusyMode(mode)
    except ValueError:
        problem = f"there is no busy mode {mode!r}: it is one of {', '.join(BusyMode)}"
        raise InvalidInputError(problem) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class BusyRules:
    """The rules for messages that come while their lane is busy."""

    mode: BusyMode = BusyMode.QUEUE
    """The effect of a message on a busy lane: `queue` (it waits for its turn), `collect` (all messages of one
    person until then are one turn), `steer` (the running turn gets it), `interrupt` (it ends the running
    turn), `rollback` (that turn is taken back) or `reject` (it is refused)."""
    debounce: timedelta = timedelta(seconds=0.35)
    """The longest pause within a burst; the messages of one person in a burst are one turn. Zero: there are
    no bursts."""
    debounce_cap: timedelta = timedelta(seconds=1)
    """The longest duration of a burst from its first message on, not less than the pause."""
    max_queued: int = 32
    """The number of turns that may wait on a lane, and of commands of one owner that may be under way (at
    least 8)."""
    drop: DropPolicy = DropPolicy.REJECT_NEW
    """The message that is given up when so many wait: the new one, or the turn that has waited longest and
    was not asked for with `/queue`. Its sender is told."""
    merge_limit: int = 20
    """The number of messages that one turn may hold."""
    merge_chars: int = 32_000
    """The characters that the text of joined messages may have, all together."""
    acknowledge: bool = True
    """Whether people are told what becomes of a message that waits."""
    ack_cooldown: timedelta = timedelta(seconds=30)
    """The time after such a notice in which a lane gets no further one."""

    def in_mode(self, mode: BusyMode | None) -> BusyRules:
        """Return the same rules in another mode; None keeps the mode."""
        return self if mode is None or mode is self.mode else replace(self, mode=mode)

    def __post_init__(self) -> None:
        pause = duration_problem("debounce_seconds", self.debounce, zero=True)
        length = duration_problem("debounce_cap_seconds", self.debounce_cap, zero=True)
        if not (pause or length) and self.debounce_cap < self.debounce:
            length = ("debounce_cap_seconds", "must not be less than debounce_seconds")
        check_section(
            "busy",
            choice_problem("mode", self.mode, BusyMode),
            pause,
            length,
            count_problem("max_queued", self.max_queued),
            choice_problem("drop", self.drop, DropPolicy),
            count_problem("merge_limit", self.merge_limit),
            count_problem("merge_chars", self.merge_chars),
            duration_problem("ack_cooldown_seconds", self.ack_cooldown, zero=True),
        )
        object.__setattr__(self, "mode", BusyMode(self.mode))
        object.__setattr__(self, "drop", DropPolicy(self.drop))


@dataclass(frozen=True, slots=True, kw_only=True)
class LastWaitingTurn:
    """The last turn that waits on a lane: the only turn that a message may join."""

    seq: int
    sender: str
    """The place of the message that leads the turn."""
    """The author of all messages of the turn; empty: unknown."""
    solo: bool = False
    """Whether no message may join the turn: a person asked for it with `/queue`, or the program said it."""
    has_media: bool = False
    has_text: bool = True
    messages: int = 1
    characters: int = 0
    first_at: datetime
    last_at: datetime


class LaneLoad(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a lane when a message comes."""

    running: bool = False
    can_steer: bool = False
    """Whether the running turn takes messages."""
    sub_work: bool = False
    """Whether the running turn has other work under way, such as sub-agents, that must not be cut off."""
    stopping: bool = False
    """Whether the running turn was asked to end already: no message needs to end it again."""
    steered: int = 0
    """The number of messages that were steered into the running turn."""
    waiting: int = 0
    """The number of turns that wait."""
    deferred: int = 0
    """The number of waiting turns that people asked for with `/queue`; a steered message may pass only these.
    """
    last: LastWaitingTurn | None = None
    """The last waiting turn; None: no turn waits, or no message may join that turn."""
    oldest: int | None = None
    """The place of the oldest waiting turn that may be dropped."""


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of a message that decide what becomes of it."""

    sender: str
    """The author of the message; empty: unknown, so that the message joins no turn."""
    at: datetime
    solo: bool = False
    """Whether a person asked with `/queue` for a turn of its own: the message waits and disturbs nothing."""
    has_media: bool = False
    """Whether the message has attachments that may come in a burst: all kinds but voice."""
    has_text: bool = True
    """Whether a person said something in the message, in writing or aloud."""
    characters: int = 0
    internal: bool = False
    """Whether the program said it: the message joins no turn and disturbs nothing."""
    grouped: bool = False
    """Whether the message is part of an album, whose other parts come before or after it."""

    @classmethod
    def of(
        cls, message: InboundMessage, *, at: datetime, sender: str | None = None, solo: bool = False
    ) -> Arrival:
        """Return the deciding facts of this message."""
        kinds = {attachment.kind for attachment in message.attachments}
        return cls(
            sender=message.sender if sender is None else sender,
            at=at,
            solo=solo,
            has_media=not kinds <= {AttachmentKind.VOICE},
            has_text=bool(message.text.strip()) or AttachmentKind.VOICE in kinds,
            characters=len(message.text),
            internal=message.internal,
            grouped=message.group_id is not None,
        )


class Enqueue(msgspec.Struct, frozen=True, kw_only=True):
    """The message gets a turn of its own; if *then* is STEERS, the running turn takes the message instead."""

    ready_at: datetime
    """The earliest begin of the turn, since more messages of its burst may come until then."""
    then: Disposition
    drop: int | None = None
    """The waiting turn that is dropped to make room."""
    demotion: Demotion | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """The message joins the last waiting turn."""

    into: int
    ready_at: datetime
    """The new earliest begin of that turn, since more messages of its burst may come until then."""
    then: Disposition = Disposition.MERGED
    """The effect on the running turn: INTERRUPTS and ROLLS_BACK end the running turn although the message
    waits."""
    demotion: Demotion | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """The message is refused: nothing of it is kept, and its sender is told."""

    reason: RejectReason
    retry_after: float
    """The seconds after which another try makes sense."""


BUSY: Final = Refuse(reason=RejectReason.BUSY, retry_after=BUSY_RETRY_SECONDS)
"""The refusal of a message on a busy lane whose busy mode is `reject`."""
FULL: Final = Refuse(reason=RejectReason.QUEUE_FULL, retry_after=FULL_RETRY_SECONDS)
"""The refusal of a message on a lane where the permitted number of turns waits."""

ArrivalPlan: TypeAlias = Enqueue | Merge | Refuse


def plan_arrival(arrival: Arrival, load: LaneLoad, rules: BusyRules) -> ArrivalPlan:
    """Decide what becomes of a message."""
    desired = _effect_of_mode(arrival, load, rules)
    demotion = _demotion(desired, load, rules)
    effect = None if demotion else desired
    if effect is Disposition.STEERS:
        return Enqueue(ready_at=arrival.at, then=effect)
    rejects = _is_rejected_when_busy(arrival, rules)
    if (
        load.last is not None
        and _joins_last_turn(arrival, load.last, rules)
        and not (rejects and load.running)
    ):
        pause, length = _burst_limits(arrival, rules)
        ready_at = min(arrival.at + pause, load.last.first_at + length)
        then = effect or Disposition.MERGED
        return Merge(into=load.last.seq, ready_at=ready_at, then=then, demotion=demotion)
    busy = load.running or load.waiting > 0
    if rejects and busy:
        return BUSY
    drop = None
    if load.waiting >= rules.max_queued:
        # A message of the program never takes the place of a person's message.
        drop = load.oldest if rules.drop is DropPolicy.DROP_OLDEST and not arrival.internal else None
        if drop is None:
            return FULL
    then = effect or (Disposition.QUEUED if busy else Disposition.STARTS)
    return Enqueue(ready_at=_ready_at(arrival, effect, rules), then=then, drop=drop, demotion=demotion)


def refuse_by_count(arrival: Arrival, waiting: int, rules: BusyRules, *, can_steer: bool) -> Refuse | None:
    """Return the refusal that the number of waiting turns alone decides.

    None: the state of the lane must be read, even for some messages that are refused then.
    """
    bursts = rules.mode is BusyMode.COLLECT or rules.debounce > _NO_TIME or arrival.grouped
    joins = bursts and arrival.sender and not arrival.solo and not arrival.internal
    if joins:
        return None
    if waiting and _is_rejected_when_busy(arrival, rules):
        return BUSY
    steers = rules.mode is BusyMode.STEER and can_steer
    drops = rules.drop is DropPolicy.DROP_OLDEST and not arrival.internal
    return None if waiting < rules.max_queued or steers or drops else FULL


def _is_rejected_when_busy(arrival: Arrival, rules: BusyRules) -> bool:
    """Return whether a busy lane refuses the message."""
    return rules.mode is BusyMode.REJECT and not (arrival.solo or arrival.internal)


def _effect_of_mode(arrival: Arrival, load: LaneLoad, rules: BusyRules) -> Disposition | None:
    """Return the effect on the running turn that the busy mode asks for.

    Pictures and files come in bursts, with words before or after them, and so wait for the rest of the burst.
    """
    has_words = arrival.has_text and not arrival.has_media
    if not has_words or arrival.solo or arrival.internal or not load.running or load.stopping:
        return None
    return _EFFECTS.get(rules.mode)


_EFFECTS: Final = MappingProxyType(
    {
        BusyMode.STEER: Disposition.STEERS,
        BusyMode.INTERRUPT: Disposition.INTERRUPTS,
        BusyMode.ROLLBACK: Disposition.ROLLS_BACK,
    }
)


def _demotion(desired: Disposition | None, load: LaneLoad, rules: BusyRules) -> Demotion | None:
    if desired is None:
        return None
    if desired is not Disposition.STEERS:
        return Demotion.SUB_WORK if load.sub_work else None
    # Waiting messages are older: the running turn must not get the later message first.
    possible = load.can_steer and load.waiting <= load.deferred and load.steered < rules.max_queued
    return None if possible else Demotion.CANNOT_STEER


def _joins_last_turn(arrival: Arrival, last: LastWaitingTurn, rules: BusyRules) -> bool:
    """Return whether a message becomes part of the last waiting turn."""
    alone = arrival.solo or arrival.internal or last.solo
    if alone or not arrival.sender or arrival.sender != last.sender:
        return False
    if last.messages >= rules.merge_limit or last.characters + arrival.characters > rules.merge_chars:
        return False
    return rules.mode is BusyMode.COLLECT or _continues_burst(arrival, last, rules)


def _continues_burst(arrival: Arrival, last: LastWaitingTurn, rules: BusyRules) -> bool:
    """Return whether a message belongs to the burst of the turn.

    The distances are absolute, because the clock may have been set back in between.
    """
    pause, length = abs(arrival.at - last.last_at), abs(arrival.at - last.first_at)
    longest_pause, longest = _burst_limits(arrival, rules) if last.has_media else _rules_alone(rules)
    return longest_pause > _NO_TIME and pause <= longest_pause and length <= longest


def _burst_limits(arrival: Arrival, rules: BusyRules) -> tuple[timedelta, timedelta]:
    """Return the longest pause within a burst, and the longest burst: for an album its platform's time."""
    pause, length = _rules_alone(rules)
    return (max(pause, GROUP_PAUSE), max(length, GROUP_LENGTH)) if arrival.grouped else (pause, length)


def _rules_alone(rules: BusyRules) -> tuple[timedelta, timedelta]:
    return rules.debounce, rules.debounce_cap


def _ready_at(arrival: Arrival, effect: Disposition | None, rules: BusyRules) -> datetime:
    """Return the earliest begin of a new turn: at once, or when the rest of its burst has had time to come.

    A message that ends the running turn waits as well: without the pause, the next message of the same burst
    would end the turn that this message begins, and so on.
    """
    if arrival.solo or arrival.internal:
        return arrival.at
    waits = rules.mode is BusyMode.COLLECT or arrival.has_media or effect is not None
    return arrival.at + _burst_limits(arrival, rules)[0] if waits or arrival.grouped else arrival.at


def is_acknowledgement_due(last_ack_at: datetime | None, now: datetime, rules: BusyRules) -> bool:
    """Return whether a lane may be told what becomes of a message, given when the lane was told last."""
    if not rules.acknowledge:
        return False
    return last_ack_at is None or not _NO_TIME <= now - last_ack_at < rules.ack_cooldown


@dataclass(frozen=True, slots=True, kw_only=True)
class BusyBook:
    """All rules of a configuration for busy lanes."""

    default: BusyRules = field(default_factory=BusyRules)
    by_platform: Mapping[str, BusyRules] = field(default_factory=dict[str, BusyRules])
    by_chat_type: Mapping[tuple[str, str], BusyRules] = field(
        default_factory=dict[tuple[str, str], BusyRules]
    )
    """The rules by platform and chat type."""

    def __post_init__(self) -> None:
        platforms = {_platform_name(name): rules for name, rules in self.by_platform.items()}
        chat_types = {
            (_platform_name(name), kind): rules for (name, kind), rules in self.by_chat_type.items()
        }
        object.__setattr__(self, "by_platform", MappingProxyType(platforms))
        object.__setattr__(self, "by_chat_type", MappingProxyType(chat_types))

    @property
    def longest_debounce(self) -> timedelta:
        """The longest pause within a burst that any of the rules allows."""
        rules = (self.default, *self.by_platform.values(), *self.by_chat_type.values())
        return max(rule.debounce for rule in rules)

    def rules_for(
        self, platform: str | None, chat_type: str, override: BusyRules | BusyMode | None = None
    ) -> BusyRules:
        """Return the rules that apply: the session's own, else the chat type's, the platform's, the default.

        A session that has only a mode of its own takes everything else from the rules that apply without it.
        """
        if isinstance(override, BusyRules):
            return override
        name = platform or ""
        rules = self.by_chat_type.get((name, chat_type)) or self.by_platform.get(name) or self.default
        return rules.in_mode(override)


def _platform_name(name: str) -> str:
    """Return the name of a platform as message sources spell it."""
    return name.strip().lower()
