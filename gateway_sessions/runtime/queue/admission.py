"""Admission in memory, before the database: known duplicates, full lanes, room and fair shares.

A process decides from memory alone: no statement reaches the database for a message that is refused here. A
refusal is always safe to repeat: a sender who tries again later finds what the database knows.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple, Protocol, Self

from gateway_sessions.config import Config
from gateway_sessions.core.identity.keys import canonical_participant
from gateway_sessions.core.notices.notice_texts import refusal_notice
from gateway_sessions.core.queue.admission import (
    PLACES,
    LackOfRoom,
    OwnerRoom,
    RefusalRate,
    equal_share,
    lack_of_room,
)
from gateway_sessions.core.queue.busy_modes import (
    Arrival,
    BusyRules,
    LaneLoad,
    Refuse,
    plan_arrival,
    refuse_by_count,
)
from gateway_sessions.core.queue.inbound import (
    InboundMessage,
    MessageKind,
    Rejected,
    RejectReason,
    encode_message,
)
from gateway_sessions.errors import UnidentifiedSourceError
from gateway_sessions.ports import Clock
from gateway_sessions.runtime.queue.routing import RoutedMessage, Routing
from gateway_sessions.storage.transactions.queue.admit import NO_TURN, RunningTurnFacts

OVERLOADED_RETRY_SECONDS: Final = 30.0
DRAINING_RETRY_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLimits:
    """Limits of waiting turns, of the size of a message, and of the lanes remembered as they were left."""

    max_waiting: int
    max_waiting_per_owner: int
    max_message_bytes: int
    allow_unidentified: bool
    remembered_lanes: int

    @classmethod
    def configured(cls, config: Config) -> Self:
        """Return the limits that a configuration sets."""
        return cls(
            max_waiting=config.gateway.max_waiting,
            max_waiting_per_owner=config.gateway.max_waiting_per_owner,
            max_message_bytes=config.gateway.max_message_bytes,
            allow_unidentified=config.allow_unidentified_sources,
            remembered_lanes=config.cache.entries,
        )


def make_rejection(reason: RejectReason, retry_after: float | None, session_key: str | None) -> Rejected:
    """Say why a message was not taken in."""
    return Rejected(
        reason=reason, text=refusal_notice(reason), retry_after=retry_after, session_key=session_key
    )


def find_unfitness(message: InboundMessage, limits: QueueLimits) -> Rejected | None:
    """Return why a message can never be taken, as far as its fields tell without encoding it."""
    source = message.source
    if not source.has_identifier and not limits.allow_unidentified:
        raise UnidentifiedSourceError(source.platform)
    if message.is_empty and message.kind is MessageKind.NEW:
        return make_rejection(RejectReason.EMPTY, None, None)
    if len(message.text) > limits.max_message_bytes:
        return make_rejection(RejectReason.TOO_LARGE, None, None)
    return None


def encode_within_limits(message: InboundMessage, limits: QueueLimits) -> str | Rejected:
    """Return the message as it is stored, or why it cannot be taken."""
    if (unfitness := find_unfitness(message, limits)) is not None:
        return unfitness
    payload = encode_message(message)
    if len(payload.encode()) > limits.max_message_bytes:
        return make_rejection(RejectReason.TOO_LARGE, None, None)
    return payload


OVERLOADED: Final = make_rejection(RejectReason.OVERLOADED, OVERLOADED_RETRY_SECONDS, None)
"""More waits already than may."""
DRAINING: Final = make_rejection(RejectReason.DRAINING, DRAINING_RETRY_SECONDS, None)
"""The gateway is about to end, and there is no time to carry anything out."""


REMEMBERED_LANES: Final = 4096
"""Lanes that have refused a message lately."""
REFUSES_FOR_SECONDS: Final = 1.0
"""The time for which a lane counts as full. Then one message is let through: others may have changed it."""
OWNERS: Final = 4096
"""Owners that were seen lately, while it is crowded."""
CROWDED_SECONDS: Final = 5.0
"""The time after a refusal for want of room in which owners are counted, and share the room."""


class _FullLane:
    """The queue of a lane that has refused a message, as far as this process knows it."""

    __slots__ = ("at", "coming", "load", "running", "waiting")

    def __init__(self) -> None:
        self.coming = 0
        """The number of messages on their way to the lane."""
        self.waiting = 0
        self.load: LaneLoad | None = None
        """All that the refused message found; None: something has changed since."""
        self.running: RunningTurnFacts = NO_TURN
        self.at = 0.0


class FullLanes:
    """Remembers the queues of lanes that have refused a message."""

    def __init__(self) -> None:
        self._lanes: OrderedDict[str, _FullLane] = OrderedDict()

    def note_refusal(self, session_key: str, load: LaneLoad, running: RunningTurnFacts, now: float) -> None:
        """Remember what a message found that was refused; *running* is what was known of the running turn."""
        lane = self._lanes.setdefault(session_key, _FullLane())
        lane.load, lane.running, lane.waiting, lane.at = load, running, load.waiting, now
        self._lanes.move_to_end(session_key)
        if len(self._lanes) > REMEMBERED_LANES:
            self._lanes.popitem(last=False)

    def note_change(self, session_key: str, waiting: int) -> None:
        """Something has changed on a lane, on which so many turns wait now."""
        lane = self._lanes.get(session_key)
        if lane is None:
            return
        if not waiting:
            del self._lanes[session_key]
        else:
            lane.load, lane.waiting = None, waiting

    def count_coming(self, session_key: str, more: int) -> None:
        """Count that many messages more on their way to a lane."""
        if (lane := self._lanes.get(session_key)) is not None:
            lane.coming = max(lane.coming + more, 0)

    def __contains__(self, session_key: str) -> bool:
        return session_key in self._lanes

    def refusal(
        self, session_key: str, arrival: Arrival, rules: BusyRules, running: RunningTurnFacts, now: float
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
            return refuse_by_count(arrival, waiting, rules, can_steer=running.can_steer)
        plan = plan_arrival(arrival, lane.load, rules) if lane.running == running else None
        return plan if isinstance(plan, Refuse) else None


class RecentOwners:
    """Counts the owners who want room, while there is too little of it."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, float] = OrderedDict()
        self._until = 0.0

    def note_refusal(self, now: float) -> None:
        """Note that somebody was refused for want of room."""
        self._until = now + CROWDED_SECONDS

    def is_crowded_for(self, owner: str, now: float) -> bool:
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

    def count_in_line(self, owner: str) -> int:
        """Return how many messages of an owner wait in line."""
        return len(self._lines.get(owner, ()))

    def take_place(self, owner: str) -> bool:
        """Take a place if one is free and nobody waits for it; end it with `leave`."""
        under_way = self._under_way[owner]
        if owner in self._lines or under_way >= equal_share(
            self._places, len(self._under_way) + (not under_way)
        ):
            return False
        self._under_way[owner] = under_way + 1
        return True

    async def wait_for_place(self, owner: str) -> None:
        """Wait in line for a place; end it with `leave`."""
        place = asyncio.get_running_loop().create_future()
        self._lines.setdefault(owner, deque()).append(place)
        self._length += 1
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self.leave_place(owner)
            raise
        finally:
            self._length -= 1

    def leave_place(self, owner: str) -> None:
        """Give a place back, to whoever waits for it."""
        self._under_way[owner] -= 1
        if not self._under_way[owner]:
            del self._under_way[owner]
        if not self._lines:
            return
        share = equal_share(self._places, len(self._under_way))
        grown, self._share = share > self._share, share
        for one in tuple(self._lines) if grown else (owner,):
            self._let_owner_in(one)

    def _let_owner_in(self, owner: str) -> None:
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

    async def wait_for_room(self, owner: str, until: float, *, empty_handed: bool) -> bool:
        """Wait until there is room; False if there was none in time."""
        loop = asyncio.get_running_loop()
        line = self._lines[not empty_handed]
        room: asyncio.Future[bool] = loop.create_future()
        line[owner] = _Waiting(next(self._numbers), room)
        alarm = loop.call_at(until, _set_room, room, False)  # noqa: FBT003 -- what a handle is given
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

    def longest_waiting(self) -> list[tuple[int, str]]:
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
        self._pace = RefusalRate()
        self._held = 0

    def next_answer_at(self, now: float, waiting: int = 0) -> float:
        """Return when one more refusal may be answered, beside so many messages that wait for room."""
        self._pace, at = self._pace.after_refusal(now, self._held + waiting)
        return at

    async def wait_to_answer(self, at: float | None = None) -> None:
        """Wait until a refusal may be answered; mostly that is at once."""
        time = asyncio.get_running_loop().time
        now = time()
        at = self.next_answer_at(now) if at is None else at
        if at <= now:
            return
        self._held += 1
        try:
            await asyncio.sleep(at - now)
            self._pace = self._pace.after_wake_up(time() - at)
        finally:
            self._held -= 1


