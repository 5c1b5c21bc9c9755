"""`Schedules`: what the gateway says or begins by itself, added by name and run when its time comes.

Every node with a gateway looks for schedules whose time has come; the leading node first. Whoever sets the
next time of a schedule has run it: the row is compared and set, so that no time is run twice.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import msgspec

from gateway_sessions._process.failpoints import failpoint
from gateway_sessions.core.checks import check_value
from gateway_sessions.core.delivery.schedules import (
    MissedTimes,
    RunPlan,
    SayTask,
    Schedule,
    ScheduledTask,
    ScheduleKind,
    ScheduleState,
    Timing,
    TurnTask,
    check_schedule_name,
    plan_run,
)
from gateway_sessions.core.queue.inbound import OWN_IDS, InboundMessage, Receipt, Rejected
from gateway_sessions.core.storable_text import check_choice
from gateway_sessions.errors import GatewaySessionsError, InvalidInputError
from gateway_sessions.ports import Clock, SkippingClock
from gateway_sessions.runtime.alarm import NEVER, Alarm
from gateway_sessions.runtime.duties.cluster import Cluster
from gateway_sessions.runtime.duty import repeat_sweep
from gateway_sessions.runtime.gateway.unprompted.speaking import Place, Speaker, Target, Words, message_of
from gateway_sessions.runtime.observability.event_stream import EventKind, Events
from gateway_sessions.runtime.queue.queue_operations import QueueOperations
from gateway_sessions.storage.files.threads import in_thread
from gateway_sessions.storage.transactions.queue import schedules as transactions

logger: Final = logging.getLogger(__name__)

LOOK: Final = timedelta(seconds=30)
"""The longest pause between two looks: the clock may be set, and other nodes add schedules."""
LEADERS_TIME: Final = timedelta(seconds=5)
"""The time for which schedules that are due are left to the leading node, so that nodes rarely meet.

