"""Hooks for ended sessions: registration, and the duty that calls each at least once.

The end of a session and the calls that it owes are one transaction. An attempt is counted before the hook
runs; after the last attempt the call is given up, and listed.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final, TypeAlias, cast

import anyio
from anyio.abc import TaskGroup

from gateway_sessions._process.failpoints import failpoint
from gateway_sessions.config import HooksConfig
from gateway_sessions.core.committed_changes import CommittedChange, SessionEnd
from gateway_sessions.core.instants import from_micros
from gateway_sessions.core.sessions.reasons import EndReason
from gateway_sessions.errors import GatewaySessionsError, InvalidInputError, StorageError
from gateway_sessions.ports import Clock
from gateway_sessions.runtime.alarm import Alarm, ClockSteps
from gateway_sessions.runtime.duty import repeat_sweep
from gateway_sessions.runtime.user_code import problem_within
from gateway_sessions.storage.database import SessionDB
from gateway_sessions.storage.transactions.queue import clock_set_back
from gateway_sessions.storage.transactions.sessions import hooks as transactions
from gateway_sessions.storage.transactions.sessions.hooks import HookCall, HookCapacity

logger: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SessionFinalized:
    """The end of a session. `idempotency_key` is the same for each attempt of the same call."""

    session_key: str
    session_id: str
    reason: EndReason
    platform: str | None
    chat_type: str
    ended_at: datetime
    idempotency_key: str
    attempt: int


Hook: TypeAlias = Callable[[SessionFinalized], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class _RegisteredHook:
    """A hook, and the limits of its calls."""

    hook: Hook
    limits: HooksConfig
    once: bool = False
    """Whether a call that has begun is never repeated."""


class Hooks:
    """The registered hooks, and the duty that calls them."""

    def __init__(self, db: SessionDB, clock: Clock, limits: HooksConfig) -> None:
        self._db = db
        self._clock = clock
        self._limits = limits
        self._clock_steps = ClockSteps(clock)
        self._hooks: dict[str, _RegisteredHook] = {}
        self.registered: Collection[str] = self._hooks.keys()
        """The names of the registered hooks, as they are at any moment."""
        self._running: dict[str, set[str]] = {}
        """By name of the hook, the calls under way."""
        self._alarm = Alarm(clock)
        self._ended_one = anyio.Event()

    def register(self, hook: Hook, *, name: str | None = None, once_within: timedelta | None = None) -> None:
        """Call *hook* for every session that ends from now on.

        The name is stored with each owed call; keep it when the function is renamed. Two hooks of one name
        are refused with `InvalidInputError`. With *once_within*, the time that a call may take, each call is
        made at most once: a call that fails or is cut off is given up.
        """
        name = name or f"{hook.__module__}.{getattr(hook, '__qualname__', type(hook).__qualname__)}"
        if name in self._hooks and self._hooks[name].hook != hook:
            problem = f"another hook is called {name!r}: give each a name of its own"
            raise InvalidInputError(problem)
        if once_within is None:
            self._hooks[name] = _RegisteredHook(hook, self._limits)
        else:
            limits = replace(self._limits, timeout=once_within, max_attempts=1)
            self._hooks[name] = _RegisteredHook(hook, limits, once=True)
        self._running.setdefault(name, set())
        self.wake()

    async def unregister(self, name: str) -> None:
        """Call that hook no more, and wait for its calls under way; owed calls stay owed."""
        self._hooks.pop(name, None)
        while self._running.get(name):
            self._ended_one = anyio.Event()
            await self._ended_one.wait()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the registered hooks."""
        return tuple(self._hooks)

    def wake(self) -> None:
        """Sweep at once: a call may be owed."""
        self._alarm.ring()

    def hear_news(self, news: Sequence[CommittedChange]) -> None:
        """Hear of a commit: the end of a session owes calls."""
        if any(isinstance(one, SessionEnd) for one in news):
            self.wake()

    async def dead_letters(self, limit: int = 100) -> list[HookCall]:
        """Return calls that were given up, the newest first."""
        return await self._db.read(partial(transactions.dead_hook_calls, limit))

    async def requeue(self, idempotency_key: str) -> None:
        """Owe a given-up call again, with all its attempts."""
        await self._db.write(partial(transactions.requeue_hook_call, idempotency_key, self._clock.now()))
        self.wake()

    async def run(self) -> None:
        """Make owed calls until cancelled, and repeat those that are due again."""
        async with anyio.create_task_group() as tasks:
            await repeat_sweep(
                partial(self._start_owed_calls, tasks), self._alarm.wait, failed=self._pause_after_failure
            )

    def _pause_after_failure(self, error: GatewaySessionsError) -> timedelta:
        """Log a failure of the database; return the pause until the next try."""
        logger.error("owed hooks could not be read", exc_info=error, extra={"action": "hooks_failed"})
        return max(self._limits.retry, timedelta(seconds=1))

    async def sweep(self) -> int:
        """Make every due call and wait for the outcomes; return the number of successes."""
        outcomes: list[bool] = []

        async def attempt(registered: _RegisteredHook, call: HookCall) -> None:
            outcomes.append(await self._attempt_call(registered, call))

        while calls := (await self._claim_due_calls())[0]:
            async with anyio.create_task_group() as tasks:
                for one in calls:
                    tasks.start_soon(attempt, *one)
        return sum(outcomes)

    async def _start_owed_calls(self, tasks: TaskGroup) -> timedelta | None:
        """Start every call that may begin now; return the time until the next one, None if none is owed."""
        self._alarm.reset()
        if self._clock_steps.was_set_back():
            await self._db.write(partial(clock_set_back.pull_hook_calls_forward, self._clock.now()))
        while True:
            calls, pause = await self._claim_due_calls()
            if not calls:
                return pause
            for one in calls:
                tasks.start_soon(self._attempt_call, *one)

    async def _claim_due_calls(self) -> tuple[list[tuple[_RegisteredHook, HookCall]], timedelta | None]:
        """Count attempts of due calls; return these calls, or else the time until a call is due.

        Each hook has room for its own calls, so that a hook that hangs delays no other.
        """
        while True:
            registered = dict(self._hooks)
            hooks = {name: self._free_room_of_hook(name, one.limits) for name, one in registered.items()}
            free = [one for one in hooks.values() if one.room > 0]
            tries = await self._db.read(partial(transactions.next_try_times, free))
            now = self._clock.now()
            due = [name for name, at in tries.items() if at <= now]
            if not due:
                return [], min(tries.values()) - now if tries else None
            calls = [
                (registered[name], call)
                for name in due
                for call in await self._claim_calls_of_hook(hooks[name], registered[name].limits, now)
            ]
            if calls:
                return calls, None

    async def _claim_calls_of_hook(
        self, capacity: HookCapacity, limits: HooksConfig, now: datetime
    ) -> list[HookCall]:
        retry_at = now + limits.timeout + limits.retry
        claimed = await self._db.write(
            partial(
                transactions.claim_hook_calls,
                capacity,
                now,
                retry_at=retry_at,
                max_attempts=limits.max_attempts,
            )
        )
        for call in claimed.given_up:
            _log_failed_call(call, call.attempts, "the process ended in the last attempt", again=False)
        self._running[capacity.hook].update(call.idempotency_key for call in claimed.calls)
        return claimed.calls

    def _free_room_of_hook(self, name: str, limits: HooksConfig) -> HookCapacity:
        running = self._running[name]
        return HookCapacity(hook=name, room=limits.concurrency - len(running), running=tuple(running))

    async def _attempt_call(self, registered: _RegisteredHook, call: HookCall) -> bool:
        """Make a call whose attempt is counted; return whether it succeeded."""
        try:
            failpoint("hook_call_counted")
            work = partial(registered.hook, _event_of_call(call))
            problem = await problem_within(registered.limits.timeout, self._clock, work)
            failpoint("hook_called")
            await self._note_outcome(registered, call, problem)
        except anyio.get_cancelled_exc_class():
            # An orderly end is no failure of the hook; but a call that may be made once only was made.
            with anyio.CancelScope(shield=True):
                await self._settle_cancelled_call(registered, call)
            raise
        except StorageError:
            # The call stays owed, and is made again at its time.
            logger.exception("the outcome of a hook could not be stored", extra={"action": "hooks_failed"})
            return False
        finally:
            self._running[call.hook].discard(call.idempotency_key)
            self._ended_one.set()
            self.wake()
        return problem is None

    async def _settle_cancelled_call(self, registered: _RegisteredHook, call: HookCall) -> None:
        with suppress(StorageError):  # then the attempt counts, and the call is made again at its time
            if registered.once:
                await self._note_outcome(registered, call, "the process ended meanwhile")
            else:
                await self._db.write(partial(transactions.withdraw_attempt, call, self._clock.now()))

    async def _note_outcome(self, registered: _RegisteredHook, call: HookCall, problem: str | None) -> None:
        if problem is None:
            await self._db.write(partial(transactions.remove_made_call, call))
            return
        limits = registered.limits
        again = call.attempts + 1 < limits.max_attempts
        retry = self._clock.now() + limits.retry if again else None
        await self._db.write(partial(transactions.note_failed_call, call, problem, retry))
        _log_failed_call(call, call.attempts + 1, problem, again=again)


def _log_failed_call(call: HookCall, attempt: int, problem: str, *, again: bool) -> None:
    facts = {"action": "hook_retry" if again else "hook_dead_letter", "hook": call.hook}
    logger.log(
        logging.WARNING if again else logging.ERROR,
        "a session hook failed",
        extra={**facts, "session_id": call.session_id, "attempt": attempt, "problem": problem},
    )


def _event_of_call(call: HookCall) -> SessionFinalized:
    return SessionFinalized(
        session_key=call.session_key,
        session_id=call.session_id,
        reason=EndReason(call.payload["reason"]),
        platform=call.payload["platform"],
        chat_type=call.payload["chat_type"],
        ended_at=from_micros(call.payload["ended_at"]),
        idempotency_key=call.idempotency_key,
        attempt=call.attempts + 1,
    )


def name_hooks(hooks: Mapping[str, Hook] | Iterable[Hook]) -> tuple[tuple[str | None, Hook], ...]:
    """Return hooks with their names; None: the hook is named after the function."""
    if isinstance(hooks, Mapping):
        given = cast("Mapping[str, Hook]", hooks)
        return tuple(given.items())
    return tuple((None, hook) for hook in hooks)
