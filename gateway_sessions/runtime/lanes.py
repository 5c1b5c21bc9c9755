"""Who is next: turns begin in the order in which their lanes became ready, as many at once as there is room.

One turn at a time on a lane, so many at once for one owner, so many in all. A lane whose turn has ended goes
on at once only if no other lane waits for its place; so nobody who writes much keeps others waiting.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

import anyio

from gateway_sessions.errors import StorageCorruptError, StorageError, StoreStoppedError
from gateway_sessions.ports import Clock
from gateway_sessions.runtime.ledger import Ledger
from gateway_sessions.runtime.running import RunningTurn, StopReason
from gateway_sessions.runtime.turn import Turn
from gateway_sessions.runtime.waking import Alarm

logger = logging.getLogger(__name__)

RETRY: Final = timedelta(seconds=1)
"""After the database failed."""
DAMAGED: Final = timedelta(minutes=5)
"""Until a lane that could not be read is looked at again: somebody may have repaired it."""


class Lanes:
    """Begins turns and knows those that run."""

    def __init__(
        self,
        ledger: Ledger,
        clock: Clock,
        *,
        max_turns: int,
        max_turns_per_owner: int,
        only: Collection[str] | None = None,
    ) -> None:
        """With *only*, the turns of all other lanes are left to others."""
        self._ledger = ledger
        self._clock = clock
        self._only = only
        self._max_turns = max_turns
        self._max_per_owner = max_turns_per_owner
        self._clock = clock
        self._alarm = Alarm(clock)
        self._reserved = 0
        self._owners: Counter[str] = Counter()
        self._stopped = False
        self._crowded = False
        """Whether somebody may have been waiting for a place since there was none."""
        self._news: asyncio.Event | None = None
        """Set when something ends; there is none as long as nobody waits for that."""
        self.running: dict[str, RunningTurn] = {}
        """By session key."""
        self.may_begin: Callable[[], bool] = _always
        """Whether anything may begin here at all."""
        self.start: Callable[[Turn], object] = _nobody
        """Begins to work on a turn."""
        ledger.on_ready = lambda _: self.wake()
        ledger.on_overtaken = self._overtaken

    @property
    def room(self) -> int:
        """How many more turns may begin."""
        if self._stopped or not self.may_begin():
            return 0
        return max(self._max_turns - len(self.running) - self._reserved, 0)

    @property
    def waiting(self) -> int:
        """How many turns wait to begin here."""
        if self._only is None:
            return self._ledger.total_waiting
        return sum(map(self._ledger.waiting_on, self._only))

    def may_begin_on(self, session_key: str, *, elsewhere: bool) -> bool:
        """Whether a turn of that lane may begin here, which *elsewhere* is somebody else's by default."""
        return not elsewhere if self._only is None else session_key in self._only

    def may_go_on(self, running: RunningTurn) -> bool:
        """Whether the lane's next turn may follow at once, because nobody waits for the place."""
        if self._stopped or self._owners[running.owner] > self._max_per_owner:
            return False
        if self.room > 0:
            return True
        waiting_here = sum(1 for key in self.running if self._ledger.waiting_on(key))
        return self._ledger.lanes_waiting <= waiting_here

    @contextmanager
    def place(self, owner: str, *, next_in_line: bool = False) -> Generator[bool]:
        """Whether a turn of that owner may begin now, before those that wait; its place is kept meanwhile."""
        self._crowded = self._crowded or not self.room
        free = self.room > 0 and self._owners[owner] < self._max_per_owner
        free = free and (next_in_line or not self._crowded)
        self._reserved += free
        try:
            yield free
        finally:
            self._reserved -= free

    def began(self, running: RunningTurn) -> None:
        """A turn runs."""
        self.running[running.turn.session_key] = running
        self._owners[running.owner] += 1

    def ended(self, running: RunningTurn) -> None:
        """It does not run any more."""
        running.hear_no_more()
        if self.running.get(running.turn.session_key) is running:
            del self.running[running.turn.session_key]
        self._owners[running.owner] -= 1
        if not self._owners[running.owner]:
            del self._owners[running.owner]
        if self._ledger.lanes_waiting:
            self.wake()
        else:
            self._crowded = False
        self.wake_watchers()

    def wake_watchers(self) -> None:
        """Something came to its end: whoever waits for calm may look again."""
        if self._news is not None:
            self._news.set()
            self._news = None

    async def calmer(self) -> None:
        """Wait until something comes to its end."""
        if self._news is None:
            self._news = asyncio.Event()
        await self._news.wait()

    async def calm_within(self, limit: timedelta, calm: Callable[[], bool]) -> bool:
        """Wait until it is *calm*; whether that was so in time."""
        in_time = False
        async with anyio.create_task_group() as tasks:

            async def wait() -> None:
                nonlocal in_time
                while not calm():
                    await self.calmer()
                in_time = True
                tasks.cancel_scope.cancel()

            async def late() -> None:
                await self._clock.sleep(limit.total_seconds())
                tasks.cancel_scope.cancel()

            tasks.start_soon(wait)
            tasks.start_soon(late)
        return in_time

    def wake(self) -> None:
        """Something may begin: do not wait for the next look."""
        self._alarm.ring()

    def stop(self) -> None:
        """Begin nothing any more."""
        self._stopped = True

    async def run(self) -> None:
        """Begin turns whenever one is ready and there is room, until cancelled."""
        while True:
            self._alarm.reset()
            try:
                pause = await self.sweep()
            except StoreStoppedError:
                return
            except StorageError:
                logger.exception("turns could not be begun", extra={"action": "claim_failed"})
                pause = RETRY
            await self._alarm.wait(pause)

    async def sweep(self) -> timedelta | None:
        """Begin all that may begin now; how long until the next lane is ready, None if none will be."""
        while (room := self.room) and (ready := await self._ready(room)):
            begun = 0
            for session_key, owner in ready:
                begun += await self._begin(session_key, owner)
            if not begun:
                break
        if not self.room:
            return None
        self._crowded = False
        return await self._next_ready()

    async def _ready(self, room: int) -> list[tuple[str, str | None]]:
        full = self._full_owners()
        if self._only is None:
            return await self._ledger.ready(room, full)
        now, waiting = self._clock.now(), await self._ledger.waiting_among(self._only)
        return [
            (one.session_key, one.owner) for one in waiting if one.since <= now and one.owner not in full
        ][:room]

    async def _next_ready(self) -> timedelta | None:
        if self._only is None:
            return await self._ledger.next_ready()
        now, waiting = self._clock.now(), await self._ledger.waiting_among(self._only)
        return min((one.since - now for one in waiting if one.since > now), default=None)

    async def _begin(self, session_key: str, owner: str | None) -> bool:
        with self.place(owner or "", next_in_line=True) as free:
            running = self.running.get(session_key)
            if not free or (running is not None and running.stop_reason is not StopReason.OVERTAKEN):
                return False
            try:
                turn = await self._ledger.claim(session_key)
            except StorageCorruptError:
                await self._leave_aside(session_key)
                return True
            if turn is None:
                return False
            self.start(turn)
        return True

    async def _leave_aside(self, session_key: str) -> None:
        """A lane that cannot be read keeps what waits there, and nobody else waiting."""
        facts = {"action": "lane_damaged", "session_key": session_key}
        logger.exception("a turn could not be begun, because its lane is damaged", extra=facts)
        await self._ledger.put_off(session_key, DAMAGED)

    def _full_owners(self) -> list[str]:
        return [owner for owner, turns in self._owners.items() if turns >= self._max_per_owner]

    def _overtaken(self, session_key: str, token: int) -> None:
        running = self.running.get(session_key)
        if running is not None and running.turn.token == token:
            running.stop(StopReason.OVERTAKEN)


def _always() -> bool:
    return True


def _nobody(_: Turn) -> None:
    """Nobody works on turns yet."""
