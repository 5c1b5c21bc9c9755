"""Hooks: at least once for each session that ends, with a key to tell repeats, and never in anybody's way.

Ending a session and owing its hooks their calls is one transaction. An attempt is counted before the hook
runs; after the last one the call is given up where everybody can see it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final, TypeAlias

import anyio

from gateway_sessions.config import HooksConfig
from gateway_sessions.core.instants import from_micros
from gateway_sessions.core.reasons import EndReason
from gateway_sessions.failpoints import failpoint
from gateway_sessions.ports import Clock
from gateway_sessions.storage.database import SessionDB
from gateway_sessions.storage.verbs import hooks as verbs
from gateway_sessions.storage.verbs.hooks import HookCall

logger = logging.getLogger(__name__)

MAX_ERROR: Final = 500


@dataclass(frozen=True, slots=True)
class SessionFinalized:
    """A session has ended. `idempotency_key` is the same for each attempt of the same call."""

    session_key: str
    session_id: str
    reason: EndReason
    platform: str | None
    chat_type: str
    ended_at: datetime
    idempotency_key: str
    attempt: int


Hook: TypeAlias = Callable[[SessionFinalized], Awaitable[None]]


class Hooks:
    """The registered hooks, and the duty that calls them."""

    def __init__(self, db: SessionDB, clock: Clock, limits: HooksConfig) -> None:
        self._db = db
        self._clock = clock
        self._limits = limits
        self._hooks: dict[str, Hook] = {}
        self._wake = anyio.Event()

    def register(self, hook: Hook, *, name: str | None = None) -> None:
        """Call *hook* for every session that ends from now on.

        The name is stored with each call that is owed; keep it when the function is renamed.
        """
        self._hooks[name or f"{hook.__module__}.{getattr(hook, '__qualname__', type(hook).__qualname__)}"] = (
            hook
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The registered hooks."""
        return tuple(self._hooks)

    def wake(self) -> None:
        """A call may be owed: do not wait for the next round."""
        self._wake.set()

    async def dead_letters(self, limit: int = 100) -> list[HookCall]:
        """Calls that were given up, the newest first."""
        return await self._db.read(partial(verbs.dead, limit))

    async def requeue(self, idempotency_key: str) -> None:
        """Try a given-up call again, with all its attempts."""
        await self._db.write(partial(verbs.requeue, idempotency_key, self._clock.now()))
        self.wake()

    async def run(self) -> None:
        """Call what is owed whenever something is, and look again when a retry is due."""
        while True:
            self._wake = anyio.Event()
            await self.sweep()
            await self._wait()

    async def sweep(self) -> int:
        """Make every call whose time has come, several at once; how many succeeded."""
        calls = [
            call
            for call in await self._db.read(partial(verbs.owed, self._clock.now()))
            if call.hook in self._hooks
        ]
        limiter = anyio.CapacityLimiter(self._limits.concurrency)
        succeeded = 0

        async def attempt(call: HookCall) -> None:
            nonlocal succeeded
            async with limiter:
                succeeded += await self._attempt(call)

        async with anyio.create_task_group() as tasks:
            for call in calls:
                tasks.start_soon(attempt, call)
        return succeeded

    async def _wait(self) -> None:
        """Sleep until something is owed: at the next retry, or when woken."""
        at = await self._db.read(verbs.next_try)
        if at is None:
            await self._wake.wait()
            return
        async with anyio.create_task_group() as tasks:

            async def until(pause: float) -> None:
                await self._clock.sleep(pause)
                tasks.cancel_scope.cancel()

            # A hook that is not registered (yet) must not make us run in circles.
            tasks.start_soon(until, max((at - self._clock.now()).total_seconds(), 1.0))
            await self._wake.wait()
            tasks.cancel_scope.cancel()

    async def _attempt(self, call: HookCall) -> bool:
        retry_at = self._clock.now() + self._limits.timeout + self._limits.retry
        await self._db.write(partial(verbs.begin_attempt, call, retry_at))
        failpoint("hook_call_counted")
        problem = await self._call(call)
        failpoint("hook_called")
        if problem is None:
            await self._db.write(partial(verbs.succeeded, call))
            return True
        again = call.attempts + 1 < self._limits.max_attempts
        retry = self._clock.now() + self._limits.retry if again else None
        await self._db.write(partial(verbs.failed, call, problem, retry))
        facts = {"action": "hook_retry" if again else "hook_dead_letter", "hook": call.hook}
        logger.log(
            logging.WARNING if again else logging.ERROR,
            "a session hook failed",
            extra={**facts, "session_id": call.session_id, "attempt": call.attempts + 1, "problem": problem},
        )
        return False

    async def _call(self, call: HookCall) -> str | None:
        """Run the hook; what went wrong, or None."""
        try:
            with anyio.fail_after(self._limits.timeout.total_seconds()):
                await self._hooks[call.hook](_event(call))
        except TimeoutError:
            return f"took longer than {self._limits.timeout.total_seconds():g} s"
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 -- foreign code: whatever it raises is its own failure
            return f"{type(error).__name__}: {error}"[:MAX_ERROR]
        return None


def _event(call: HookCall) -> SessionFinalized:
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
