"""What happens in a gateway, for metrics and user interfaces: one stream that holds nobody up."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, Self

import anyio

from gateway_sessions.ports import Clock

ROOM: Final = 1000
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class EventKind(StrEnum):
    """What can happen."""

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
    SESSION_ENDED = "session.ended"
    BUDGET_WARNING = "budget.warning"
    BUDGET_STOP = "budget.stop"
    ADAPTER_CONNECTED = "adapter.connected"
    ADAPTER_LOST = "adapter.lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayEvent:
    """One thing that happened."""

    kind: EventKind
    at: datetime
    session_key: str | None = None
    session_id: str | None = None
    facts: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)


class Events:
    """Passes on what happens to everybody who listens."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._listeners: set[Listener] = set()

    def emit(
        self, kind: EventKind, session_key: str | None = None, session_id: str | None = None, **facts: object
    ) -> None:
        """Tell that something happened."""
        if not self._listeners:
            return
        event = GatewayEvent(
            kind=kind,
            at=self._clock.now(),
            session_key=session_key,
            session_id=session_id,
            facts=MappingProxyType(facts),
        )
        for listener in self._listeners:
            listener.hear(event)

    def listen(self, *, room: int = ROOM) -> Listener:
        """Listen within `async with`: `async for event in listener`. What there is no room for is counted."""
        return Listener(self._listeners, room)


class Listener:
    """Somebody who listens; whoever is too slow misses the oldest events, and is told how many."""

    def __init__(self, listeners: set[Listener], room: int) -> None:
        self._listeners = listeners
        self._heard: deque[GatewayEvent] = deque(maxlen=room)
        self._news = anyio.Event()
        self.missed = 0
        """How many events there was no room for."""

    def hear(self, event: GatewayEvent) -> None:
        """Keep an event until it is asked for."""
        self.missed += len(self._heard) == self._heard.maxlen
        self._heard.append(event)
        self._news.set()

    async def __aenter__(self) -> Self:
        self._listeners.add(self)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._listeners.discard(self)

    def __aiter__(self) -> AsyncIterator[GatewayEvent]:
        return self

    async def __anext__(self) -> GatewayEvent:
        while not self._heard:
            self._news = anyio.Event()
            await self._news.wait()
        return self._heard.popleft()
