"""What a process remembers to refuse messages at no cost, and the line in which an owner's messages wait.

Everything here is memory: no statement reaches the database for a message that is refused by it. A refusal is
always safe to repeat. Whoever gets one tries again later, and finds then what the database knows.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from typing import Final, NamedTuple

from gateway_sessions.core.admission import PLACES, Pace, equal_share
from gateway_sessions.core.busy import Arrival, BusyRules, LaneLoad, Refuse, plan_arrival, refusal_by_count
from gateway_sessions.core.receipts import Duplicate
from gateway_sessions.storage.verbs.ledger import NO_TURN, RunningTurn

REMEMBERED_EVENTS: Final = 8192
"""Events that were taken in, the latest ones: a platform delivers again what is minutes old, not days."""
REMEMBERED_LANES: Final = 4096
"""Lanes that have refused a message lately."""
REFUSES_FOR_SECONDS: Final = 1.0
"""So long a lane is known to be full. Then one message is let through to see: others may have changed it."""
OWNERS: Final = 4096
"""Owners that were seen lately, while it is crowded."""
CROWDED_SECONDS: Final = 5.0
"""So long after a refusal for want of room it counts who comes, and room is shared."""


class KnownEvents:
    """Remembers which events of platforms were taken in lately, and where."""

    def __init__(self, most: int = REMEMBERED_EVENTS) -> None:
        self._most = most
        self._places: dict[str, tuple[int, str]] = {}

    def note(self, event: str | None, seq: int, session_key: str) -> None:
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


class _FullLane:
    """What is known of a lane that has refused a message."""

    __slots__ = ("at", "coming", "load", "running", "waiting")

    def __init__(self) -> None:
        self.coming = 0
        """How many messages are on their way to it."""
        self.waiting = 0
        self.load: LaneLoad | None = None
        """All that the refused message found; None: something has changed since."""
        self.running: RunningTurn = NO_TURN
        self.at = 0.0


class FullLanes:
    """Remembers the queues of lanes that have refused a message."""

    def __init__(self) -> None:
        self._lanes: OrderedDict[str, _FullLane] = OrderedDict()

    def note(self, session_key: str, load: LaneLoad, running: RunningTurn, now: float) -> None:
        """Remember what a message found that was refused; *running* is what was known of the running turn."""
        lane = self._lanes.setdefault(session_key, _FullLane())
        lane.load, lane.running, lane.waiting, lane.at = load, running, load.waiting, now
        self._lanes.move_to_end(session_key)
        if len(self._lanes) > REMEMBERED_LANES:
            self._lanes.popitem(last=False)

    def changed(self, session_key: str, waiting: int) -> None:
        """Something has changed on a lane, on which so many turns wait now."""
        lane = self._lanes.get(session_key)
        if lane is None:
            return
        if not waiting:
            del self._lanes[session_key]
        else:
            lane.load, lane.waiting = None, waiting

    def coming(self, session_key: str, more: int) -> None:
        """So many messages more are on their way to a lane."""
        if (lane := self._lanes.get(session_key)) is not None:
            lane.coming = max(lane.coming + more, 0)

    def __contains__(self, session_key: str) -> bool:
        return session_key in self._lanes

    def refusal(
        self, session_key: str, arrival: Arrival, rules: BusyRules, running: RunningTurn, now: float
    ) -> Refuse | None:
        """Return why the lane refuses this message as well; None if only the database can tell."""
        lane = self._lanes.get(session_key)
        if lane is None:
            return None
        if not 0 <= now - lane.at < REFUSES_FOR_SECONDS:
            lane.at = now  # this one goes to see, and the others wait for what it finds
            return None
        if lane.load is None:
            waiting = lane.waiting + lane.coming
            return refusal_by_count(arrival, waiting, rules, can_steer=running.can_steer)
        plan = plan_arrival(arrival, lane.load, rules) if lane.running == running else None
        return plan if isinstance(plan, Refuse) else None


class RecentOwners:
    """Counts the owners who want room, while there is too little of it."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, float] = OrderedDict()
        self._until = 0.0

    def crowd(self, now: float) -> None:
        """Note that somebody was refused for want of room."""
        self._until = now + CROWDED_SECONDS

    def crowded(self, owner: str, now: float) -> bool:
        """Note that an owner wants room; tell whether it is crowded."""
        if now >= self._until:
            self._seen.clear()
            return False
        self._seen[owner] = now
        self._seen.move_to_end(owner)
        while len(self._seen) > OWNERS or next(iter(self._seen.values())) < now - CROWDED_SECONDS:
            self._seen.popitem(last=False)
        return True

    def __len__(self) -> int:
        return len(self._seen)


