"""`WaitingTurns`: counts of waiting turns by lane and owner, and the changes that people make to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, KeysView
from datetime import datetime, timedelta
from functools import partial
from typing import Final, NamedTuple, TypeVar

from gateway_sessions.core.instants import to_micros
from gateway_sessions.core.queue.admission import node_share
from gateway_sessions.core.queue.inbound import Duplicate
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.runtime.context import StoreContext
from gateway_sessions.runtime.queue.listener import DEAF, QueueListener
from gateway_sessions.storage.tables import statements
from gateway_sessions.storage.tables.change import Actor, Change
from gateway_sessions.storage.tables.lanes import LaneRow, load_lane
from gateway_sessions.storage.transactions.queue import clock_set_back, running_turn
from gateway_sessions.storage.transactions.queue import waiting as waiting_turns
from gateway_sessions.storage.transactions.queue.waiting import (
    Overtaken,
    ReadyLane,
    ResultAndOvertaken,
    run_after_stopping,
)

T = TypeVar("T")


REMEMBERED_EVENTS: Final = 8192
"""Events that were taken in, the latest ones: a platform delivers again what is minutes old, not days."""


class KnownEvents:
    """Remembers which events of platforms were taken in lately, and where."""

    def __init__(self, most: int = REMEMBERED_EVENTS) -> None:
        self._most = most
        self._places: dict[str, tuple[int, str]] = {}

    def remember(self, event: str | None, seq: int, session_key: str) -> None:
        """Remember an event; the oldest one is forgotten for it."""
        if event is None:
            return
        self._places[event] = (seq, session_key)
        if len(self._places) > self._most:
            del self._places[next(iter(self._places))]

    def find(self, event: str | None) -> Duplicate | None:
        """Return where an event was taken in; None if that is not remembered."""
        found = self._places.get(event) if event is not None else None
        return None if found is None else Duplicate(seq=found[0], session_key=found[1])


class WaitingCount(NamedTuple):
    """The number of turns that waited at the last count, in all and by owner."""

    total: int
    of_owners: Counter[str]


class WaitingTurns:
    """Knows how many turns wait on each lane of one store, and runs the transactions that change them."""

    def __init__(self, context: StoreContext, *, most_of_a_lane: int) -> None:
        """No lane makes up for more turns than *most_of_a_lane*, whatever its row says."""
        self._context = context
        self._most_of_a_lane = most_of_a_lane
        self._waiting: dict[str, int] = {}
        self._owners: dict[str, str] = {}
        """The owners of the lanes on which turns wait."""
        self._of_owners: Counter[str] = Counter()
        self.total_waiting: int = 0
        """Turns that wait on all lanes."""
        self._counted: WaitingCount | None = None
        self.known_events: KnownEvents = KnownEvents()
        """The events that were taken in lately."""
        self._listener = DEAF
        """The gateway that works on the queue in this process."""

    def attach_listener(self, listener: QueueListener) -> None:
        """Let a gateway hear from now on what becomes of the queue, in the place of an earlier one."""
        self._listener = listener

    async def refresh_counts(self) -> None:
        """Count the waiting turns in the database."""
        if self._context.db.ownership.membership is None:
            # In line with all that changes it, so that nothing newer is forgotten.
            waiting = await self._context.db.write(waiting_turns.waiting_lanes)
        else:  # others change it as well: it is counted again and again, and never quite exact
            waiting = await self._context.db.read(waiting_turns.waiting_lanes)
        for session_key in {*self._waiting, *waiting}:
            self._set_waiting(session_key, *waiting.get(session_key, (0, None)))
        if self._counted is None and self.total_waiting:
            await self._learn_known_events()
        self._counted = WaitingCount(self.total_waiting, Counter(self._of_owners))

    async def _learn_known_events(self) -> None:
        """Learn the events that were taken in by an earlier process and wait: they may be delivered again."""
        for one in reversed(await self.read(partial(waiting_turns.waiting_events, REMEMBERED_EVENTS))):
            self.known_events.remember(*one)

    def limit_of_this_node(self, limit: int, owner: str | None = None) -> int:
        """Return this node's part of a limit on waiting turns, as far as it knows what others take in."""
        membership, counted = self._context.db.ownership.membership, self._counted
        if membership is None or counted is None:
            return limit
        nodes = sum(not one.silent for one in membership.nodes)
        before = counted.total if owner is None else counted.of_owners[owner]
        return before + node_share(limit - before, nodes, leads=membership.leads)

    @property
    def lanes_waiting(self) -> KeysView[str]:
        """The lanes on which turns wait."""
        return self._waiting.keys()

    @property
    def owners_waiting(self) -> int:
        """The number of owners whose turns wait."""
        return len(self._of_owners)

    def waiting_on_lane(self, session_key: str) -> int:
        """Return the number of turns that wait on a lane."""
        return self._waiting.get(session_key, 0)

    def waiting_of_owner(self, owner: str) -> int:
        """Return the number of turns that wait on all lanes of one owner."""
        return self._of_owners[owner]

    async def apply(self, transaction: Callable[[Change], Transaction[T]]) -> T:
        """Run a changing transaction for a turn."""
        return await self._context.apply(Actor.AGENT, transaction)

    async def read(self, transaction: Callable[[], Transaction[T]]) -> T:
        """Run a transaction that changes nothing."""
        return await self._context.db.read(transaction)

    async def find_waiting_among(self, lanes: Collection[str]) -> list[ReadyLane]:
        """Return those of some lanes on which turns wait that may begin now or later, the earliest first."""
        return await self.read(partial(waiting_turns.waiting_lanes_among, sorted(lanes)))

    async def pull_turns_forward(self) -> None:
        """Let no turn wait for as long as the clock was ahead, after it was set back."""
        now, debounce = self._context.clock.now(), self._context.longest_debounce
        await self._context.db.write(partial(clock_set_back.pull_turns_forward, now, debounce))

    async def put_turn_off(self, session_key: str, pause: timedelta) -> None:
        """Let the lane's next turn begin after that pause at the earliest; the queue stays as it is."""
        ready_at = to_micros(self._context.clock.now() + pause)
        lock = statements.lane_lock(session_key)
        await self._context.db.change(Statement("put_off_lane", (ready_at, session_key), lock=lock))

    # Overtaking

    async def overtake(
        self,
        session_key: str,
        transaction: Callable[[Change], Transaction[T]],
        *,
        by: str,
        actor: Actor = Actor.PERSON,
    ) -> tuple[T, Overtaken]:
        """Make a change that overtakes whatever runs or waits on a lane."""
        whole: Callable[[Change], Transaction[ResultAndOvertaken[T]]] = partial(
            _run_overtaking, session_key, transaction, by
        )
        both = await self._context.apply(actor, whole)
        self._set_waiting(session_key, 0)
        if both.overtaken.cancelled:
            self.announce_taken_out()
        if both.overtaken.token is not None:
            self._listener.hear_overtaken_turn(session_key, both.overtaken.token)
        return both.outcome, both.overtaken

    async def stop_turn(self, session_key: str, *, by: str) -> Overtaken:
        """End the lane's turn and empty its queue."""
        _, overtaken = await self.overtake(
            session_key, partial(running_turn.clear_interruption, session_key), by=by
        )
        return overtaken

    # Changing what waits

    async def forget_settled(self, before: datetime) -> int:
        """Forget what was settled before that instant; return the number of rows."""
        forgotten = 0
        while some := await self.apply(lambda _: waiting_turns.forget_settled(before)):
            forgotten += some
        return forgotten

    async def first_settled_at(self) -> datetime | None:
        """Return when the oldest of what can be forgotten was settled; None if there is no such thing."""
        return await self._context.db.read(waiting_turns.first_settled)

    @property
    def writes_begun(self) -> int:
        """The number of writes that this process has begun."""
        return self._context.db.writes_begun

    async def rearrange(self, session_key: str, transaction: Callable[[Change], Transaction[T]]) -> T:
        """Change what waits on a lane as people ask for it, and tell the listener."""
        whole: Callable[[Change], Transaction[tuple[T, LaneRow]]] = partial(
            _with_lane_after, session_key, transaction
        )
        outcome, lane = await self.apply(whole)
        self.note_lane(lane)
        self.announce_taken_out()
        return outcome

    def announce_taken_out(self) -> None:
        """Tell the listener that turns wait no more: people may be owed a notice about that."""
        self._listener.hear_removed_turns()

    def note_lane(self, lane: LaneRow, owner: str | None = None) -> None:
        """Note how many turns wait on a lane now, and tell the listener if one of them may begin."""
        self._set_waiting(lane.session_key, lane.waiting, owner)
        if lane.waiting and not lane.running:
            self._listener.hear_waiting_turn(lane.session_key)

    def _set_waiting(self, session_key: str, waiting: int, owner: str | None = None) -> None:
        before, known = self._waiting.pop(session_key, 0), self._owners.pop(session_key, None)
        waiting = min(max(waiting, 0), self._most_of_a_lane)
        self.total_waiting += waiting - before
        self._count_for_owner(known, -before)
        if waiting:
            self._waiting[session_key] = waiting
            if (owner := owner or known) is not None:
                self._owners[session_key] = owner
                self._count_for_owner(owner, waiting)

    def _count_for_owner(self, owner: str | None, more: int) -> None:
        if owner is not None:
            self._of_owners[owner] += more
            if not self._of_owners[owner]:
                del self._of_owners[owner]


def _with_lane_after(
    session_key: str, transaction: Callable[[Change], Transaction[T]], change: Change
) -> Transaction[tuple[T, LaneRow]]:
    outcome = yield from transaction(change)
    return outcome, (yield from load_lane(session_key))


def _run_overtaking(
    session_key: str, transaction: Callable[[Change], Transaction[T]], by: str, change: Change
) -> Transaction[ResultAndOvertaken[T]]:
    return run_after_stopping(change, session_key, transaction, by)