def _set_room(room: asyncio.Future[bool], there_is: bool) -> None:  # noqa: FBT001 -- what a handle is given
    if not room.done():
        room.set_result(there_is)


class LocalLane(NamedTuple):
    """Answers of this process about a lane, asked for when a message is about to go to the database."""

    running: Callable[[], RunningTurnFacts] = lambda: NO_TURN
    """Tells what is known of the turn that runs here."""
    begins: Callable[[], bool] = lambda: False
    """Tells whether the message's turn may begin at once, and keeps its place free."""
    since: Callable[[], datetime | None] = lambda: None
    """Tells since when the lane stands in line, if it has to wait; None: since the message came."""


NO_LOCAL_TURN = LocalLane()
"""No turn runs or begins in this process."""


class AdmissionRequest(NamedTuple):
    """A message that wants to be taken in."""

    message: InboundMessage
    rules: BusyRules
    final: bool
    """Whether these rules stand even if the session has a mode of its own."""
    solo: bool
    here: LocalLane
    routed: RoutedMessage
    owner: str


class EnteredMessage(NamedTuple):
    """The state of the lane when the message went on to the database."""

    running: RunningTurnFacts
    begins: bool
    since: datetime | None
    waits: bool
    """Whether the message counts as one that has to wait for its turn."""


