"""`FakeClock`: time that a test advances, and that waits until every task rests again.

A task rests while it waits for another task: for a lock, an event, a queue, a task group or a fake clock. It
works while it moves, and while it waits for something that no other task will bring: a thread, a socket, a
future that somebody completes. The innermost frame of its stack tells which.
"""

from __future__ import annotations

import asyncio
import itertools
from bisect import bisect_left, insort
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from types import CoroutineType, FrameType, GeneratorType
from typing import Any, Final, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

import anyio

from gateway_sessions._process.waits import WaitMark, mark_wait, wait_mark
from gateway_sessions.core.instants import as_utc
from gateway_sessions.errors import GatewaySessionsError
from gateway_sessions.ports import Agenda

AnyTask: TypeAlias = asyncio.Task[Any]

# Modules in which a task waits for another task, unless it sleeps there.
_WAITS_FOR_TASKS: Final = {
    __name__,
    *(module.__name__ for module in (asyncio.locks, asyncio.queues, asyncio.taskgroups, asyncio.tasks)),
}
_SLEEP: Final = asyncio.sleep.__code__
mark_wait(anyio.to_thread.run_sync, WaitMark.WORKS)

# Modules that wait for threads which always answer, however slow the disk is.
_ANSWERED: Final = ("gateway_sessions.storage.", "aiosqlite.", "asyncio.threads")


class Working(NamedTuple):
    """Holds the tasks that do not rest."""

    busy: list[AnyTask]
    """Tasks that have moved since the last look, or wait for a thread that always answers."""
    waiting: list[AnyTask]
    """Tasks that wait for something outside the loop, which may never come."""
    ended: bool = False
    """True if a task has ended since the last look: a task that waited for it may not have moved yet."""


class Stillness:
    """Watches the tasks of the running loop, without the one that asks."""

    def __init__(self) -> None:
        self._places: WeakKeyDictionary[AnyTask, object] = WeakKeyDictionary()
        self._idle: WeakKeyDictionary[AnyTask, object] = WeakKeyDictionary()
        self._alive: frozenset[int] = frozenset()
        """Tasks by identity. A new task with the identity of an old one has moved anyhow."""

    def find_working(self, woken: Collection[AnyTask], asleep: Collection[AnyTask]) -> Working:
        """List the tasks that have moved since the last call, or wait for something outside the loop.

        A real timer counts as work for *woken* tasks only: others may poll as they like. Tasks in *asleep*
        are known to rest, however deep in a generator.
        """
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        before, self._alive = self._alive, frozenset(map(id, tasks))
        found = Working([], [], ended=not before <= self._alive)
        for task in tasks - set(asleep):
            place, frame = _innermost_wait(task.get_coro())
            outside = _waits_outside_loop(frame, poller=task not in woken)
            if self._places.get(task) is not place:
                self._places[task] = place
                (found.waiting if _sleeps_in_real_time(frame) else found.busy).append(task)
            elif outside and self._idle.get(task) is not place:
                (found.busy if _waits_for_thread(frame) else found.waiting).append(task)
        return found

    def count_as_idle(self, tasks: Collection[AnyTask]) -> None:
        """Count the present waits of *tasks* as rest from now on: they have lasted too long for work."""
        for task in tasks:
            self._idle[task] = _innermost_wait(task.get_coro())[0]


def describe_wait(task: AnyTask) -> str:
    """Name the task and the line at which it waits."""
    _, frame = _innermost_wait(task.get_coro())
    place = f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else "its end"
    return f"{task.get_name()} at {place}"


def _innermost_wait(awaited: Any) -> tuple[object, FrameType | None]:
    """Find what a coroutine waits for, and the frame that waits; no frame if it waits as a service.

    Tests call this for every task in every turn of the loop, so it looks nothing up that is not needed.
    """
    frame: FrameType | None = None
    following = awaited
    while following is not None:
        awaited = following
        kind = type(awaited)  # pyright: ignore[reportUnknownVariableType]  # of anything at all
        if kind is CoroutineType:
            frame, following = awaited.cr_frame, awaited.cr_await
        elif kind is GeneratorType:
            frame, following = awaited.gi_frame, awaited.gi_yieldfrom
        else:
            break
        if frame is not None and (mark := wait_mark(frame.f_code)) is not None:
            return awaited, None if mark is WaitMark.RESTS else frame
    return awaited, frame


