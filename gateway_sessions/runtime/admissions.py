"""Whether a message may go on to the database, decided for one process from what it remembers."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple, Protocol

from gateway_sessions.core.admission import Lack, Room, lack_of_room
from gateway_sessions.core.busy import Arrival, BusyRules, LaneLoad
from gateway_sessions.core.inbound import InboundMessage
from gateway_sessions.core.keys import participant_of
from gateway_sessions.core.receipts import Rejected
from gateway_sessions.ports import Clock
from gateway_sessions.runtime.admission import AdmissionLine, FullLanes, RecentOwners, RefusalPace, RoomLine
from gateway_sessions.runtime.queue_limits import OVERLOADED, Limits, rejected
from gateway_sessions.runtime.routing import Message, Routing
from gateway_sessions.storage.verbs.ledger import NO_TURN, RunningTurn


class LaneHere(NamedTuple):
    """What only this process knows of a lane; asked when a message is about to go to the database."""

    running: Callable[[], RunningTurn] = lambda: NO_TURN
    """Tells what is known of the turn that runs here."""
    begins: Callable[[], bool] = lambda: False
    """Tells whether the message's turn may begin at once, and keeps its place free."""
    since: Callable[[], datetime | None] = lambda: None
    """Tells since when the lane stands in line, if it has to wait; None: since the message came."""


NOT_HERE = LaneHere()
"""No turn runs or begins in this process."""


class Wish(NamedTuple):
    """A message that wants to be taken in."""

    message: InboundMessage
    rules: BusyRules
    final: bool
    """Whether these rules count even if the session has a mode of its own."""
    solo: bool
    here: LaneHere
    routed: Message
    owner: str


class Entered(NamedTuple):
    """What was known of the lane when the message went on to the database."""

    running: RunningTurn
    begins: bool
    since: datetime | None
    waits: bool
    """Whether it counts as one that will have to wait for its turn."""


class Waiting(Protocol):
    """How much waits, as `WaitingTurns` counts it."""

    total_waiting: int

    def waiting_for(self, owner: str) -> int:
        """How many turns wait on all lanes of one owner."""
        ...

    def room_for(self, most: int, of_owner: str | None = None) -> int:
        """How many turns may wait at most."""
        ...

    @property
    def owners_waiting(self) -> int:
        """Of how many owners turns wait."""
        ...


