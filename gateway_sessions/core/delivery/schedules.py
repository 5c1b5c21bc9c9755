"""Schedules: what the gateway says or begins by itself, when, and what becomes of missed times.

A schedule waits for one time, then for the next one, or is done. Its times are wall times of a zone: each of
them happens at most once, whatever daylight saving time or a corrected clock does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, TypeAlias

import msgspec

from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.core.queue.inbound import InboundMessage
from gateway_sessions.core.sessions.reset_times import check_cron, next_cron_boundary, zone_named
from gateway_sessions.errors import InvalidInputError

SAID_ONCE: Final = "say:"
"""The beginning of the names of messages that are said once; no schedule of a program begins with it."""
MAX_NAME: Final = 200
"""The longest name of a schedule, in characters: every database can index four times as many bytes."""
LATE: Final = timedelta(minutes=1)
"""A time that is this long past was missed: no gateway was there when it came."""


class MissedTimes(StrEnum):
    """What becomes of times that came while no gateway ran."""

    RUN_ONCE = "run_once"  # one run stands for all of them
    SKIP = "skip"  # none of them is made up for


class ScheduleState(StrEnum):
    """The state of a schedule."""

    WAITING = "waiting"  # it runs at its next time
    PAUSED = "paused"  # it has no next time until somebody lets it go on
    DONE = "done"  # all of it was done; its name is remembered for a while


class ScheduleKind(StrEnum):
    """What a schedule does when its time comes."""

    SAY = "say"  # it says something
    TURN = "turn"  # it begins a turn


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """The times of a schedule that comes again and again."""

    cron: str
    """Minute, hour, day, month and weekday, as in cron."""
    zone: str
    """The IANA name of the zone whose wall clock is meant."""
    missed: MissedTimes = MissedTimes.RUN_ONCE
    """What becomes of times that came while no gateway ran."""

    def check(self) -> None:
        """Raise `InvalidPolicyError` for an expression or a zone that means nothing."""
        check_cron(self.cron)
        zone_named(self.zone)

    def next_after(self, instant: datetime) -> datetime | None:
        """Return the first time strictly after an instant; None beyond the calendar."""
        try:
            return next_cron_boundary(instant, self.cron, zone_named(self.zone))
        except OverflowError:
            return None


class SayTask(msgspec.Struct, frozen=True, kw_only=True):
    """Something to say, and where."""

    target: ReplyTarget
    """The place of the message."""
    message: OutboundMessage


class TurnTask(msgspec.Struct, frozen=True, kw_only=True):
    """A turn to begin: the message that the agent answers."""

    message: InboundMessage


ScheduledTask: TypeAlias = SayTask | TurnTask


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A schedule, as programs and operators see it."""

    name: str
    """The name by which it is known: there is one schedule of a name."""
    kind: ScheduleKind
    """Whether it says something or begins a turn."""
    session_key: str
    """The lane on which it speaks."""
    owner: str
    platform: str
    account: str
    task: ScheduledTask | None
    """What it does; None: all of it was done, or it cannot be read."""
    timing: Timing | None
    """Its times; None: it runs once."""
    state: ScheduleState
    due_at: datetime | None
    """Its next time; None: it has none."""
    last_at: datetime | None = None
    """When it came to its time last."""
    runs: int = 0
    """How often it has run."""
    version: int = 1
    created_at: datetime
    problem: str | None = None
    """Why it does not go on, if it does not."""

    @property
    def task_at_account(self) -> ScheduledTask | None:
        """The task as the account that the schedule belongs to, which may have got its name since."""
        if not self.account:
            return self.task
        match self.task:
            case SayTask(target=target) if not target.account:
                return msgspec.structs.replace(
                    self.task, target=msgspec.structs.replace(target, account=self.account)
                )
            case TurnTask(message=message) if not message.account:
                source = replace(message.source, account=self.account)
                named = msgspec.structs.replace(message, source=source, account=self.account)
                return msgspec.structs.replace(self.task, message=named)
            case _:
                return self.task

    @property
    def text(self) -> str:
        """What it says, or what the agent is told."""
        return "" if self.task is None else self.task.message.text


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What becomes of a schedule whose time has come."""

    runs: bool
    """Whether it runs now; False: the time was missed and is not made up for."""
    next_at: datetime | None
    """The next time; None: it is done."""


def plan_run(due_at: datetime, timing: Timing | None, now: datetime) -> RunPlan:
    """Return whether a schedule that was due runs now, and its next time.

    The next time lies after the one that was due, also if the clock was set back since: no time comes twice.
    """
    if timing is None:
        return RunPlan(runs=True, next_at=None)
    missed = now - due_at > LATE
    runs = not missed or timing.missed is MissedTimes.RUN_ONCE
    return RunPlan(runs=runs, next_at=timing.next_after(max(due_at, now)))


def check_schedule_name(name: object) -> str:
    """Return the name of a schedule, or raise `InvalidInputError`."""
    if not isinstance(name, str) or not name.strip() or len(name) > MAX_NAME or not name.isprintable():
        problem = (
            f"the name of a schedule must be 1 to {MAX_NAME} printable characters, not {str(name)[:40]!r}"
        )
        raise InvalidInputError(problem)
    if name.startswith(SAID_ONCE):
        problem = f"the name of a schedule must not begin with {SAID_ONCE!r}: such names are of messages"
        raise InvalidInputError(problem)
    return name


def name_of_said(key: str) -> str:
    """Return the name under which a message with this idempotency key is known."""
    if not key or len(key) > MAX_NAME or not key.isprintable():
        problem = f"idempotency_key must be 1 to {MAX_NAME} printable characters, not {key[:40]!r}"
        raise InvalidInputError(problem)
    return f"{SAID_ONCE}{key}"
