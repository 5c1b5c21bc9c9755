"""Listeners: each hears all there is room for, and whoever is too slow is told what was missed."""

from __future__ import annotations

import asyncio

import pytest

from gateway_sessions.core.committed_changes import Transition
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.runtime.observability.event_stream import (
    EventKind,
    Events,
    GatewayEvent,
    Listener,
    SessionEvents,
)
from gateway_sessions.testing import FakeClock


class Asked(FakeClock):
    """Counts how often it was asked."""

    asked = 0

    def now(self):
        self.asked += 1
        return super().now()


@pytest.fixture
def clock() -> Asked:
    return Asked()


@pytest.fixture
def events(clock: Asked) -> Events:
    return Events(clock)


def numbers(heard: list[GatewayEvent]) -> list[object]:
    return [event.facts.get("seq", event.facts.get("missed")) for event in heard]


async def test_an_event_says_what_happened_where_and_when(events, clock):
    async with events.listen() as listener:
        events.emit(EventKind.TURN_STARTED, "lane", "session", seq=3, attempt=1)
        (event,) = listener.take()
    assert (event.kind, event.session_key, event.session_id) == ("turn.started", "lane", "session")
    assert event.at == clock.now()
    assert event.facts == {"seq": 3, "attempt": 1}


async def test_where_nobody_listens_nothing_is_made(events, clock):
    events.emit(EventKind.TURN_STARTED, seq=1)
    row = Transition(
        at=FakeClock().now(),
        session_key="k",
        session_id="s",
        event="no such",
        from_state=None,
        to_state="active",
        reason=None,
        actor="person",
    )
    SessionEvents(events).emit_news([row])
    assert clock.asked == 0


async def test_all_listeners_hear_the_same_until_they_leave(events):
    async with events.listen() as first:
        async with events.listen() as second:
            events.emit(EventKind.COMMAND, seq=1)
        events.emit(EventKind.COMMAND, seq=2)
        assert (numbers(first.take()), numbers(second.take())) == ([1, 2], [1])


async def test_who_is_too_slow_misses_the_oldest_and_hears_how_many_in_their_place(events):
    async with events.listen(room=2) as listener:
        for seq in range(1, 6):
            events.emit(EventKind.COMMAND, seq=seq)
        first = await anext(listener)
        assert (first.kind, first.facts) == (EventKind.MISSED, {"missed": 3})
        assert numbers(listener.take()) == [4, 5]
        events.emit(EventKind.COMMAND, seq=6)
        assert numbers(listener.take()) == [6]
        assert listener.missed == 3


async def test_what_was_missed_is_told_once_for_each_time(events):
    async with events.listen(room=1) as listener:
        for seq in (1, 2, 3):
            events.emit(EventKind.COMMAND, seq=seq)
        assert numbers(listener.take()) == [2, 3]
        for seq in (4, 5):
            events.emit(EventKind.COMMAND, seq=seq)
        assert numbers(listener.take()) == [1, 5]


async def test_a_listener_may_want_some_kinds_only(events):
    async with events.listen(room=1, kinds=[EventKind.TURN_ENDED]) as listener:
        events.emit(EventKind.TURN_ENDED, seq=1)
        events.emit(EventKind.COMMAND, seq=2)
        assert numbers(listener.take()) == [1]
        assert listener.missed == 0


async def test_a_listener_waits_for_what_comes(events):
    async with events.listen() as listener:
        waiting = asyncio.ensure_future(anext(listener))
        await asyncio.sleep(0)
        assert not waiting.done()
        events.emit(EventKind.COMMAND, seq=7)
        assert numbers([await waiting]) == [7]


async def test_at_the_end_listeners_get_what_is_left_and_then_stop(events):
    heard = []

    async def hear():
        async with events.listen() as listener:
            heard.extend([event.facts["seq"] async for event in listener])

    listening = asyncio.ensure_future(hear())
    await asyncio.sleep(0)
    events.emit(EventKind.COMMAND, seq=1)
    events.close()
    await listening
    async with events.listen() as late:
        assert [event async for event in late] == []
    assert heard == [1]


async def test_a_listener_without_room_is_refused(events):
    with pytest.raises(InvalidInputError, match="room = 0"):
        events.listen(room=0)


async def test_whoever_still_listens_where_the_block_ends_comes_to_the_end(events):
    """A task that read events for ever kept its program from ending, even past the end of the store."""

    async def read(listener: Listener) -> list[object]:
        return numbers([event async for event in listener])

    async with asyncio.TaskGroup() as tasks:
        async with events.listen() as listener:
            readers = [tasks.create_task(read(listener)) for _ in range(2)]
            await asyncio.sleep(0)
            events.emit(EventKind.COMMAND, seq=1)
            await asyncio.sleep(0)
            events.emit(EventKind.COMMAND, seq=2)
        async with asyncio.timeout(15):
            assert sorted([*await readers[0], *await readers[1]]) == [1, 2]
    events.emit(EventKind.COMMAND, seq=3)
    assert [event async for event in listener] == []


async def test_what_was_heard_can_be_taken_behind_the_block(events):
    async with events.listen() as listener:
        events.emit(EventKind.COMMAND, seq=1)
    assert numbers([event async for event in listener]) == [1]