class Admissions:
    """Decides who may go on to the database, and knows who is on the way there."""

    def __init__(self, waiting: Waiting, routing: Routing, limits: Limits, clock: Clock) -> None:
        self._waiting = waiting
        self._routing = routing
        self._limits = limits
        self._clock = clock
        self._line = AdmissionLine()
        self._full = FullLanes()
        self._owners = RecentOwners()
        self._room_line = RoomLine(self._room_unused)
        self._coming: Counter[str] = Counter()
        """Messages by owner that are on the way and will have to wait for their turn."""
        self._total_coming = 0
        self._beginning: set[str] = set()
        """Lanes to which a message is on the way whose turn may begin at once."""
        self.pace = RefusalPace()

    async def enter(self, wish: Wish) -> Entered | Rejected:
        """Let a message go on, behind others of its owner, or refuse it; end `Entered` with `leave`."""
        owner, now, full = wish.owner, asyncio.get_running_loop().time(), wish.routed.key in self._full
        refused = self._refused_by_lane(wish, now) if full else None
        lack = self._lack(owner, now) if refused is None else None
        if lack is Lack.ALL:
            if not await self._waits_for_room(owner, now):
                return OVERLOADED
        elif refused is not None or lack is not None:
            await self.pace.keep()
            return refused or OVERLOADED
        entered: Entered | None = None
        self._full.coming(wish.routed.key, 1)
        try:
            refused = None if self._line.enter(owner) else await self._refused_in_line(wish, known=full)
            if refused is None:
                entered = self._enter(wish)
        finally:
            if entered is None:
                self._full.coming(wish.routed.key, -1)
        if entered is not None:
            return entered
        await self.pace.keep()
        return refused or OVERLOADED

    async def _refused_in_line(self, wish: Wish, *, known: bool) -> Rejected | None:
        """Wait behind others of the owner; why the message is refused then, as much may have come in.

        On a lane that was *known* to be full, this message has a place already, or goes to see.
        """
        if len(self._line) >= self._limits.max_waiting:
            return OVERLOADED
        await self._line.wait(wish.owner)
        now = asyncio.get_running_loop().time()
        refused = None if known else self._refused_by_lane(wish, now)
        if refused is None and self._lack(wish.owner, now) is not None:
            refused = OVERLOADED
        if refused is not None:
            self._line.leave(wish.owner)
        return refused

    def _refused_by_lane(self, wish: Wish, now: float) -> Rejected | None:
        """Why the message's lane refuses it, as far as memory tells."""
        key = wish.routed.key
        if key not in self._full:
            return None
        entry = self._routing.known(key)
        if entry is None and not wish.final:
            return None
        rules = wish.rules if wish.final or entry is None else wish.rules.in_mode(entry.busy_mode)
        sender = participant_of(wish.message.source, wish.routed.aliases) or wish.message.sender
        arrival = Arrival.of(wish.message, at=self._clock.now(), sender=sender, solo=wish.solo)
        refuse = self._full.refusal(key, arrival, rules, wish.here.running(), now)
        return None if refuse is None else rejected(refuse.reason, refuse.retry_after, key)

    def _lack(self, owner: str, now: float) -> Lack | None:
        """Who has taken the room that the owner's next message would need; None: there is some."""
        waiting, limits = self._waiting, self._limits
        wanting, having = 0, 0
        if crowded := self._owners.crowded(owner, now):  # nobody asks for these counts else
            wanting, having = len(self._owners), waiting.owners_waiting
        room = Room(
            most=waiting.room_for(limits.max_waiting),
            most_of_owner=waiting.room_for(limits.max_waiting_per_owner, owner),
            taken=self._taken,
            of_owner=self._taken_by(owner) + self._line.behind(owner),
            owners=max(wanting, having),
            empty_handed=max(wanting - having, 0),
            crowded=crowded,
        )
        lack = lack_of_room(room)
        if lack is Lack.ALL:
            self._owners.crowd(now)
        return lack

    @property
    def _taken(self) -> int:
        """How many turns wait, or are on their way into the queue."""
        return self._waiting.total_waiting + self._total_coming

    def _taken_by(self, owner: str) -> int:
        return self._waiting.waiting_for(owner) + self._coming[owner]

    # Room for those who want it

    async def _waits_for_room(self, owner: str, now: float) -> bool:
        """Wait for room as long as a refusal is held; False if there was none."""
        until = self.pace.next(now, len(self._room_line))
        if until <= now or owner in self._room_line:
            await self.pace.keep(until)
            return False
        if not await self._room_line.wait(owner, until, empty_handed=not self._taken_by(owner)):
            return False
        self._count(owner, -1)
        return True

    def _let_in(self) -> None:
        """Let those go on who wait for room, as far as there is some."""
        if not self._room_line:
            return
        now = asyncio.get_running_loop().time()
        if self._taken >= self._waiting.room_for(self._limits.max_waiting):
            self._owners.crowd(now)
            return
        while (owner := self._next_for_room(now)) is not None:
            if self._room_line.let_in(owner):
                self._count(owner, 1)

    def _next_for_room(self, now: float) -> str | None:
        """Who gets the next room: of those who have nothing by now, else of all, who has waited longest."""
        first = sorted(
            (self._taken_by(owner) > 0, number, owner) for number, owner in self._room_line.first()
        )
        return next((owner for *_, owner in first if self._lack(owner, now) is None), None)

    def _room_unused(self, owner: str) -> None:
        self._count(owner, -1)
        self._let_in()

    # On the way

    def _enter(self, wish: Wish) -> Entered:
        owner = wish.owner
        key, begins = wish.routed.key, wish.here.begins()
        # Of several messages that come to an idle lane together, one begins a turn and the others wait.
        waits = not begins or key in self._beginning
        if waits:
            self._count(owner, 1)
        else:
            self._beginning.add(key)
        return Entered(wish.here.running(), begins, wish.here.since(), waits)

    def leave(self, wish: Wish, entered: Entered) -> None:
        """Let the owner's next message go on: the database has answered."""
        key = wish.routed.key
        self._full.coming(key, -1)
        if entered.waits:
            self._count(wish.owner, -1)
        else:
            self._beginning.remove(key)
        self._line.leave(wish.owner)
        self._let_in()

    def note_full(self, session_key: str, load: LaneLoad, running: RunningTurn) -> None:
        """Remember that a lane has refused a message."""
        self._full.note(session_key, load, running, asyncio.get_running_loop().time())

    def lane_changed(self, session_key: str, waiting: int) -> None:
        """Something has changed on a lane, on which so many turns wait now."""
        self._full.changed(session_key, waiting)
        self._let_in()

    def _count(self, owner: str, more: int) -> None:
        self._total_coming += more
        self._coming[owner] += more
        if not self._coming[owner]:
            del self._coming[owner]