A leading node that has no gateway, or has not looked yet since another one added a schedule, delays a run by
no more than that.
"""
RETRY: Final = timedelta(seconds=1)
"""The pause after a failure of the database."""
PAGE: Final = 100


class Schedules:
    """The schedules of a gateway: `add`, `list`, `pause`, `resume` and `remove` them by name."""

    def __init__(
        self,
        speaker: Speaker,
        queue: QueueOperations,
        clock: Clock,
        events: Events,
        admit: Callable[[InboundMessage], Awaitable[Receipt]],
        *,
        zone: str,
        accounts: Collection[tuple[str, str]],
        only: Collection[str] | None,
        cluster: Cluster | None,
        is_leaving: Callable[[], bool],
    ) -> None:
        """*accounts* are the platforms and accounts that this gateway serves, *only* its only lanes."""
        self._speaker = speaker
        self._queue = queue
        self._clock = clock
        self._events = events
        self._admit = admit
        self._zone = zone
        self._accounts = accounts
        self._only = only
        self._cluster = cluster
        self._is_leaving = is_leaving
        self._alarm = Alarm(clock)

    # What programs ask for

    async def add(
        self,
        name: str,
        *,
        to: Target,
        cron: str | None = None,
        at: datetime | None = None,
        zone: str | None = None,
        say: Words | None = None,
        prompt: str | None = None,
        missed: MissedTimes | str = MissedTimes.RUN_ONCE,
    ) -> Schedule:
        """Add a schedule, or change the one of that name; adding the same again changes nothing.

        It runs at the times of *cron* in a *zone* (else the configured one), or once *at* an instant. Then it
        says *say*, or begins a turn in which the agent answers *prompt*. Times that came while no gateway ran
        are made up for by one run, or are skipped.
        """
        check_schedule_name(name)
        if (cron is None) == (at is None) or (say is None) == (prompt is None):
            problem = "give either cron or at, and either say or prompt"
            raise InvalidInputError(problem)
        timing = await self._timing_of(cron, zone, check_choice("missed", missed, MissedTimes))
        words = None if say is None else message_of(say)
        if words is None and not str(check_text_of_prompt(prompt)).strip():
            problem = "prompt says nothing"
            raise InvalidInputError(problem)
        place = await self._speaker.targets.find(to)
        task: ScheduledTask
        if words is not None:
            task = SayTask(target=place.target, message=words)
        else:
            task = TurnTask(message=_prompting_message(place, str(prompt)))
        wanted = self._make_schedule(name, place, task, timing, at)
        saved = await self._queue.apply(lambda _: transactions.save_schedule(wanted))
        self.look_soon()
        return saved.schedule

    async def list(self) -> list[Schedule]:
        """Return all schedules by name, also paused ones and those that were done lately."""
        found: list[Schedule] = []
        while page := await self._queue.read(
            partial(transactions.list_schedules, found[-1].name if found else "", PAGE)
        ):
            found += page
        return found

    async def remove(self, name: str) -> bool:
        """Remove a schedule; return False if there is none of that name. A turn that it began goes on."""
        check_schedule_name(name)
        return await self._queue.apply(lambda _: transactions.remove_schedule(name))

    async def pause(self, name: str) -> Schedule | None:
        """Let a schedule rest until `resume`; None if there is none of that name."""
        check_schedule_name(name)
        return await self._queue.apply(lambda _: transactions.pause_schedule(name))

    async def resume(self, name: str) -> Schedule | None:
        """Let a paused schedule go on with its next time; None if there is none of that name."""
        check_schedule_name(name)
        known = await self._queue.read(partial(transactions.load_schedule, name))
        if known is not None and known.timing is not None:
            await in_thread(known.timing.check)  # so that the transaction need not read the zone's file
        resumed = await self._queue.apply(lambda change: transactions.resume_schedule(name, change.now))
        self.look_soon()
        return resumed

    # The duty

    def look_soon(self) -> None:
        """Sweep soon: a schedule may have been added, or the clock was set."""
        self._alarm.ring()

    async def run(self) -> None:
        """Run schedules whose time has come, until cancelled."""
        await repeat_sweep(self._sweep_and_look, self._wait, failed=self._note_failure)

    async def _sweep_and_look(self) -> datetime:
        self._alarm.reset()
        return await self.sweep()

    async def _wait(self, next_at: datetime) -> None:
        pause = None if next_at == NEVER else next_at - self._clock.now()
        if not isinstance(self._clock, SkippingClock) and (pause is not None or self._cluster is not None):
            pause = LOOK if pause is None else min(pause, LOOK)
        await self._alarm.wait(pause)

    def _note_failure(self, error: GatewaySessionsError) -> datetime:
        logger.error("schedules could not be read", exc_info=error, extra={"action": "schedules_failed"})
        return self._clock.now() + RETRY

    async def sweep(self) -> datetime:
        """Run every schedule whose time has come; return the time of the next sweep, `NEVER` without one."""
        next_at = NEVER
        if self._is_leaving():
            return next_at
        now = self._clock.now()
        for kind in ScheduleKind:
            after: tuple[datetime, str] | None = None
            while True:
                due = await self._queue.read(partial(transactions.due_schedules, kind, now, PAGE, after))
                for one in due.schedules:
                    next_at = min(next_at, await self._run_if_mine(one, now))
                if len(due.schedules) < PAGE:
                    next_at = min(next_at, due.next_at or NEVER)
                    break
                last = due.schedules[-1]
                after = (last.due_at or now, last.name)
        return next_at

    async def _run_if_mine(self, one: Schedule, now: datetime) -> datetime:
        """Run a schedule unless it is another node's; return when to look at it again."""
        if one.kind is ScheduleKind.SAY and (one.platform, one.account) not in self._accounts:
            return NEVER if self._cluster is None else now + LOOK
        if self._only is not None and one.session_key not in self._only:
            return NEVER
        due_at = one.due_at or now
        leads = self._cluster is None or self._cluster.membership.leads
        if not leads and now < due_at + LEADERS_TIME:
            return due_at + LEADERS_TIME
        plan = await in_thread(partial(plan_run, due_at, one.timing, now))  # the zone may be read from a file
        try:
            return await self._run(one, plan, now)
        except InvalidInputError as error:
            # What an older version stored may be refused by now: one schedule must not stop all others.
            problem = f"{type(error).__name__}: {error}"
            logger.exception(
                "a schedule could not run", extra={"action": "schedule_failed", "schedule": one.name}
            )
            await self._queue.apply(lambda _: transactions.end_schedule(one, problem, now))
            return NEVER

    async def _run(self, one: Schedule, plan: RunPlan, now: datetime) -> datetime:
        ran, task = False, one.task_at_account
        if plan.runs and isinstance(task, TurnTask):
            receipt = await self._admit(_message_of_run(one, task.message))
            if isinstance(receipt, Rejected) and receipt.retry_after is not None:
                return now + max(timedelta(seconds=receipt.retry_after), RETRY)  # there is no room now
            failpoint("schedule_admitted")
            ran = await self._queue.apply(lambda _: transactions.advance_schedule(one, plan, now))
        else:
            ran = await self._speaker.say_for(one, plan) is not None
        failpoint("schedule_ran")
        if ran and plan.runs:
            self._events.emit(EventKind.SCHEDULE_RAN, one.session_key, schedule=one.name, due_at=one.due_at)
        return plan.next_at or NEVER

    # Inside

    async def _timing_of(self, cron: str | None, zone: str | None, missed: MissedTimes) -> Timing | None:
        if cron is None:
            if zone is not None:
                problem = "zone is for cron: give at as a datetime with a zone"
                raise InvalidInputError(problem)
            return None
        check_value("cron", cron, str)
        timing = Timing(cron=" ".join(cron.split()), zone=zone or self._zone, missed=missed)
        await in_thread(timing.check)
        return timing

    def _make_schedule(
        self, name: str, place: Place, task: ScheduledTask, timing: Timing | None, at: datetime | None
    ) -> Schedule:
        now = self._clock.now()
        return Schedule(
            name=name,
            kind=ScheduleKind.SAY if isinstance(task, SayTask) else ScheduleKind.TURN,
            session_key=place.session_key,
            owner=place.owner,
            platform=place.target.platform,
            account=place.target.account,
            task=task,
            timing=timing,
            state=ScheduleState.WAITING,
            due_at=self._speaker.instant_of(at) if timing is None else timing.next_after(now),
            created_at=now,
        )


def check_text_of_prompt(prompt: object) -> str:
    """Return what an agent is told, or raise `InvalidInputError`."""
    check_value("prompt", prompt, str)
    return str(prompt)


def _prompting_message(place: Place, prompt: str) -> InboundMessage:
    """Return the message that begins a turn: it is internal, so it moves no clock of the conversation."""
    return InboundMessage(
        source=place.source,
        account=place.target.account,
        text=prompt,
        internal=True,
        metadata=place.target.metadata,
    )


def _message_of_run(one: Schedule, message: InboundMessage) -> InboundMessage:
    """Return the message of one time: its id is that of the time, so that it is taken in once."""
    at = one.due_at.isoformat() if one.due_at is not None else ""
    return msgspec.structs.replace(message, message_id=f"{OWN_IDS}schedule:{one.name}:{one.version}:{at}")
