"""The stream of events of a store and its gateway, with bounded listeners that miss the oldest.

Events are for metrics and user interfaces, and delay nobody. Each listener has room for a number of events; a
listener that is too slow misses the oldest ones, and gets their number at the place where they would have
been.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, Self

import anyio

from gateway_sessions.core.committed_changes import CommittedChange, SessionEnd, Transition
from gateway_sessions.core.sessions.reasons import EndReason
from gateway_sessions.core.sessions.state_machine import Event
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.ports import Clock
from gateway_sessions.storage.tables.change import LaneEvent

ROOM: Final = 1000
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class EventKind(StrEnum):
    """The kinds of events."""

    MESSAGE_ACCEPTED = "message.accepted"
    MESSAGE_MERGED = "message.merged"
    MESSAGE_DUPLICATE = "message.duplicate"
    MESSAGE_REJECTED = "message.rejected"
    MESSAGE_DROPPED = "message.dropped"
    MESSAGE_DEAD = "message.dead"
    COMMAND = "command"
    TURN_STARTED = "turn.started"
    TURN_ENDED = "turn.ended"
    TURN_FENCED = "turn.fenced"
    REPLY_SENT = "reply.sent"
    REPLY_GIVEN_UP = "reply.given_up"
    SESSION_STARTED = "session.started"
    SESSION_RESUMED = "session.resumed"
    SESSION_RESET = "session.reset"
    SESSION_FINALISED = "session.finalised"
    SESSION_ENDED = "session.ended"
    FAREWELL = "session.farewell"
    TRANSITION = "transition"
    BUDGET_WARNING = "budget.warning"
    BUDGET_STOP = "budget.stop"
    SCHEDULE_RAN = "schedule.ran"
    ADAPTER_CONNECTED = "adapter.connected"
    ADAPTER_LOST = "adapter.lost"
    MISSED = "events.missed"


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayEvent:
    """One event of a store or a gateway."""

    kind: EventKind
    """The kind of the event."""
    at: datetime
    """The instant of the event."""
    session_key: str | None = None
    session_id: str | None = None
    facts: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    """Further facts, by name."""


class Events:
    """Passes events on to all listeners."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._listeners: set[Listener] = set()
        self._closed = False

    def emit(
        self,
        kind: EventKind,
        session_key: str | None = None,
        session_id: str | None = None,
        *,
        at: datetime | None = None,
        **facts: object,
    ) -> None:
        """Pass an event on to all listeners; it happened now, or at that instant."""
        if not self._listeners:
            return
        event = GatewayEvent(
            kind=kind,
            at=at or self._clock.now(),
            session_key=session_key,
            session_id=session_id,
            facts=MappingProxyType(facts),
        )
        for listener in self._listeners:
            listener.hear(event)

    def listen(self, *, room: int = ROOM, kinds: Iterable[EventKind] | None = None) -> Listener:
        """Listen within `async with`: `async for event in listener`, until the block or the store ends.

        The listener hears events of these kinds, by default of all kinds. When more than *room* events wait,
        the listener misses the oldest ones, and counts them.
        """
        return Listener(self, room, frozenset(EventKind if kinds is None else kinds))

    @property
    def heard(self) -> bool:
        """Whether there is a listener."""
        return bool(self._listeners)

    @property
    def closed(self) -> bool:
        """Whether the store has ended, so that no more events come."""
        return self._closed

    def add(self, listener: Listener) -> None:
        """Pass events on to this listener from now on."""
        self._listeners.add(listener)

    def remove(self, listener: Listener) -> None:
        """Pass no more events on to this listener."""
        self._listeners.discard(listener)

    def close(self) -> None:
        """End the stream: all listeners come to their end."""
        self._closed = True
        for listener in self._listeners:
            listener.wake()


