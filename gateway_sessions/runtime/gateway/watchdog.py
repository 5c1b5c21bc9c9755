"""The duty that stops turns past their deadline or without progress, and shows the typing indicator."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from anyio.abc import TaskGroup

from gateway_sessions.adapters.protocol import Adapter
from gateway_sessions.core.delivery.outbound_messages import ReplyTarget
from gateway_sessions.ports import Clock
from gateway_sessions.runtime.agents.turn_context import TurnContext, control_of
from gateway_sessions.runtime.alarm import NEVER, Alarm
from gateway_sessions.runtime.delivery.receipt_notices import Hints
from gateway_sessions.runtime.duty import repeat_sweep
from gateway_sessions.runtime.gateway.running_turn import RunningTurn, StopReason

FIRST_TYPING: Final = timedelta(seconds=0.3)
"""The time after which the typing indicator is shown: a quick answer needs none, and comes sooner without."""
TYPING: Final = timedelta(seconds=4)
"""The interval at which the typing indicator is shown again."""


@dataclass(slots=True, eq=False)
class _Watched:
    """A watched turn, with its next times and its last sign of life."""

    running: RunningTurn
    context: TurnContext
    typing: tuple[Adapter, ReplyTarget] | None
    typing_at: datetime | None
    progress: int
    quiet_since: datetime


class Watchdog:
    """Watches the turns that run."""

    def __init__(self, tasks: TaskGroup, clock: Clock, inactivity: timedelta | None, hints: Hints) -> None:
        self._tasks = tasks
        self._hints = hints
        self._clock = clock
        self._inactivity = inactivity
        self._alarm = Alarm(clock)
        self._watched: dict[int, _Watched] = {}
        self._looks_at = NEVER
        """The time of the next sweep, unless somebody rings before."""

    def watch(
        self, running: RunningTurn, context: TurnContext, adapter: Adapter | None, target: ReplyTarget
    ) -> None:
        """Watch a turn from now on."""
        now = self._clock.now()
        types = adapter is not None and adapter.capabilities.typing
        watched = _Watched(
            running=running,
            context=context,
            typing=(adapter, target) if types and adapter is not None else None,
            typing_at=now + FIRST_TYPING if types else None,
            progress=control_of(context).progress_count,
            quiet_since=now,
        )
        self._watched[id(running)] = watched
        next_look = self._next_check(watched)
        if next_look is not None and next_look < self._looks_at:
            # Kept when the turn has ended, so that many short turns cost one sweep.
            self._looks_at = next_look
            self._alarm.ring()

    def unwatch(self, running: RunningTurn) -> None:
        """Watch a turn no more."""
        self._watched.pop(id(running), None)

    async def run(self) -> None:
        """Sweep whenever a turn may be due, until cancelled."""
        await repeat_sweep(self._sweep_if_due, self._alarm.wait_until)

    async def _sweep_if_due(self) -> datetime:
        self._alarm.reset()
        if self._looks_at <= self._clock.now():
            self._looks_at = self.sweep()
        return self._looks_at

    def sweep(self) -> datetime:
        """Check all turns; return when to check again."""
        now = self._clock.now()
        for watched in list(self._watched.values()):
            self._check_turn(watched, now)
        looks = [self._next_check(watched) for watched in self._watched.values()]
        return min((one for one in looks if one is not None), default=NEVER)

    def _check_turn(self, watched: _Watched, now: datetime) -> None:
        self._show_typing(watched, now)
        if watched.running.stop_reason is not None:
            return
        if watched.progress != control_of(watched.context).progress_count:
            watched.progress, watched.quiet_since = control_of(watched.context).progress_count, now
        if watched.context.deadline is not None and now >= watched.context.deadline:
            watched.running.stop(StopReason.DEADLINE)
        elif self._inactivity is not None and now >= watched.quiet_since + self._inactivity:
            watched.running.stop(StopReason.INACTIVE)

    def _next_check(self, watched: _Watched) -> datetime | None:
        if watched.running.stop_reason is not None:
            return watched.typing_at
        quiet = watched.quiet_since + self._inactivity if self._inactivity is not None else None
        ends = (watched.context.deadline, quiet, watched.typing_at)
        return min((one for one in ends if one is not None), default=None)

    def _show_typing(self, watched: _Watched, now: datetime) -> None:
        if watched.context.is_over:
            watched.typing_at = None
        if watched.typing is None or watched.typing_at is None or now < watched.typing_at:
            return
        adapter, target = watched.typing
        watched.typing_at = now + TYPING
        self._tasks.start_soon(self._hints.call_platform, adapter, target, lambda: adapter.typing(target))