def _waits_outside_loop(frame: FrameType | None, *, poller: bool) -> bool:
    if frame is None or (poller and _sleeps_in_real_time(frame)):
        return False
    module = str(frame.f_globals.get("__name__"))
    return frame.f_code is _SLEEP or (module not in _WAITS_FOR_TASKS and module != _module_of_anyio())


@cache
def _module_of_anyio() -> str:
    """Return the module in which tasks of anyio wait for each other; its name is no promise of anyio."""
    return type(anyio.create_task_group()).__module__


def _waits_for_thread(frame: FrameType | None) -> bool:
    return frame is not None and str(frame.f_globals.get("__name__")).startswith(_ANSWERED)


def _sleeps_in_real_time(frame: FrameType | None) -> bool:
    return frame is not None and frame.f_code is _SLEEP


START: Final = "2026-01-01T00:00:00+00:00"
PATIENCE: Final = timedelta(seconds=10)
"""The real time that one moment's work may take."""
GRACE: Final = timedelta(seconds=3)
"""The real time after which tasks that wait for something outside the loop count as idle."""

_ZERO: Final = timedelta()
_BACKWARDS: Final = "time only passes forward; to set the wall clock back, use step()"
_CALM_ROUNDS: Final = 5  # a future's result takes a few turns of the loop to reach the task behind it
_EAGER_ROUNDS: Final = 20  # most tasks only go back to sleep; spinning longer would take time from threads
_POLL_SECONDS: Final = 0.001  # threads finish in real time, which nobody announces to the clock
_STOOD_STILL: Final = timedelta(milliseconds=50)  # a turn that takes longer is not the tasks' time


class TasksStillBusyError(GatewaySessionsError, TimeoutError):
    """Time cannot advance: the tasks that it woke neither sleep again nor have ended."""

    def __init__(self, tasks: Collection[AnyTask], patience: timedelta) -> None:
        self.tasks: tuple[AnyTask, ...] = tuple(tasks)
        self.patience = patience
        names = ", ".join(sorted(map(describe_wait, self.tasks)))
        super().__init__(f"still busy after {patience.total_seconds():g} s: {names}")


class TooFewSleepersError(GatewaySessionsError, TimeoutError):
    """Fewer tasks than expected have come to sleep on the clock."""

    def __init__(self, found: int, expected: int) -> None:
        self.found = found
        self.expected = expected
        super().__init__(f"{found} tasks sleep on the clock, {expected} were expected")


class _Sleeper(NamedTuple):
    deadline: timedelta
    number: int  # equal deadlines: first come, first woken
    task: AnyTask
    alarm: asyncio.Future[None]


class _Patience:
    """Counts how long the loop has turned, and how much of that without a busy task.

    While the machine stood still, the tasks had no time: such a pause counts as `_STOOD_STILL` at most.
    """

    def __init__(self) -> None:
        self.waited = _ZERO
        self.calm = _ZERO
        self._looked = asyncio.get_running_loop().time()

    def count_turn(self, *, busy: bool) -> None:
        """Count the time since the last look; *busy* is True if a task goes on by itself."""
        now = asyncio.get_running_loop().time()
        passed = min(timedelta(seconds=now - self._looked), _STOOD_STILL)
        self._looked = now
        self.waited += passed
        self.calm = _ZERO if busy else self.calm + passed


@dataclass
class _Skipping:
    """A task that waits for a period in which it has work."""

    sleeper: _Sleeper
    began: timedelta
    period: timedelta
    agenda: Agenda
    state: object
    """The state of the agenda when it was asked."""

    def next_end(self, elapsed: timedelta) -> timedelta:
        """Return the end of the period in which *elapsed* lies."""
        return _end_of_period(self.began, self.period, elapsed)


