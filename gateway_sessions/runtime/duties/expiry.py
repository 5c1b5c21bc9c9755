"""Duties that expire due sessions, prune unused lanes, and remove old sessions and settled messages."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from gateway_sessions.config import ExpiryWatcherConfig
from gateway_sessions.core.instants import to_micros
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.sessions.reset_policy import AskActiveWork
from gateway_sessions.core.sessions.state_machine import (
    Access,
    AccessRules,
    Keep,
    Replace,
    plan_end,
    policy_for,
)
from gateway_sessions.ports import Clock, Transaction
from gateway_sessions.runtime.context import StoreContext
from gateway_sessions.runtime.duty import failure_reporter, repeat_each_period, wait_for_next_pass
from gateway_sessions.runtime.queue.queue_operations import QueueOperations
from gateway_sessions.storage.tables import meta
from gateway_sessions.storage.tables.change import Actor, Change
from gateway_sessions.storage.transactions.sessions import expire, remove
from gateway_sessions.storage.transactions.sessions.expire import EntryPosition

logger: Final = logging.getLogger(__name__)

CLEANUP_INTERVAL: Final = timedelta(hours=1)
"""The pause between two passes of `QueueCleanup`."""
BOOK_FINGERPRINT: Final = "policy_book"
"""The key of the rules by which all stored instants have been computed."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """The numbers of entries that a pass has changed."""

    finalised: int = 0
    rescheduled: int = 0
    deferred: int = 0


class ExpiryWatcher:
    """Ends sessions that are due: their hooks are owed, and the next message begins a new session."""

    def __init__(self, context: StoreContext, timing: ExpiryWatcherConfig) -> None:
        self._context = context
        self._timing = timing

    async def run(self) -> None:
        """Sweep once an interval until cancelled; a failure is tried again in the next interval."""
        await self._context.clock.sleep(self._timing.first_pass.total_seconds())
        failed = failure_reporter(
            logger, "the expiry watcher could not finish its pass", {"action": "sweep_failed"}
        )
        await repeat_each_period(self.sweep, self._context.clock, self._timing.interval, self, failed=failed)

    def state(self) -> object:
        """Return what changes whenever an entry may have become due earlier."""
        return self._context.db.writes_begun

    async def next_due(self) -> datetime | None:
        """Return when the first entry is due; now while turns run, or while other nodes may write entries."""
        db = self._context.db
        if db.ownership.shared is not None or await db.read(
            partial(expire.runs_any_turn, db.ownership.epoch)
        ):
            return self._context.clock.now()
        return await db.read(expire.first_due)

    async def sweep(self) -> Sweep:
        """End or reschedule the session of every entry whose instant has come."""
        await self._note_turns_alive()
        finalised, deferred = 0, 0
        rescheduled = await self._reschedule_for_new_policies()
        position: EntryPosition | None = EntryPosition()
        while position is not None:
            look = partial(expire.load_due_page, self._context.clock.now(), position)
            page, position = await self._context.db.read(look)
            if not page:
                continue
            plans = [(entry, await self._plan_for_entry(entry)) for entry in page]
            ending = [(entry, plan.reason) for entry, plan in plans if isinstance(plan, Replace)]
            kept = [entry for entry, plan in plans if not isinstance(plan, Replace)]
            finalised += await self._apply(partial(expire.finalise_page, planned=ending))
            rescheduled += await self._apply(partial(expire.reschedule, entries=kept))
            deferred += sum(isinstance(plan, Keep) and plan.deferred_by is not None for _, plan in plans)
        return Sweep(finalised, rescheduled, deferred)

    async def _apply(self, transaction: Callable[[Change], Transaction[int]]) -> int:
        return await self._context.apply(Actor.WATCHER, transaction)

    async def _note_turns_alive(self) -> None:
        """Note the time while turns run: after a kill, nothing else may tell how old they are."""
        db = self._context.db
        if await db.read(partial(expire.runs_any_turn, db.ownership.epoch)):
            now = to_micros(self._context.clock.now())
            await db.write(partial(meta.set_fact, meta.LIVED_AT, now))

    async def _plan_for_entry(self, entry: SessionEntry) -> Access:
        """Return the plan for an entry whose stored instant has come; the true one may be later by now."""
        plan = self._plan_if_active(entry, None)
        if isinstance(plan, AskActiveWork):
            plan = self._plan_if_active(entry, await self._context.has_active_work(entry.session_key))
        return plan

    def _plan_if_active(self, entry: SessionEntry, active_work: bool | None) -> Access:  # noqa: FBT001 -- three answers
        change = self._context.make_change(Actor.WATCHER)
        return plan_end(
            entry,
            AccessRules(
                now=change.now,
                policy=policy_for(entry, change.policies),
                freshness=self._context.freshness,
                active_work=active_work,
            ),
        )

    async def _reschedule_for_new_policies(self) -> int:
        """Compute every instant anew, page by page, after the configuration has changed."""
        book = f"{self._context.policies.fingerprint} {self._context.freshness}"
        if await self._context.db.read(partial(meta.get_fact, BOOK_FINGERPRINT)) == book:
            return 0
        rescheduled = 0
        after: str | None = ""
        while after is not None:
            page = partial(expire.reschedule_page, after=after)
            some, after = await self._context.apply(Actor.WATCHER, page)
            rescheduled += some
        await self._context.db.write(partial(meta.set_fact, BOOK_FINGERPRINT, book))
        return rescheduled


class Pruner:
    """Forgets lanes to which nobody has written for long."""

    def __init__(self, context: StoreContext, timing: ExpiryWatcherConfig, max_age: timedelta | None) -> None:
        self._context = context
        self._timing = timing
        self._max_age = max_age

    async def run(self) -> None:
        """Sweep after the first pass of the watcher, then once an interval."""
        if self._max_age is None:
            return
        await self._context.clock.sleep(self._timing.first_pass.total_seconds())
        sweep = partial(self.sweep, self._max_age)
        failed = failure_reporter(logger, "old entries could not be pruned", {"action": "prune_failed"})
        await repeat_each_period(sweep, self._context.clock, self._timing.prune_interval, self, failed=failed)

    def state(self) -> object:
        """Return what changes whenever an entry may have been written."""
        return self._context.db.writes_begun

    async def next_due(self) -> datetime | None:
        """Return when the entry is old enough that nobody has written for the longest time."""
        oldest = await self._context.db.read(expire.oldest_write)
        return oldest + self._max_age if oldest is not None and self._max_age is not None else None

    async def sweep(self, max_age: timedelta) -> int:
        """Forget entries older than *max_age*, except suspended ones and those with running work."""
        before = self._context.clock.now() - max_age
        pruned = 0
        after: int | None = 0
        while after is not None:
            page, after = await self._context.db.read(partial(expire.load_stale_page, before, after))
            idle = [entry for entry in page if not await self._context.has_active_work(entry.session_key)]
            prune = partial(expire.prune_lanes, planned=idle)
            pruned += len(await self._context.apply(Actor.WATCHER, prune)) if idle else 0
        return pruned


class Retention:
    """Removes ended sessions that nobody has touched for long."""

    def __init__(self, context: StoreContext, timing: ExpiryWatcherConfig, age: timedelta | None) -> None:
        self._db = context.db
        self._clock = context.clock
        self._timing = timing
        self._age = age

    async def run(self) -> None:
        """Sweep after the first pass of the watcher, then once an interval."""
        if self._age is None:
            return
        await self._clock.sleep(self._timing.first_pass.total_seconds())
        sweep = partial(self.sweep, self._age)
        failed = failure_reporter(logger, "old sessions could not be removed", {"action": "prune_failed"})
        await repeat_each_period(sweep, self._clock, self._timing.prune_interval, self, failed=failed)

    def state(self) -> object:
        """Return what changes whenever a session may have ended, or be kept no longer."""
        return self._db.writes_begun

    async def next_due(self) -> datetime | None:
        """Return when the first session is old enough."""
        touched = await self._db.read(partial(remove.first_removal_due, remove.PrunableKind()))
        return touched + self._age if touched is not None and self._age is not None else None

    async def sweep(self, age: timedelta) -> int:
        """Remove ended sessions untouched for longer than *age*; return their number."""
        report = await self._db.prune_sessions(older_than_days=age / timedelta(days=1))
        return len(report.session_ids)


class QueueCleanup:
    """Removes settled messages and sent replies that are older than the window for duplicates."""

    def __init__(self, queue: QueueOperations, clock: Clock, window: timedelta) -> None:
        self._queue = queue
        self._clock = clock
        self._window = window

    async def run(self) -> None:
        """Sweep once an hour until cancelled; a failure is tried again in the next hour."""
        await wait_for_next_pass(self._clock, CLEANUP_INTERVAL, self)
        failed = failure_reporter(
            logger, "settled messages could not be forgotten", {"action": "forget_failed"}
        )
        await repeat_each_period(self.sweep, self._clock, CLEANUP_INTERVAL, self, failed=failed)

    def state(self) -> object:
        """Return what changes whenever something may have been settled."""
        return self._queue.writes_begun

    async def next_due(self) -> datetime | None:
        """Return when the oldest of what was settled leaves the window."""
        oldest = await self._queue.first_settled_at()
        return None if oldest is None else oldest + self._window

    async def sweep(self) -> int:
        """Remove all rows that are old enough; return their number."""
        return await self._queue.forget_settled(self._clock.now() - self._window)
