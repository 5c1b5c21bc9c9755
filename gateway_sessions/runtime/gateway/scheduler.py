"""The scheduler of turns: one at a time on a lane, limits by owner and in all, first come first served.

A lane whose turn has ended goes on at once only if no other lane waits for a place; so people who write much
do not keep others waiting.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import Final

import anyio

from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.errors import GatewaySessionsError, StorageCorruptError, StorageError
from gateway_sessions.ports import Clock
from gateway_sessions.runtime.alarm import Alarm, ClockSteps
from gateway_sessions.runtime.duties.cluster import Cluster
from gateway_sessions.runtime.duty import repeat_sweep
from gateway_sessions.runtime.gateway.running_turn import ReadyTurn, RunningTurn, StopReason
from gateway_sessions.runtime.queue.admission import LocalLane
from gateway_sessions.runtime.queue.queue_operations import QueueOperations
from gateway_sessions.runtime.queue.turn import GatewayTurn
from gateway_sessions.storage.transactions.queue.admit import NO_TURN, RunningTurnFacts

logger: Final = logging.getLogger(__name__)

RETRY: Final = timedelta(seconds=1)
"""The pause after a failure of the database."""
IN_LINE: Final = 2
"""The waiting lanes that are looked up for each place, so that each ending turn finds a successor."""
WRITES_AGAIN: Final = timedelta(seconds=1)
"""A message so soon after an answer stands in line as if it had come before the answer."""
REMEMBERED: Final = 4096
"""The number of lanes whose last end is remembered."""
DAMAGED: Final = timedelta(minutes=5)
"""The time until a damaged lane is tried again, because it may have been repaired."""


class LaneScheduler:
    """Begins turns, and knows the turns that run."""

    def __init__(
        self,
        queue: QueueOperations,
        clock: Clock,
        *,
        max_turns: int,
        max_turns_per_owner: int,
        start: Callable[[GatewayTurn], object],
        cluster: Cluster | None = None,
        only: Collection[str] | None = None,
    ) -> None:
        """*start* begins to work on a turn. With *only*, the turns of all other lanes are left to others."""
        self._queue = queue
        self._clock = clock
        self._only = only
        self._max_turns = max_turns
        self._max_per_owner = max_turns_per_owner
        self._alarm = Alarm(clock)
        self._clock_steps = ClockSteps(clock)
        self._reserved = 0
        self._reserved_for: Counter[str] = Counter()
        self._owners: Counter[str] = Counter()
        self._about_to_begin = 0
        """The number of lanes whose turns were found ready and are about to begin."""
        self._in_line: deque[ReadyTurn] = deque()
        """The lanes that were found ready, in order, while there was no place for their turns."""
        self._succeeding: set[str] = set()
        """The lanes whose turns are about to take the places of ending turns."""
        self._ended_at: dict[str, datetime] = {}
        """By lane, when the last turn ended; kept while other lanes wait."""
        self.stopped: bool = False
        """Whether the gateway is about to end: no turn begins any more."""
        self._crowded = False
        """Whether lanes may have been waiting since all places were taken."""
        self._news: asyncio.Event | None = None
        """Set at the next end of a turn or a send; None while nobody waits for one."""
        self.running: dict[str, RunningTurn] = {}
        """By session key."""
        self._cluster = cluster
        self.start = start

    def is_trusted(self) -> bool:
        """Return whether no other node can have taken over the turns of this one."""
        return self._cluster is None or self._cluster.is_trusted

    @property
    def free_places(self) -> int:
        """The number of turns that may begin now."""
        if self.stopped or not self.is_trusted():
            return 0
        return max(self._max_turns - len(self.running) - self._reserved, 0)

    @property
    def waiting_turns(self) -> int:
        """The number of turns that wait to begin here."""
        if self._only is None:
            return self._queue.total_waiting
        return sum(map(self._queue.waiting_on_lane, self._only))

    def lane_here(self, source: SessionSource, session_key: str, held: ExitStack) -> LocalLane:
        """Return what this process knows of a lane; *held* keeps the place of a turn that may begin there."""

        def running() -> RunningTurnFacts:
            found = self.running.get(session_key)
            return found.admission_facts if found is not None else NO_TURN

        def begins() -> bool:
            if session_key in self.running:
                return False
            free = held.enter_context(
                self.reserve_place(self._queue.routing.owner_of_lane(session_key, source))
            )
            return free and self._may_begin_on(session_key)

        return LocalLane(running, begins, partial(self.in_line_since, session_key))

    def _may_begin_on(self, session_key: str) -> bool:
        """Return whether the turns of a lane begin here, and not on the lane's own node."""
        if self._only is not None:
            return session_key in self._only
        return self._cluster is None or self._cluster.should_begin_here(session_key)

    def plan_following(self, running: RunningTurn) -> bool | str:
        """Return whether the lane's next turn may follow at once, or the waiting lane that gets its place."""
        self._forget_successor(running)
        self._note_lane_end(running.turn.session_key)
        if self.stopped:
            return False
        if self._other_lanes_wait:
            if (next_lane := self._reserve_for_successor(running)) is not None:
                return next_lane
            # Lanes that came first may be about to begin, so this one goes back in line.
            if not self.free_places or self._about_to_begin or self._alarm.is_rung:
                return False
        return self._owners[running.owner] <= self._max_per_owner

    def _reserve_for_successor(self, running: RunningTurn) -> str | None:
        """Give the place of an ending turn to the lane that has waited longest; return that lane."""
        if not self._queue.is_alone:  # among several nodes, no transaction changes two lanes
            return None
        for ready in self._take_from_line():
            owner = ready.owner or ""
            if self._turns_of_owner(owner) - (owner == running.owner) < self._max_per_owner:
                running.successor = ready
                self._succeeding.add(ready.session_key)
                self._count_reserved(owner, 1)
                break
        if self._line_is_short:
            self.look_for_ready_turns()
        return running.successor.session_key if running.successor is not None else None

    @property
    def _line_is_short(self) -> bool:
        """Whether the line may run out before waiting lanes are looked up again."""
        unplaced = len(self._queue.lanes_waiting) - len(self._succeeding)
        return len(self._in_line) < min(self._max_turns, unplaced // 2 + 1)

    def _take_from_line(self) -> Generator[ReadyTurn]:
        """Yield lanes from the line, the longest waiting first; an unused lane is looked up again later."""
        while self._in_line:
            ready = self._in_line.popleft()
            if ready.session_key in self._queue.lanes_waiting and not self._runs_or_succeeds(
                ready.session_key
            ):
                yield ready

    def _runs_or_succeeds(self, session_key: str) -> bool:
        """Return whether a turn of the lane runs here, or is about to take an ending turn's place."""
        running = self.running.get(session_key)
        runs = running is not None and running.stop_reason is not StopReason.OVERTAKEN
        return runs or session_key in self._succeeding

    def _forget_successor(self, running: RunningTurn) -> None:
        """Forget the successor of a turn: it runs by now, or waits as before."""
        if (ready := running.successor) is not None:
            running.successor = None
            self._succeeding.discard(ready.session_key)
            self._count_reserved(ready.owner or "", -1)

    def _turns_of_owner(self, owner: str) -> int:
        """Return the number of turns of an owner that run, or are about to."""
        return self._owners[owner] + self._reserved_for[owner]

    @property
    def _other_lanes_wait(self) -> bool:
        """Whether turns wait on lanes that have no running turn here."""
        return not self._queue.lanes_waiting <= self.running.keys()

    @contextmanager
    def reserve_place(self, owner: str, *, next_in_line: bool = False) -> Generator[bool]:
        """Reserve a place for a turn of that owner; yield False if none is free or others waited longer."""
        self._crowded = self._crowded or not self.free_places
        free = self.free_places > 0 and self._turns_of_owner(owner) < self._max_per_owner
        if not free or (self._crowded and not next_in_line):
            yield False
            return
        self._reserved += 1
        self._count_reserved(owner, 1)
        try:
            yield True
        finally:
            self._reserved -= 1
            self._count_reserved(owner, -1)
            if not next_in_line:
                self._wake_waiting_lanes()  # no turn may have begun in it
            self.notify_watchers()

    def _count_reserved(self, owner: str, more: int) -> None:
        self._reserved_for[owner] += more
        if not self._reserved_for[owner]:
            del self._reserved_for[owner]

    @property
    def is_beginning(self) -> bool:
        """Whether a turn may be between its claim and its begin: it neither waits nor runs."""
        return self._reserved > 0

    def note_begun(self, running: RunningTurn) -> None:
        """Note that a turn runs."""
        self.running[running.turn.session_key] = running
        self._owners[running.owner] += 1

    def note_ended(self, running: RunningTurn) -> None:
        """Note that a turn does not run any more."""
        running.stop_giving_messages()
        self._forget_successor(running)
        if self.running.get(running.turn.session_key) is running:
            del self.running[running.turn.session_key]
        self._owners[running.owner] -= 1
        if not self._owners[running.owner]:
            del self._owners[running.owner]
        self._wake_waiting_lanes()
        self.notify_watchers()

    def _note_lane_end(self, session_key: str) -> None:
        if self._other_lanes_wait:
            self._ended_at.pop(session_key, None)
            self._ended_at[session_key] = self._clock.now()
            if len(self._ended_at) > REMEMBERED:
                del self._ended_at[next(iter(self._ended_at))]

    def in_line_since(self, session_key: str) -> datetime | None:
        """Return since when a message that comes now stands in line; None: since now.

        A message soon after an answer gets the place that a message before the answer would have. So people
        who wait for answers are served as often as people who write ahead.
        """
        ended_at = self._ended_at.get(session_key)
        return ended_at if ended_at is not None and self._clock.now() - ended_at <= WRITES_AGAIN else None

    def _wake_waiting_lanes(self) -> None:
        """Let a waiting lane have a place that may be free, or anybody if no lane waits."""
        if not self._other_lanes_wait:
            self._crowded = False
            self._ended_at.clear()
        elif self.free_places or self._line_is_short:
            self.look_for_ready_turns()

    def notify_watchers(self) -> None:
        """Wake the tasks that wait for an end, of a turn or of a send."""
        if self._news is not None:
            self._news.set()
            self._news = None

    async def wait_for_an_end(self) -> None:
        """Wait until a turn or a send ends."""
        if self._news is None:
            self._news = asyncio.Event()
        await self._news.wait()

    async def wait_until_met(self, limit: timedelta, condition: Callable[[], bool]) -> bool:
        """Wait until *condition* returns True; return False if that took longer than *limit*."""
        in_time = False
        async with anyio.create_task_group() as tasks:

            async def wait() -> None:
                nonlocal in_time
                while not condition():
                    await self.wait_for_an_end()
                in_time = True
                tasks.cancel_scope.cancel()

            async def late() -> None:
                await self._clock.sleep(limit.total_seconds())
                tasks.cancel_scope.cancel()

            tasks.start_soon(wait)
            tasks.start_soon(late)
        return in_time

    def look_for_ready_turns(self) -> None:
        """Look for ready turns at once."""
        self._alarm.ring()

    def stop_beginning(self) -> None:
        """Begin no more turns."""
        self.stopped = True

    async def run(self) -> None:
        """Begin turns whenever one is ready and there is room, until cancelled."""

        async def sweep() -> timedelta | None:
            self._alarm.reset()
            return await self.sweep()

        await repeat_sweep(sweep, self._alarm.wait, failed=_pause_after_failure)

    async def sweep(self) -> timedelta | None:
        """Begin all turns that may begin now; return the time until another lane is ready, if one will be."""
        if self._clock_steps.was_set_back():
            await self._queue.pull_turns_forward()
        passed_over: set[str] = set()
        while (room := self.free_places) and (ready := await self._lanes_in_line(room, passed_over)):
            if not await self._begin_turns(ready, passed_over):
                break
        if not self.free_places:
            if self._queue.is_alone and self._other_lanes_wait and self._line_is_short:
                self._in_line = deque(await self._ready_lanes(IN_LINE * self._max_turns))
            return None
        self._crowded = False
        return await self._time_until_ready()

    async def _lanes_in_line(self, room: int, passed_over: Collection[str]) -> list[ReadyTurn]:
        """Return up to *room* lanes whose turns may begin, but of some, those that have waited longest."""
        if not self._queue.is_alone:
            return await self._ready_lanes(room, passed_over)
        found = [] if self._line_is_short else list(islice(self._take_from_line(), room))
        if not found:  # or nobody of those in line waits any more
            self._in_line = deque(await self._ready_lanes(room + IN_LINE * self._max_turns, passed_over))
            found = list(islice(self._take_from_line(), room))
        return found

    async def _ready_lanes(self, most: int, passed_over: Collection[str] = ()) -> list[ReadyTurn]:
        full = self._full_owners()
        if self._only is None:
            limit = most + len(self._succeeding) + len(passed_over)
            found = [ReadyTurn(*one) for one in await self._queue.ready_lanes(limit, full)]
        else:
            now, waiting = self._clock.now(), await self._queue.find_waiting_among(self._only)
            due = (one for one in waiting if one.since <= now and one.owner not in full)
            found = [ReadyTurn(one.session_key, one.owner) for one in due]
        return [
            one
            for one in found
            if one.session_key not in passed_over and not self._runs_or_succeeds(one.session_key)
        ][:most]

    async def _time_until_ready(self) -> timedelta | None:
        if self._only is None:
            return await self._queue.time_until_ready()
        now, waiting = self._clock.now(), await self._queue.find_waiting_among(self._only)
        return min((one.since - now for one in waiting if one.since > now), default=None)

    async def _begin_turns(self, ready: Sequence[ReadyTurn], passed_over: set[str]) -> bool:
        """Begin the turns of some lanes, in this order and together, so that they can share a commit.

        Lanes on which nothing could be claimed are *passed_over* from then on: people have stopped what
        waited there since it was found. Return whether another look may find others.
        """
        moved_on: list[bool] = []
        failed: list[StorageError] = []

        async def begin(session_key: str, owner: str | None) -> None:
            try:
                moved_on.append(await self._begin_turn(session_key, owner, passed_over))
            except StorageError as error:  # raised when all lanes have been tried
                failed.append(error)
            finally:
                self._about_to_begin -= 1

        self._about_to_begin = len(ready)
        async with anyio.create_task_group() as tasks:
            for lane in ready:
                tasks.start_soon(begin, *lane)
        if failed:
            raise failed[0]
        return any(moved_on)

    async def _begin_turn(self, session_key: str, owner: str | None, passed_over: set[str]) -> bool:
        with self.reserve_place(owner or "", next_in_line=True) as free:
            if not free or self._runs_or_succeeds(session_key):
                return False
            try:
                turn = await self._queue.claim(session_key)
            except StorageCorruptError:
                await self._put_off_damaged_lane(session_key)
                return True
            if turn is None:
                passed_over.add(session_key)
                return True
            if self.stopped:  # since this was asked for
                await turn.release()
                return False
            self.start(turn)
        return True

    async def _put_off_damaged_lane(self, session_key: str) -> None:
        """Put a damaged lane off: it keeps its messages, and delays no other lane."""
        facts = {"action": "lane_damaged", "session_key": session_key}
        logger.exception("a turn could not be begun, because its lane is damaged", extra=facts)
        await self._queue.put_turn_off(session_key, DAMAGED)

    def _full_owners(self) -> list[str]:
        return [owner for owner, turns in self._owners.items() if turns >= self._max_per_owner]

    def stop_overtaken_turn(self, session_key: str, token: int) -> None:
        """Stop the turn with that token, which may not write any more."""
        running = self.running.get(session_key)
        if running is not None and running.turn.token == token:
            running.stop(StopReason.OVERTAKEN)


def _pause_after_failure(error: GatewaySessionsError) -> timedelta:
    """Log a failure of the database; return the pause until the next try."""
    logger.error("turns could not be begun", exc_info=error, extra={"action": "claim_failed"})
    return RETRY