class Listener:
    """A listener of the stream, with room for a number of events.

    With the end of its block the iteration ends, also in another task.
    """

    def __init__(self, events: Events, room: int, kinds: frozenset[EventKind]) -> None:
        if room < 1:
            problem = f"room = {room} must be 1 or more"
            raise InvalidInputError(problem)
        self._events = events
        self._kinds = kinds
        self._heard: deque[GatewayEvent] = deque(maxlen=room)
        self._news = anyio.Event()
        self._untold = 0
        self._listens = False
        self.missed: int = 0
        """The number of all events that the listener has missed."""

    def hear(self, event: GatewayEvent) -> None:
        """Keep an event until it is taken."""
        if event.kind not in self._kinds:
            return
        if len(self._heard) == self._heard.maxlen:
            self.missed += 1
            self._untold += 1
        self._heard.append(event)
        self.wake()

    def wake(self) -> None:
        """Wake the task that iterates."""
        self._news.set()

    async def __aenter__(self) -> Self:
        self._events.add(self)
        self._listens = True
        return self

    async def __aexit__(self, *_: object) -> None:
        self._events.remove(self)
        self._listens = False
        self.wake()

    def __aiter__(self) -> AsyncIterator[GatewayEvent]:
        return self

    async def __anext__(self) -> GatewayEvent:
        while not self._heard:
            if self._events.closed or not self._listens:
                raise StopAsyncIteration
            if self._news.is_set():  # else another task waits for the event already
                self._news = anyio.Event()
            await self._news.wait()
        return self._take_next()

    def take(self) -> list[GatewayEvent]:
        """Return all events that were not taken yet, without waiting for more."""
        return [self._take_next() for _ in range(len(self._heard) + bool(self._untold))]

    def _take_next(self) -> GatewayEvent:
        if not self._untold:
            return self._heard.popleft()
        missed, self._untold = self._untold, 0
        facts = MappingProxyType({"missed": missed})
        return GatewayEvent(kind=EventKind.MISSED, at=self._heard[0].at, facts=facts)


class SessionEvents:
    """Emits events of sessions, in the order of the commits: each transition, and its meaning in a word."""

    def __init__(self, events: Events) -> None:
        self._events = events

    def emit_news(self, news: Sequence[CommittedChange]) -> None:
        """Emit the events of one commit."""
        if not self._events.heard:
            return
        for one in news:
            if isinstance(one, SessionEnd):
                self._emit_session_end(one)
            else:
                self._emit_transition(one)

    def _emit_session_end(self, end: SessionEnd) -> None:
        where = (end.session_key, end.session_id)
        self._events.emit(EventKind.SESSION_ENDED, *where, at=end.at, reason=end.reason)

    def _emit_transition(self, row: Transition) -> None:
        self._events.emit(
            EventKind.TRANSITION,
            row.session_key,
            row.session_id,
            at=row.at,
            event=row.event,
            from_state=row.from_state,
            to_state=row.to_state,
            reason=row.reason,
            actor=row.actor,
        )
        match row.event:
            case LaneEvent.CREATED | LaneEvent.COMPRESSED:
                self._emit_with_previous(EventKind.SESSION_STARTED, row)
            case Event.RESET:
                self._emit_with_previous(EventKind.SESSION_STARTED, row)
                self._emit_reset(row)
            case Event.SWITCHED | Event.UNDONE if row.reason != EndReason.MOVED:
                self._emit_with_previous(EventKind.SESSION_RESUMED, row)
            case Event.FINALISED:
                where = (row.session_key, row.session_id)
                self._events.emit(EventKind.SESSION_FINALISED, *where, at=row.at, reason=row.reason)
            case _:
                pass

    def _emit_with_previous(self, kind: EventKind, row: Transition) -> None:
        self._events.emit(
            kind,
            row.session_key,
            row.session_id,
            at=row.at,
            reason=row.reason,
            previous_session_id=row.previous_session_id,
        )

    def _emit_reset(self, row: Transition) -> None:
        """Emit the reset: the reason, the new session and the one before."""
        self._events.emit(
            EventKind.SESSION_RESET,
            row.session_key,
            row.session_id,
            at=row.at,
            reason=row.reason,
            previous_session_id=row.previous_session_id,
            automatic=row.reason is not None and EndReason(row.reason).is_automatic,
        )