class FakeClock:
    """Time for tests: it starts where you say, stands still, and moves by `advance`.

    Sleepers count elapsed time, like a monotonic clock. `step` moves the wall clock under their feet.
    *patience* limits, in real time, how long a moment's work may take.
    """

    def __init__(self, start: datetime | str = START, *, patience: timedelta = PATIENCE) -> None:
        self._wall = _parse_instant(start)
        self._elapsed = _ZERO
        self._patience = patience
        self._numbers = itertools.count()
        self._asleep: list[_Sleeper] = []
        self._awake: set[AnyTask] = set()
        self._skipping: list[_Skipping] = []
        self._steps = 0
        self._somebody_sleeps: asyncio.Future[None] | None = None
        self._stillness = Stillness()
        # Two tasks that advance the clock take turns: else each would move time during the other's work.
        self._turn = asyncio.Lock()

    @property
    def sleepers(self) -> int:
        """Return how many tasks sleep on this clock."""
        return len(self._asleep)

    def now(self) -> datetime:
        """Return the present instant, in UTC."""
        return self._wall + self._elapsed

    async def sleep(self, seconds: float) -> None:
        """Wait until that much time has been advanced."""
        delay = _checked_delay(seconds)
        task = asyncio.current_task()
        if delay <= _ZERO or task is None:
            await asyncio.sleep(0)
            return
        deadline = min(delay, timedelta.max - self._elapsed) + self._elapsed
        sleeper = self._fall_asleep(task, deadline)
        try:
            await sleeper.alarm
        finally:
            self._forget_sleeper(sleeper)

    async def skip_idle_periods(self, period: timedelta, agenda: Agenda) -> None:
        """Wait until the end of the first period, counted from now, in which the agenda has work.

        When the state of the agenda changes, or the wall clock is set, the wait ends with the present
        period.
        """
        began, state = self._elapsed, self._agenda_state(agenda)
        due = await agenda.next_due()
        task = asyncio.current_task()
        if task is None or period <= _ZERO:
            await asyncio.sleep(0)
            return
        first = began + period
        deadline = (
            timedelta.max if due is None else max(first, _end_of_period(began, period, due - self._wall))
        )
        skipping = _Skipping(self._fall_asleep(task, deadline), began, period, agenda, state)
        self._skipping.append(skipping)
        try:
            await skipping.sleeper.alarm
        finally:
            self._skipping.remove(skipping)
            self._forget_sleeper(skipping.sleeper)

    async def advance(
        self,
        delta: timedelta = _ZERO,
        *,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
    ) -> None:
        """Let time pass, sleeper by sleeper, each at its own moment and each until it rests again.

        A woken task may work as long as *patience*, in threads or with other tasks, until it sleeps on this
        clock, ends, or waits for another task while all of them rest. Then the next one is woken. A task that
        does none of it is named in `TasksStillBusyError`. Without arguments: wait until everything rests.
        """
        total = delta + timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        if total < _ZERO:
            raise ValueError(_BACKWARDS)
        async with self._turn:
            await self._wait_for_rest(everybody=True)
            end = self._elapsed + total
            woke = False
            self._ask_agendas_again()
            while self._asleep and self._asleep[0].deadline <= end:
                woke = True
                self._wake_next()
                # The next moment may be far if periods are skipped: let all work of this one end first.
                await self._wait_for_rest(everybody=bool(self._skipping))
                self._ask_agendas_again()
            self._elapsed = end
            if woke:
                await self._wait_for_rest(everybody=True)

    async def advance_to(self, instant: datetime | str) -> None:
        """Let time pass until the wall clock shows *instant*."""
        await self.advance(_parse_instant(instant) - self.now())

    def step(
        self,
        delta: timedelta = _ZERO,
        *,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
    ) -> None:
        """Set the wall clock, forward or back, as an administrator does: no time passes, nobody wakes."""
        self._steps += 1
        self._wall += delta + timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)

    async def wait_for_sleepers(self, count: int) -> None:
        """Wait, in real time and within *patience*, until at least *count* tasks sleep on this clock."""
        patience = _Patience()
        while self.sleepers < count:
            if patience.waited > self._patience:
                raise TooFewSleepersError(self.sleepers, count)
            await self._pause_loop(eager=False)
            patience.count_turn(busy=True)

    def _fall_asleep(self, task: AnyTask, deadline: timedelta) -> _Sleeper:
        """Note that a task sleeps until *deadline*."""
        sleeper = _Sleeper(deadline, next(self._numbers), task, asyncio.get_running_loop().create_future())
        insort(self._asleep, sleeper)
        self._awake.discard(task)
        if self._somebody_sleeps is not None and not self._somebody_sleeps.done():
            self._somebody_sleeps.set_result(None)
        return sleeper

    def _agenda_state(self, agenda: Agenda) -> object:
        """Return a value that changes when the next work may come earlier."""
        return self._steps, agenda.state()

    def _ask_agendas_again(self) -> None:
        """Let tasks that skip periods wake at the end of the present one, if their agenda has changed."""
        for one in self._skipping:
            deadline = one.next_end(self._elapsed)
            if deadline < one.sleeper.deadline and self._agenda_state(one.agenda) != one.state:
                self._forget_sleeper(one.sleeper)
                one.sleeper = one.sleeper._replace(deadline=deadline)
                insort(self._asleep, one.sleeper)

    def _wake_next(self) -> None:
        """Advance to the earliest deadline, and wake all tasks that sleep until then."""
        self._elapsed = self._asleep[0].deadline
        while self._asleep and self._asleep[0].deadline <= self._elapsed:
            sleeper = self._asleep.pop(0)
            self._awake.add(sleeper.task)
            if not sleeper.alarm.done():
                sleeper.alarm.set_result(None)

    async def _wait_for_rest(self, *, everybody: bool) -> None:
        """Wait until the tasks woken here rest, and all others if one of them did not just sleep again."""
        patience = _Patience()
        calm = False
        for turn in itertools.count():
            if any(task.done() for task in self._awake):
                everybody = True  # tasks that waited for its end go on now
                self._awake = {task for task in self._awake if not task.done()}
            if not everybody and not self._awake:
                return
            if everybody or turn >= _EAGER_ROUNDS:
                seen = self._stillness.find_working(self._awake, {one.task for one in self._asleep})
                patience.count_turn(busy=bool(seen.busy) or seen.ended)
                working = [*seen.busy, *seen.waiting]
                rests = not working and not seen.ended
                if (calm and rests) or self._waited_enough(patience, working):
                    self._awake.clear()
                    return
                calm = rests
            for _ in range(
                _CALM_ROUNDS if calm else 1
            ):  # a task that moves meanwhile waits at another place then
                await self._pause_loop(eager=turn < _EAGER_ROUNDS or calm)

    def _waited_enough(self, patience: _Patience, working: Collection[AnyTask]) -> bool:
        """Return True if other tasks may be left alone; raise an error if a task woken here still works."""
        others_may_go = not self._awake and patience.calm >= GRACE
        if patience.waited < self._patience and not others_may_go:
            return False
        if busy := self._awake.intersection(working):
            raise TasksStillBusyError(busy, self._patience)
        self._stillness.count_as_idle(working)
        return True

    async def _pause_loop(self, *, eager: bool) -> None:
        """Let the loop turn once; if not *eager*, until a task falls asleep or some real time has passed."""
        if eager:
            await asyncio.sleep(0)
            return
        self._somebody_sleeps = asyncio.get_running_loop().create_future()
        await asyncio.wait({self._somebody_sleeps}, timeout=_POLL_SECONDS)

    def _forget_sleeper(self, sleeper: _Sleeper) -> None:
        index = bisect_left(self._asleep, sleeper)
        if index < len(self._asleep) and self._asleep[index] is sleeper:
            del self._asleep[index]


def _end_of_period(began: timedelta, period: timedelta, elapsed: timedelta) -> timedelta:
    """Return the end of the period in which *elapsed* lies, counted from *began*; at least one passes."""
    periods = max(1, -((began - elapsed) // period))
    return began + periods * period


def _checked_delay(seconds: float) -> timedelta:
    try:
        return timedelta(seconds=seconds)
    except OverflowError:
        return timedelta.max if seconds > 0 else _ZERO


def _parse_instant(moment: datetime | str) -> datetime:
    return as_utc(datetime.fromisoformat(moment) if isinstance(moment, str) else moment)