class WaitingCounts(Protocol):
    """The counts of waiting turns, as `WaitingTurns` keeps them."""

    total_waiting: int

    def waiting_of_owner(self, owner: str) -> int:
        """Return the number of turns that wait on all lanes of one owner."""
        ...

    def limit_of_this_node(self, limit: int, owner: str | None = None) -> int:
        """Return how many turns this node may let wait."""
        ...

    @property
    def owners_waiting(self) -> int:
        """The number of owners whose turns wait."""
        ...


class Admissions:
    """Decides who may go on to the database, and knows who is on the way there."""

    def __init__(self, waiting: WaitingCounts, routing: Routing, limits: QueueLimits, clock: Clock) -> None:
        self._waiting = waiting
        self._routing = routing
        self._limits = limits
        self._clock = clock
        self._line = AdmissionLine()
        self._full = FullLanes()
        self._owners = RecentOwners()
        self._room_line = RoomLine(self._give_room_back)
        self._coming: Counter[str] = Counter()
        """Messages by owner that are on the way and will have to wait for their turn."""
        self._total_coming = 0
        self._beginning: set[str] = set()
        """Lanes to which a message is on the way whose turn may begin at once."""
        self.pace: RefusalPace = RefusalPace()

    async def enter(self, wish: AdmissionRequest) -> EnteredMessage | Rejected:
        """Let a message go on, behind others of its owner, or refuse it; `leave` ends what is entered."""
        owner, now, full = wish.owner, asyncio.get_running_loop().time(), wish.routed.key in self._full
        refused = self._refusal_by_full_lane(wish, now) if full else None
        lack = self._lack_of_room(owner, now) if refused is None else None
        if lack is LackOfRoom.ALL:
            if not await self._wait_for_room(owner, now):
                return OVERLOADED
        elif refused is not None or lack is not None:
            await self.pace.wait_to_answer()
            return refused or OVERLOADED
        entered: EnteredMessage | None = None
        self._full.count_coming(wish.routed.key, 1)
        try:
            refused = None if self._line.take_place(owner) else await self._refusal_in_line(wish, known=full)
            if refused is None:
                entered = self._count_entered(wish)
        finally:
            if entered is None:
                self._full.count_coming(wish.routed.key, -1)
        if entered is not None:
            return entered
        await self.pace.wait_to_answer()
        return refused or OVERLOADED

    async def _refusal_in_line(self, wish: AdmissionRequest, *, known: bool) -> Rejected | None:
        """Wait behind others of the owner; why the message is refused then, as much may have come in.

        On a lane that was *known* to be full, this message has a place already, or goes to see.
        """
        if len(self._line) >= self._limits.max_waiting:
            return OVERLOADED
        await self._line.wait_for_place(wish.owner)
        now = asyncio.get_running_loop().time()
        refused = None if known else self._refusal_by_full_lane(wish, now)
        if refused is None and self._lack_of_room(wish.owner, now) is not None:
            refused = OVERLOADED
        if refused is not None:
            self._line.leave_place(wish.owner)
        return refused

    def _refusal_by_full_lane(self, wish: AdmissionRequest, now: float) -> Rejected | None:
        """Why the message's lane refuses it, as far as memory tells."""
        key = wish.routed.key
        if key not in self._full:
            return None
        entry = self._routing.known_entry(key)
        if entry is None and not wish.final:
            return None
        rules = wish.rules if wish.final or entry is None else wish.rules.in_mode(entry.busy_mode)
        sender = canonical_participant(wish.message.source, wish.routed.aliases) or wish.message.sender
        arrival = Arrival.of(wish.message, at=self._clock.now(), sender=sender, solo=wish.solo)
        refuse = self._full.refusal(key, arrival, rules, wish.here.running(), now)
        return None if refuse is None else make_rejection(refuse.reason, refuse.retry_after, key)

    def _lack_of_room(self, owner: str, now: float) -> LackOfRoom | None:
        """Return which room is lacking for the owner's next message; None if there is room."""
        waiting, limits = self._waiting, self._limits
        wanting, having = 0, 0
        if crowded := self._owners.is_crowded_for(owner, now):  # nobody asks for these counts else
            wanting, having = len(self._owners), waiting.owners_waiting
        room = OwnerRoom(
            most=waiting.limit_of_this_node(limits.max_waiting),
            most_of_owner=waiting.limit_of_this_node(limits.max_waiting_per_owner, owner),
            taken=self._room_taken,
            of_owner=self._room_taken_by(owner) + self._line.count_in_line(owner),
            owners=max(wanting, having),
            empty_handed=max(wanting - having, 0),
            crowded=crowded,
        )
        lack = lack_of_room(room)
        if lack is LackOfRoom.ALL:
            self._owners.note_refusal(now)
        return lack

    @property
    def _room_taken(self) -> int:
        """The number of turns that wait or are on their way into the queue."""
        return self._waiting.total_waiting + self._total_coming

    def _room_taken_by(self, owner: str) -> int:
        return self._waiting.waiting_of_owner(owner) + self._coming[owner]

    # Room for those who want it

    async def _wait_for_room(self, owner: str, now: float) -> bool:
        """Wait for room as long as a refusal is held; False if there was none."""
        until = self.pace.next_answer_at(now, len(self._room_line))
        if until <= now or owner in self._room_line:
            await self.pace.wait_to_answer(until)
            return False
        if not await self._room_line.wait_for_room(owner, until, empty_handed=not self._room_taken_by(owner)):
            return False
        self._count_coming(owner, -1)
        return True

    def _let_waiting_in(self) -> None:
        """Let those go on who wait for room, as far as there is some."""
        if not self._room_line:
            return
        now = asyncio.get_running_loop().time()
        if self._room_taken >= self._waiting.limit_of_this_node(self._limits.max_waiting):
            self._owners.note_refusal(now)
            return
        while (owner := self._next_owner_for_room(now)) is not None:
            if self._room_line.let_in(owner):
                self._count_coming(owner, 1)

    def _next_owner_for_room(self, now: float) -> str | None:
        """Return the owner for the next room: the longest waiting of those without turns, else of all."""
        first = sorted(
            (self._room_taken_by(owner) > 0, number, owner)
            for number, owner in self._room_line.longest_waiting()
        )
        return next((owner for *_, owner in first if self._lack_of_room(owner, now) is None), None)

    def _give_room_back(self, owner: str) -> None:
        self._count_coming(owner, -1)
        self._let_waiting_in()

    # On the way

    def _count_entered(self, wish: AdmissionRequest) -> EnteredMessage:
        owner = wish.owner
        key, begins = wish.routed.key, wish.here.begins()
        # Of several messages that come to an idle lane together, one begins a turn and the others wait.
        waits = not begins or key in self._beginning
        if waits:
            self._count_coming(owner, 1)
        else:
            self._beginning.add(key)
        return EnteredMessage(wish.here.running(), begins, wish.here.since(), waits)

    def leave(self, wish: AdmissionRequest, entered: EnteredMessage) -> None:
        """Let the owner's next message go on: the database has answered."""
        key = wish.routed.key
        self._full.count_coming(key, -1)
        if entered.waits:
            self._count_coming(wish.owner, -1)
        else:
            self._beginning.remove(key)
        self._line.leave_place(wish.owner)
        self._let_waiting_in()

    def note_full_lane(self, session_key: str, load: LaneLoad, running: RunningTurnFacts) -> None:
        """Remember that a lane has refused a message."""
        self._full.note_refusal(session_key, load, running, asyncio.get_running_loop().time())

    def lane_changed(self, session_key: str, waiting: int) -> None:
        """Something has changed on a lane, on which so many turns wait now."""
        self._full.note_change(session_key, waiting)
        self._let_waiting_in()

    def _count_coming(self, owner: str, more: int) -> None:
        self._total_coming += more
        self._coming[owner] += more
        if not self._coming[owner]:
            del self._coming[owner]