class AdmissionLine:
    """Lets messages go on to the database: of each owner no more at once than an equal share of all places.

    What comes beyond that waits in line, in its order. So the flood of one owner fills no commit in which
    messages of others could be.
    """

    def __init__(self, places: int = PLACES) -> None:
        self._places = places
        self._under_way: Counter[str] = Counter()
        self._lines: dict[str, deque[asyncio.Future[None]]] = {}
        self._share = places
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def behind(self, owner: str) -> int:
        """Return how many messages of an owner wait in line."""
        return len(self._lines.get(owner, ()))

    def enter(self, owner: str) -> bool:
        """Take a place if one is free and nobody waits for it; end it with `leave`."""
        under_way = self._under_way[owner]
        if owner in self._lines or under_way >= equal_share(
            self._places, len(self._under_way) + (not under_way)
        ):
            return False
        self._under_way[owner] = under_way + 1
        return True

    async def wait(self, owner: str) -> None:
        """Wait in line for a place; end it with `leave`."""
        place = asyncio.get_running_loop().create_future()
        self._lines.setdefault(owner, deque()).append(place)
        self._length += 1
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self.leave(owner)
            raise
        finally:
            self._length -= 1

    def leave(self, owner: str) -> None:
        """Give a place back, to whoever waits for it."""
        self._under_way[owner] -= 1
        if not self._under_way[owner]:
            del self._under_way[owner]
        if not self._lines:
            return
        share = equal_share(self._places, len(self._under_way))
        grown, self._share = share > self._share, share
        for one in tuple(self._lines) if grown else (owner,):
            self._let_in(one)

    def _let_in(self, owner: str) -> None:
        line = self._lines.get(owner)
        share = equal_share(self._places, len(self._under_way) + (owner not in self._under_way))
        while line and self._under_way[owner] < share:
            place = line.popleft()
            if not place.done():
                self._under_way[owner] += 1
                place.set_result(None)
        if not line:
            self._lines.pop(owner, None)


class _Waiting(NamedTuple):
    number: int
    room: asyncio.Future[bool]


class RoomLine:
    """Those who wait for room in the queue, with one message each: who has nothing there, and who has."""

    def __init__(self, on_unused: Callable[[str], object]) -> None:
        """*on_unused* is told of an owner who was let in and had gone away."""
        self.on_unused = on_unused
        self._lines: tuple[dict[str, _Waiting], ...] = ({}, {})
        self._numbers = itertools.count()

    def __len__(self) -> int:
        return sum(map(len, self._lines))

    def __contains__(self, owner: str) -> bool:
        return any(owner in line for line in self._lines)

    async def wait(self, owner: str, until: float, *, empty_handed: bool) -> bool:
        """Wait until there is room; False if there was none in time."""
        loop = asyncio.get_running_loop()
        line = self._lines[not empty_handed]
        room: asyncio.Future[bool] = loop.create_future()
        line[owner] = _Waiting(next(self._numbers), room)
        alarm = loop.call_at(until, _tell, room, False)  # noqa: FBT003 -- what a handle is given
        try:
            return await room
        except asyncio.CancelledError:
            if room.done() and not room.cancelled() and room.result():
                self.on_unused(owner)
            raise
        finally:
            alarm.cancel()
            if (waiting := line.get(owner)) is not None and waiting.room is room:
                del line[owner]

    def first(self) -> list[tuple[int, str]]:
        """Return who has waited longest, of each kind, with a number that rises with the time of coming."""
        heads = (next(iter(line.items())) for line in self._lines if line)
        return [(waiting.number, owner) for owner, waiting in heads]

    def let_in(self, owner: str) -> bool:
        """Tell an owner that there is room; False if nobody waits for it any more."""
        for line in self._lines:
            if (waiting := line.pop(owner, None)) is not None and not waiting.room.done():
                waiting.room.set_result(True)
                return True
        return False


class RefusalPace:
    """Answers refusals no faster than their cost allows."""

    def __init__(self) -> None:
        self._pace = Pace()
        self._held = 0

    def next(self, now: float, waiting: int = 0) -> float:
        """Return when one more refusal may be answered, beside so many messages that wait for room."""
        self._pace, at = self._pace.refusing(now, self._held + waiting)
        return at

    async def keep(self, at: float | None = None) -> None:
        """Wait until a refusal may be answered; mostly that is at once."""
        time = asyncio.get_running_loop().time
        now = time()
        at = self.next(now) if at is None else at
        if at <= now:
            return
        self._held += 1
        try:
            await asyncio.sleep(at - now)
            self._pace = self._pace.woken(time() - at)
        finally:
            self._held -= 1


def _tell(room: asyncio.Future[bool], there_is: bool) -> None:  # noqa: FBT001 -- what a handle is given
    if not room.done():
        room.set_result(there_is)
